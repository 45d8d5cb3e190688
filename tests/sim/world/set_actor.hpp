// A user of several locks at once, as `lock_all`: tries all together, holds them, and releases them together.
//
// If not all are acquired, it releases what it has and tries again later: it never waits with a lock in its hand.
#pragma once

#include <memory>
#include <vector>

#include "world/actor.hpp"

namespace holdfast::sim {

class set_actor final : public user {
public:
    set_actor(actor::environment where, random_stream random, std::string name);

    void start() override { rest(); }
    bool idle() const override { return members_.empty(); }
    bool waits_for(const std::string&) const override { return false; }
    bool keeps(const std::string& lock) const override;
    bool has_own_position() const override { return false; }
    instant asked_at() const override { return asked_at_; }
    void died() override;
    std::string describe() const override { return name_ + " wants several locks"; }

private:
    // One of the locks.
    class member final : public engine::acquire_completion, public engine::hold_listener {
    public:
        member(set_actor& whole, engine::acquire_terms terms) : whole_(whole), terms_(std::move(terms)) {}

        void ask();
        void release();
        bool is_answered() const { return answered_; }
        engine::hold* held() const { return held_; }
        const std::string& lock() const { return terms_.keys->lock(); }
        const std::shared_ptr<belief>& believed() const { return belief_; }

        void acquired(engine::hold& held) override;
        void refused(const engine::refusal& why) override;
        void on_validity(instant until) override;
        void on_token(engine::fencing_token token) override { belief_->token = token; }
        void on_lost(errc why) override;
        void on_gone() override {}

    private:
        set_actor& whole_;
        const engine::acquire_terms terms_;
        engine::hold* held_ = nullptr;
        std::shared_ptr<belief> belief_;
        bool answered_ = false;
    };

    void rest();
    void after(nanoseconds wait, void (set_actor::*what)());
    void ask();
    void answered();
    void release();
    void note(const std::string& what) const;

    actor::environment env_;
    random_stream random_;
    std::string name_;
    instant asked_at_{};
    std::vector<std::unique_ptr<member>> members_;
    std::vector<std::unique_ptr<member>> former_;  // the engine may still name them
};

}  // namespace holdfast::sim
