// What only a semaphore is asked: how it stands, and another limit. The rest is in wire/kind.hpp.
#pragma once

#include "wire/look.hpp"
#include "wire/requests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

void write_semaphore_look(redis::command& out, const lock_keys& keys);

// Limit and holders, and how many wait. Nothing if the reply does not have the form of semaphore/look.
struct semaphore_answer {
    std::optional<limit_facts> limit;  // none: nobody uses it, and nobody remembers a limit
    std::vector<seen_holder> holders;  // whose leases run
    std::size_t waiters = 0;

    std::uint64_t out() const noexcept;
};
std::optional<semaphore_answer> read_semaphore_look(const redis::reply_view& reply);

// Replaces the limit that counts. The version that it replaces is named, so that a late copy changes nothing.
struct resize_request {
    std::string_view new_version;  // used once
    std::uint32_t new_limit = 1;
    std::string_view replaces;  // the version as answered; empty: none
};
void write_resize(redis::command& out, const lock_terms& lock, const resize_request& request);

struct resize_answer {
    enum class verdict : std::uint8_t { done, other_version, other_limit } what = verdict::done;
    std::string version = {};    // other_version: the present one
    std::uint32_t declared = 0;  // other_limit
};
std::optional<resize_answer> read_resize(const redis::reply_view& reply);

}  // namespace holdfast::wire
