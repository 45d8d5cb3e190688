// The fuzzer's bytes as a stream of choices. When they are over every choice is 0, which always means the harmless one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace holdfast::fuzz {

class choices {
public:
    explicit choices(std::span<const std::uint8_t> bytes) : left_(bytes) {}

    bool are_over() const { return left_.empty(); }
    std::uint8_t byte() {
        if (left_.empty()) return 0;
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        return first;
    }
    /// `limit` is at most 256.
    std::size_t below(std::size_t limit) { return byte() % limit; }
    bool one_in(std::size_t limit) { return below(limit) == limit - 1; }
    std::string text(std::size_t most) {
        const std::size_t size = std::min(below(most + 1), left_.size());
        std::string taken(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(size));
        left_ = left_.subspan(size);
        return taken;
    }
    template <typename T, std::size_t Size>
    const T& of(const std::array<T, Size>& all) {
        return all[below(all.size())];
    }

private:
    std::span<const std::uint8_t> left_;
};

inline void require(bool rule, const std::string& what) {
    if (rule) return;
    std::fprintf(stderr, "broken: %s\n", what.c_str());
    std::abort();
}

}  // namespace holdfast::fuzz
