// The levels that threads have locked through one lock object and not unlocked yet. Its destructor releases them.
//
// A hold belongs to its thread, and the thread may unlock it through another object of the same name and client. So an
// entry may be out of date. It names its hold, and no release takes more levels than that hold has.
#pragma once

#include "api/runtime/thread_owner.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::api {

// A lock that is destroyed while threads hold it. All stripes of a lock share one. Inside the section.
struct destroyed_lock {
    std::string name;
    bool is_told = false;
};

class thread_locks {
public:
    struct entry {
        engine::owner_id owner{};
        std::uint64_t hold = 0;  // its number, unique in the client
        lock_count count;        // of the thread
        unsigned exclusive = 0;
        unsigned shared = 0;

        unsigned& levels(engine::access level) noexcept { return level == engine::access::shared ? shared : exclusive; }
    };

    // Adds one level of the calling thread. Without memory the level is not recorded, and the destructor does not
    // release it.
    void add(std::uint64_t hold, engine::access level, const lock_count& count) noexcept;
    void remove(engine::access level) noexcept;
    std::vector<entry> take_all() noexcept;

private:
    std::vector<entry>::iterator mine() noexcept;

    std::mutex mutex_;
    std::vector<entry> entries_;  // at most one per thread
};

}  // namespace holdfast::api
