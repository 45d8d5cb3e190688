// Who takes part in a small world: processes, and in each of them users of one lock. A user follows a program of a few
// steps. When it takes the next one is a choice of the explorer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "explore/fingerprint.hpp"
#include "world/checker.hpp"
#include "world/client.hpp"
#include "world/keeper.hpp"

namespace holdfast::sim::explore {

/// What the lock is for. It takes writes with a token, and refuses those with a smaller one than it has seen.
class resource {
public:
    explicit resource(checker& check) : check_(check) {}

    /// Call at each acquisition: the later one has the larger turn.
    std::uint64_t next_turn() { return ++turns_; }
    struct write {
        std::uint64_t turn;
        std::uint64_t token;  // 0: this lock has none
    };
    void take(const write& what, const std::string& by) {
        if (what.token != 0 && what.token < highest_token_) return;
        highest_token_ = std::max(highest_token_, what.token);
        if (what.turn < last_turn_) check_.fail(by + " wrote after a later holder had written");
        last_turn_ = std::max(last_turn_, what.turn);
    }
    /// What later verdicts depend on.
    void add_to(fingerprint& all) const { all.add(last_turn_).add(highest_token_); }

private:
    checker& check_;
    std::uint64_t turns_ = 0;
    std::uint64_t last_turn_ = 0;
    std::uint64_t highest_token_ = 0;
};

/// Who waits for a lock that promises to be fair. Who already waited when another one asked is served before it.
class waiting_line {
public:
    explicit waiting_line(checker& check) : check_(check) {}

    void asks(const std::string& who) { asked_[who] = ++steps_; }
    /// It was told that it waits.
    void waits(const std::string& who) { waits_since_[who] = ++steps_; }
    void acquired(const std::string& who) {
        waits_since_.erase(who);
        for (const auto& [other, since] : waits_since_) {
            if (since < asked_[who]) check_.fail(other + " was overtaken by " + who);
        }
    }
    void add_to(fingerprint& all) const {
        for (const auto& [who, since] : waits_since_) {
            all.add(who);
            for (const auto& [other, asked] : asked_) all.add(since < asked ? other : "");
        }
    }

private:
    checker& check_;
    std::uint64_t steps_ = 0;
    std::map<std::string, std::uint64_t> asked_;
    std::map<std::string, std::uint64_t> waits_since_;
};

class user {
public:
    user() = default;
    user(const user&) = delete;
    user& operator=(const user&) = delete;
    virtual ~user() = default;

    /// It does not wait for anything, and its program goes on.
    virtual bool may_step() const = 0;
    virtual std::string next_step() const = 0;
    virtual void step() = 0;
    virtual bool has_begun() const = 0;
    /// Nothing is left of its program, and it waits for no answer.
    virtual bool is_done() const = 0;
    /// From now on it only gives back what it has.
    virtual void begin_nothing_more() = 0;
    /// Its process has died.
    virtual void died() = 0;
    virtual std::string describe() const = 0;
    /// Of its last acquisition, while it may still write to what the lock guards; otherwise 0.
    virtual std::uint64_t turn() const { return 0; }
};

class process {
public:
    process() = default;
    process(const process&) = delete;
    process& operator=(const process&) = delete;
    virtual ~process() = default;

    virtual void start() = 0;
    /// Runs it now, or when the pause ends.
    virtual void when_awake(timeline::action what) = 0;
    virtual void pause() = 0;
    virtual void resume(client::first what) = 0;
    virtual bool is_paused() const = 0;
    virtual void die() = 0;
    virtual bool is_dead() const = 0;
    /// The program ends in good order.
    virtual void close() = 0;
    /// The checker expects promptness no longer.
    virtual void has_trouble() = 0;
    /// It holds nothing, wants nothing, and owes nothing to a server.
    virtual bool is_quiet() const = 0;
    /// How often something has run in it.
    virtual std::uint64_t runs() const = 0;

    std::vector<std::unique_ptr<user>> users;
    /// Of a process that keeps the lock; otherwise null.
    std::unique_ptr<keeper> kept = {};
};

}  // namespace holdfast::sim::explore
