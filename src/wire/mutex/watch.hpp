// What a watcher of a mutex asks: who holds it, and to be told when that changes.
#pragma once

#include "wire/requests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::wire {

struct watch_request {
    std::string_view id;       // the watcher's, of the form of a hold id
    std::string_view channel;  // empty: it watches no longer; by_polls: it is told nothing
    milliseconds lasts{0};     // for how long it is to be told
};

struct watch_answer {
    std::string holder = {};                // empty: the lock is free
    std::optional<milliseconds> left = {};  // of the holder's lease; none: no end
    std::uint64_t token = 0;                // the last that was granted; 0: not known
    std::string note = {};                  // the holder's
    bool is_untold = false;                 // the server will tell of no change

    bool is_free() const noexcept { return holder.empty(); }
};

void write_watch(redis::command& out, const lock_keys& keys, const watch_request& request);
// Nothing if the reply does not have the form of mutex/watch.
std::optional<watch_answer> read_watch(const redis::reply_view& reply);

}  // namespace holdfast::wire
