// One user of locks, like a thread of a program: it acquires a lock, holds it for a while, perhaps re-enters, renews,
// upgrades, downgrades or cancels, and releases. It reports every result to the checker.
//
// Invariants:
//  (1) An actor acts only while its process is awake, and never from within a callback of the engine.
//  (2) It has at most one request to acquire or upgrade in flight, and at most one hold.
//  (3) It believes in less before it asks the engine for less, and in more only after the engine said so.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "world/checker.hpp"
#include "world/client.hpp"
#include "world/user.hpp"

namespace holdfast::sim {

struct lock_plan {
    std::shared_ptr<const wire::lock_keys> keys;
    wire::lock_kind kind = wire::lock_kind::mutex;
    wire::preference prefer = wire::preference::arrival;
    std::uint32_t limit = 1;  // of a semaphore
};

/// Ways to break what stands between the engine and a user that watches.
enum class watch_mutant : std::uint8_t {
    none,
    forgets,          // what was told before, from time to time
    tells_late,       // each on a thread of its own
    subscribes_late,  // long after it has asked
    is_deaf,          // to messages of changes
};

/// How the actors of a scenario behave.
struct workload {
    std::vector<lock_plan> locks;
    std::vector<milliseconds> leases;
    random_stream::span rest{milliseconds(1), milliseconds(300)};
    random_stream::span hold{microseconds(100), milliseconds(150)};
    std::uint8_t replicas = 0;
    std::uint16_t replica_timeout_ms = 0;
    std::uint16_t yield_after_ms = 50;
    bool replicas_may_lag = false;
    bool limits_differ = false;  // of semaphores: a few declare another one, and operators resize
    milliseconds delay{0};       // of mutexes, after a hold has expired
    unsigned try_percent = 15;
    unsigned deadline_percent = 40;  // of the requests that wait in the queue
    unsigned cancel_percent = 10;
    unsigned owner_percent = 30;
    unsigned fixed_percent = 25;
    unsigned renew_percent = 15;
    unsigned note_percent = 0;
    // For read-write locks.
    unsigned read_percent = 60;
    unsigned upgrade_percent = 25;
    unsigned downgrade_percent = 25;
    unsigned release_percent = 30;
    instant stop{};  // no acquisition starts after this
    // Mutants: what the actor does not tell the engine.
    bool deadlines_ignored = false;
    bool answers_ignored = false;
    bool cancellations_ignored = false;
    bool delay_ignored = false;
    watch_mutant broken_watcher = watch_mutant::none;

    engine::patience draw_patience(random_stream& random, instant now) const {
        engine::patience out;
        if (random.percent(try_percent)) {
            out.wait = engine::waiting::not_at_all;
            out.deadline = now + request_time;
        } else if (random.percent(deadline_percent)) {
            out.deadline = now + random.within({milliseconds(1), milliseconds(2500)});
        }
        return out;
    }
    // At the servers.
    milliseconds longest_lease() const { return *std::max_element(leases.begin(), leases.end()) + delay; }
    milliseconds delay_of(wire::lock_kind kind) const {
        return kind == wire::lock_kind::mutex ? delay : milliseconds(0);
    }
};

class actor final : public user, public engine::acquire_completion, public engine::hold_listener {
public:
    struct environment {
        timeline& time;
        client& process;
        checker& check;
        const workload& load;
        std::function<void(const std::string&)> trace;
    };
    actor(environment where, random_stream random, std::string name, std::uint64_t owner);

    void start() override { rest(); }
    bool idle() const override { return !asking_ && held_ == nullptr; }
    bool waits_for(const std::string& lock) const override {
        return asking_ && held_ == nullptr && terms_.keys->lock() == lock &&
               terms_.limit.wait == engine::waiting::in_queue;
    }
    bool keeps(const std::string& lock) const override {
        return held_ != nullptr && held_->terms().keys->lock() == lock;
    }
    bool has_own_position() const override { return true; }
    instant asked_at() const override { return asked_at_; }
    void died() override {
        if (belief_) belief_->die();
    }
    std::string describe() const override;

    void acquired(engine::hold& held) override;
    void refused(const engine::refusal& why) override;
    void on_validity(instant until) override;
    void on_token(engine::fencing_token token) override;
    void on_lost(errc why) override;
    void on_gone() override {}

private:
    class answer final : public engine::hold_completion {
    public:
        explicit answer(bool* under_way = nullptr) : under_way_(under_way) {}
        void answered(const std::optional<engine::refusal>& why_not) override {
            done = true;
            if (check) check(why_not ? std::optional(why_not->code) : std::nullopt);
            if (under_way_ != nullptr) *under_way_ = false;
        }
        bool done = false;
        std::function<void(std::optional<errc> why_not)> check;

    private:
        bool* under_way_;
    };

    void rest();
    void after(nanoseconds wait, void (actor::*what)());
    void ask();
    engine::acquire_terms draw_terms();
    void expect_end(instant deadline, std::uint64_t serial);
    void plan_cancel(random_stream& random);
    void next_step();
    void reenter();
    void renew();
    void release(engine::access level);
    unsigned depth() const;
    engine::acquire_terms terms_of_hold() const;

    // Read-write locks: actor_rw.cpp.
    void next_step_rw();
    void reenter_rw();
    void upgrade();
    void downgrade();
    void plan_release_during_upgrade();
    void release_during_upgrade();
    void note_remaining_levels(unsigned exclusive, unsigned shared);

    void expect_answer(const std::shared_ptr<answer>& asked, instant deadline);
    void note(const std::string& what) const;
    void begin(engine::patience limit);
    bool is_expected(errc why) const;
    bool is_too_early(errc why) const;

    environment env_;
    random_stream random_;
    random_stream permits_random_;
    random_stream note_random_;
    random_stream rw_random_;  // a stream of its own: scenarios without read-write locks draw what they drew before
                               // these locks existed
    std::string name_;
    engine::owner_id owner_;
    engine::acquire_terms terms_;
    bool asking_ = false;
    bool cancelled_ = false;  // the request in flight
    instant asked_at_{};
    engine::patience patience_;  // of the request in flight
    std::uint64_t serial_ = 0;
    engine::hold* held_ = nullptr;
    bool releasing_all_ = false;
    bool renewing_ = false;
    instant granted_at_{};
    std::shared_ptr<belief> belief_;
    std::vector<std::shared_ptr<answer>> answers_;
};

}  // namespace holdfast::sim
