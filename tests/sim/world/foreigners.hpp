// Programs that are not ours and share a read-write lock with us by its hash, as go-redislock's flow charts have it:
// RLock, WLock (with the upgrade of a sole reader), unlock and renew, one expiry for the whole key, set anew by each.
//
// A visit is one owner's stay: in, perhaps in again or renewed, and out, or gone without a word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "world/actor.hpp"
#include "world/judge.hpp"

namespace holdfast::sim {

class foreigners {
public:
    foreigners(timeline& time, chance luck, server& where, judge& watch)
        : time_(time), luck_(luck), server_(where), judge_(watch) {}

    /// Theirs are shorter than ours: whoever shares a lock with them may lose it (R33).
    void come_with_short_leases() { short_ = true; }

    enum class expiry : std::uint8_t { usual, none };
    void visit(const lock_plan& lock, expiry kind);
    /// Whoever is still there leaves.
    void clear_out(const lock_plan& lock);

private:
    struct guest {
        std::string name;
        lock_plan lock;
        milliseconds lease{0};  // 0: no expiry
        int read = 0;
        int written = 0;
        std::shared_ptr<belief> thinks = nullptr;
    };
    using pointer = std::shared_ptr<guest>;

    bool read_lock(guest& who);
    bool write_lock(guest& who);
    void read_unlock(guest& who);
    void write_unlock(guest& who);
    bool renew(guest& who);
    void stay_on(const pointer& who);
    void leave(guest& who);
    void note(const guest& who, const std::string& what) const;
    void end_for_ever(const std::string& key);
    void touch(guest& who);
    void believe(guest& who);
    std::string get(const guest& who, const std::string& field);
    std::int64_t count(const guest& who, const std::string& field);

    timeline& time_;
    chance luck_;
    server& server_;
    judge& judge_;
    bool short_ = false;
    unsigned next_ = 0;
    std::vector<pointer> here_;
};

}  // namespace holdfast::sim
