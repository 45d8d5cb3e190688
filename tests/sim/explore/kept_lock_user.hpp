// A user of a lock that its process keeps: like lock_user, but it acquires local grants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "explore/lock_user.hpp"
#include "world/keeper.hpp"

namespace holdfast::sim::explore {

class kept_lock_user final : public user, private kept_user {
public:
    kept_lock_user(client& process, keeper& at, checker& check, lock_user_setup setup);

    bool may_step() const override { return at_ < steps().size() && !asking_; }
    std::string next_step() const override { return setup_.name + " " + std::string(name_of(steps()[at_])); }
    void step() override;
    bool has_begun() const override { return at_ > 0; }
    bool is_done() const override { return at_ == steps().size() && !asking_; }
    void begin_nothing_more() override { is_ending_ = true; }
    void died() override {
        if (belief_) belief_->die();
    }
    std::string describe() const override {
        return setup_.name + (asking_ ? " waits for" : mine_ ? " holds" : " does not use") + " what its process keeps";
    }

private:
    const std::vector<act>& steps() const { return setup_.what.steps; }
    bool is_to_skip() const;
    void skip();
    void ask(engine::access want);
    void upgrade();
    void downgrade();
    void take_number();
    void release();
    bool is_expected(errc why) const;
    void note(const std::string& what) const;

    void granted(kept_claim& what) override;
    void refused(kept_claim& what, errc why) override;
    void lost(kept_claim& what, errc why) override;

    client& process_;
    keeper& keeper_;
    checker& check_;
    const lock_user_setup setup_;
    std::size_t at_ = 0;
    bool asking_ = false;
    bool is_ending_ = false;
    bool is_lost_ = false;
    instant asked_at_{};
    std::unique_ptr<kept_claim> wish_;  // of the request in flight
    std::unique_ptr<kept_claim> mine_;  // what it holds
    std::vector<std::unique_ptr<kept_claim>> past_;
    std::shared_ptr<belief> belief_;
};

}  // namespace holdfast::sim::explore
