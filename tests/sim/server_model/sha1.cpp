#include "server_model/sha1.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace holdfast::sim {
namespace {

using state = std::array<std::uint32_t, 5>;

void mix_in(state& into, std::string_view block) {
    std::array<std::uint32_t, 80> words{};
    for (std::size_t i = 0; i < 64; ++i) words[i / 4] = words[i / 4] << 8 | static_cast<unsigned char>(block[i]);
    for (std::size_t i = 16; i < 80; ++i) {
        words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    auto [a, b, c, d, e] = into;
    for (std::size_t i = 0; i < 80; ++i) {
        const std::uint32_t chosen = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999U
                                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1U
                                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU
                                              : (b ^ c ^ d) + 0xca62c1d6U;
        const std::uint32_t next = std::rotl(a, 5) + chosen + e + words[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    into = {into[0] + a, into[1] + b, into[2] + c, into[3] + d, into[4] + e};
}

}  // namespace

std::string sha1_hex(std::string_view text) {
    std::string padded(text);
    padded += '\x80';
    while (padded.size() % 64 != 56) padded += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) {
        padded += static_cast<char>(std::uint64_t{text.size()} * 8 >> shift & 255);
    }
    state digest{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    for (std::size_t at = 0; at < padded.size(); at += 64) mix_in(digest, std::string_view(padded).substr(at, 64));
    std::string hex;
    for (const std::uint32_t word : digest) {
        for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
    }
    return hex;
}

}  // namespace holdfast::sim
