// Whether bytes are text: names of locks may have any bytes, but formats for others want UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace holdfast {

// Well-formed as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool is_utf8(std::string_view text) noexcept {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (std::size_t i = 0; i < text.size();) {
        const unsigned first = byte(i);
        const std::size_t size = first < 0x80   ? 1
                                 : first < 0xc2 ? 0
                                 : first < 0xe0 ? 2
                                 : first < 0xf0 ? 3
                                 : first < 0xf5 ? 4
                                                : 0;
        if (size == 0 || i + size > text.size()) return false;
        for (std::size_t k = 1; k < size; ++k) {
            if ((byte(i + k) & 0xc0U) != 0x80) return false;
        }
        if (size > 2) {
            const unsigned second = byte(i + 1);
            if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
                return false;
            }
        }
        i += size;
    }
    return true;
}

}  // namespace holdfast
