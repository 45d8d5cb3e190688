// Foreign clients: programs other than holdfast that share a read-write lock through its hash, as in go-redislock's
// flow charts. They have RLock, WLock (with the upgrade of a sole reader), unlock and renew. Each call sets one expiry
// for the whole key.
//
// A session is the stay of one owner: it acquires, perhaps re-enters or renews, and then releases or dies.
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

    /// Their leases are shorter than ours: holders that share a lock with them may lose it (R33).
    void use_short_leases() { short_ = true; }

    enum class expiry : std::uint8_t { usual, none };
    void start_session(const lock_plan& lock, expiry kind);
    /// Ends all sessions of the lock.
    void end_sessions(const lock_plan& lock);

private:
    struct owner {
        std::string name;
        lock_plan lock;
        milliseconds lease{0};  // 0: no expiry
        bool dies = false;      // without a release
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
    void touch(owner& who, bool enters);
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
