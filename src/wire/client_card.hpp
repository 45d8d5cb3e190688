// The card of a client: a hash in which it says who it is, for tools. No lock depends on it.
//
// Every client writes its card when a link comes up and again before it expires.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::wire {

struct client_facts {
    std::string host;
    std::string pid;
    std::string program;
    std::string user;
};

// The fields of the hash, in the order of client_facts.
inline constexpr std::array<std::string_view, 4> card_fields{"host", "pid", "program", "user"};
inline constexpr std::chrono::seconds card_lives_for{90};

}  // namespace holdfast::wire
