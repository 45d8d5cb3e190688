// Programs that are not ours and share a read-write lock with us by its hash, as go-redislock's flow charts have it:
// RLock, WLock (with the upgrade of a sole reader), unlock and renew, one expiry for the whole key, set anew by each.
//
// A start_session is one owner's stay: in, perhaps in again or renewed, and out, or gone without a word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "world/actor.hpp"
#include "world/checker.hpp"

namespace holdfast::sim {

class foreign_clients {
public:
    foreign_clients(timeline& time, random_stream random, server& where, checker& check)
        : time_(time), random_(random), server_(where), checker_(check) {}

    /// Theirs are shorter than ours: whoever shares a lock with them may lose it (R33).
    void use_short_leases() { short_ = true; }

    enum class expiry : std::uint8_t { usual, none };
    void start_session(const lock_plan& lock, expiry kind);
    /// Whoever is still there leaves.
    void end_sessions(const lock_plan& lock);

private:
    struct owner {
        std::string name;
        lock_plan lock;
        milliseconds lease{0};  // 0: no expiry
        int read = 0;
        int written = 0;
        std::shared_ptr<belief> believed = nullptr;
    };
    using pointer = std::shared_ptr<owner>;

    bool read_lock(owner& who);
    bool write_lock(owner& who);
    void read_unlock(owner& who);
    void write_unlock(owner& who);
    bool renew(owner& who);
    void continue_session(const pointer& who);
    void release_all(owner& who);
    void note(const owner& who, const std::string& what) const;
    void restore_expiry(const std::string& key);
    void touch(owner& who);
    void believe(owner& who);
    std::string get(const owner& who, const std::string& field);
    std::int64_t count(const owner& who, const std::string& field);

    timeline& time_;
    random_stream random_;
    server& server_;
    checker& checker_;
    bool short_ = false;
    unsigned next_ = 0;
    std::vector<pointer> owners_;
};

}  // namespace holdfast::sim
