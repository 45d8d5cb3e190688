// What has happened to a lock between two looks at it.
//
// Looking disturbs nobody; listening would: who has subscribed to a client's wake-up channel counts as that client. The
// price is that a hold shorter than the time between two looks is seen only by its token.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// `held`: at the first look. `missed`: tokens were given out that no look has seen in use.
enum class happening { held, acquired, handed_over, upgraded, downgraded, released, expired, waiting, gave_up, missed };

struct lock_event {
    happening what;
    microseconds when;  // since the epoch, by the server's clock
    std::string id = {};
    std::string who = {};  // for people
    std::optional<client_facts> client = {};
    std::string mode = {};  // held, or wanted
    std::optional<std::uint64_t> token = {};
    std::optional<microseconds> waited = {};
    std::optional<microseconds> held = {};
    std::optional<std::size_t> position = {};  // in the queue, from 1
    std::string from = {};                     // handed over by this hold id
};

std::string_view name_of(happening what) noexcept;

// At the first look.
std::vector<lock_event> first_events(const lock_state& now);
// Both are of the same lock.
std::vector<lock_event> events_between(const lock_state& before, const lock_state& now);

// A client deletes its card before its hold ends. Keep the card from the previous look.
void keep_clients(const lock_state& before, lock_state& now);

}  // namespace holdfast::cli
