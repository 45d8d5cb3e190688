#include "redis/slots/hash_slot.hpp"

#include <array>

namespace holdfast::redis {
namespace {

constexpr std::uint16_t polynomial = 0x1021;  // CRC16-XMODEM

constexpr std::array<std::uint16_t, 256> make_table() {
    std::array<std::uint16_t, 256> table{};
    for (unsigned byte = 0; byte < table.size(); ++byte) {
        unsigned crc = byte << 8U;
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ polynomial : crc << 1U;
        table[byte] = static_cast<std::uint16_t>(crc);
    }
    return table;
}

constexpr std::array<std::uint16_t, 256> table = make_table();

}  // namespace

std::string_view hash_tag(std::string_view key) noexcept {
    const auto open = key.find('{');
    if (open == std::string_view::npos) return key;
    const auto close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
}

hash_slot slot_of(std::string_view key) noexcept {
    unsigned crc = 0;
    for (const char letter : hash_tag(key)) {
        const auto byte = static_cast<unsigned char>(letter);
        crc = ((crc << 8U) & 0xffffU) ^ table[(crc >> 8U) ^ byte];
    }
    return static_cast<hash_slot>(crc % hash_slots);
}

}  // namespace holdfast::redis
