// Somebody who uses locks: asks for one in some way, holds it for a while, perhaps enters again, renews, upgrades,
// downgrades or changes its mind, and lets go. Whatever it is told goes to the judge.
//
// Like a thread of a program, it acts only while its process is awake, and never from within a callback.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "world/client.hpp"
#include "world/judge.hpp"

namespace holdfast::sim {

struct lock_plan {
    std::shared_ptr<const wire::lock_keys> keys;
    wire::lock_kind kind = wire::lock_kind::mutex;
    wire::preference prefer = wire::preference::arrival;
};

/// How people behave on this day.
struct habits {
    std::vector<lock_plan> locks;
    std::vector<milliseconds> leases;
    chance::span rest{milliseconds(1), milliseconds(300)};
    chance::span hold{microseconds(100), milliseconds(150)};
    engine::packed_acknowledgement acknowledged_by = {};
    std::uint16_t yield_after_ms = 50;
    bool replicas_may_lag = false;
    unsigned try_percent = 15;
    unsigned deadline_percent = 40;  // of those who wait
    unsigned cancel_percent = 10;
    unsigned owner_percent = 30;
    unsigned fixed_percent = 25;
    unsigned renew_percent = 15;
    // on read-write locks
    unsigned read_percent = 60;
    unsigned upgrade_percent = 25;
    unsigned downgrade_percent = 25;
    unsigned lets_go_percent = 30;
    instant stop{};  // nothing new is begun after this
    // Mutants: what the engine is not told.
    bool deadlines_forgotten = false;
    bool answers_forgotten = false;
    bool cancellations_forgotten = false;

    milliseconds longest_lease() const { return *std::max_element(leases.begin(), leases.end()); }
};

class actor final : public engine::acquire_completion, public engine::hold_listener {
public:
    struct place {
        timeline& time;
        client& home;
        judge& watch;
        const habits& ways;
        std::function<void(const std::string&)> trace;
    };
    actor(place where, chance luck, std::string name, std::uint64_t owner);

    void start() { rest(); }
    /// Nothing wanted and nothing held.
    bool idle() const { return !asking_ && held_ == nullptr; }
    bool waits_for(const std::string& lock) const {
        return asking_ && held_ == nullptr && terms_.keys->lock() == lock &&
               terms_.limit.wait == engine::waiting::in_queue;
    }
    instant asked_at() const { return asked_at_; }
    /// Its process is gone, and its beliefs with it.
    void died() {
        if (belief_) belief_->over = true;
    }
    std::string describe() const;

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
        void answered(const std::optional<engine::refusal>&) override {
            done = true;
            if (under_way_ != nullptr) *under_way_ = false;
        }
        bool done = false;

    private:
        bool* under_way_;
    };
    static constexpr milliseconds request_time{500};

    void rest();
    void after(nanoseconds wait, void (actor::*what)());
    void ask();
    engine::acquire_terms draw_terms();
    void expect_end(instant deadline, std::uint64_t serial);
    engine::patience draw_patience(chance& luck) const;
    void plan_cancel(chance& luck);
    void carry_on();
    void enter_again();
    void renew();
    void release(engine::access level);
    unsigned depth() const;
    engine::acquire_terms as_before() const;  // of what is held

    // on read-write locks (actor_rw.cpp)
    void carry_on_rw();
    void enter_again_rw();
    void upgrade();
    void downgrade();
    void plan_walking_out();
    void walk_out();
    void about_to_hold(unsigned exclusive, unsigned shared);

    void expect_answer(const std::shared_ptr<answer>& asked, instant deadline);
    void note(const std::string& what) const;
    void begin(engine::patience limit);
    bool is_to_be_expected(errc why) const;
    bool is_told_too_early(errc why) const;

    place where_;
    chance luck_;
    chance rw_luck_;  // of its own, so that days without read-write locks are what they were before there were any
    std::string name_;
    engine::owner_id owner_;
    engine::acquire_terms terms_;
    bool asking_ = false;
    bool cancelled_ = false;  // the present request
    instant asked_at_{};
    engine::patience patience_;  // of the present request
    std::uint64_t serial_ = 0;
    engine::hold* held_ = nullptr;
    bool walking_out_ = false;
    bool renewing_ = false;
    instant granted_at_{};
    std::shared_ptr<belief> belief_;
    std::vector<std::shared_ptr<answer>> answers_;
};

}  // namespace holdfast::sim
