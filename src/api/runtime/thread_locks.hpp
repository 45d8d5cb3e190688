// What threads have locked through one lock object and not unlocked yet, so that its destructor can release it.
//
// A hold belongs to its thread, and the thread may unlock it through another object of the same name and client. So an
// entry may be out of date: it names the hold that it means, and nobody releases more levels than that hold has.
#pragma once

#include "api/runtime/thread_owner.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::api {

// A lock that is destroyed while threads hold it; all stripes of one share this. Inside the section.
struct destroyed_lock {
    std::string name;
    bool is_told = false;
};

class thread_locks {
public:
    struct entry {
        engine::owner_id owner{};
        std::uint64_t hold = 0;  // its number; the thread's next hold on this lock has another
        lock_count count;        // of the thread
        unsigned exclusive = 0;
        unsigned shared = 0;

        unsigned& levels(engine::access level) noexcept { return level == engine::access::shared ? shared : exclusive; }
    };

    // One level of the calling thread's. Without memory it is not written down, and not released by the destructor.
    void add(std::uint64_t hold, engine::access level, const lock_count& count) noexcept;
    void remove(engine::access level) noexcept;
    std::vector<entry> take_all() noexcept;

private:
    std::vector<entry>::iterator mine() noexcept;

    std::mutex mutex_;
    std::vector<entry> entries_;  // at most one for each thread
};

}  // namespace holdfast::api
