// One user of a lock that its client keeps: like an actor, but it acquires local grants. Others of its process may use
// the same hold before and after it.
#pragma once

#include "world/actor.hpp"
#include "world/keeper.hpp"
#include "world/user.hpp"

namespace holdfast::sim {

class kept_actor final : public user, private kept_user {
public:
    kept_actor(actor::environment where, std::vector<keeper*> keepers, random_stream random, std::string name,
               std::uint64_t owner);

    void start() override { rest(); }
    bool idle() const override { return !asking_ && !mine_; }
    bool waits_for(const std::string& lock) const override { return asking_ && !mine_ && at_->lock() == lock; }
    bool keeps(const std::string& lock) const override { return mine_ && at_->lock() == lock; }
    bool has_own_position() const override { return false; }
    instant asked_at() const override { return asked_at_; }
    void died() override {
        if (belief_) belief_->over = true;
    }
    std::string describe() const override;

private:
    void granted(kept_claim& what) override;
    void refused(kept_claim& what, errc why) override;
    void lost(kept_claim& what, errc why) override;

    void rest();
    void after(nanoseconds wait, void (kept_actor::*what)());
    void ask();
    std::unique_ptr<kept_claim> make_claim();
    void begin(kept_claim& what);
    void plan_cancel();
    void expect_end(instant deadline, std::uint64_t serial);
    bool is_expected(errc why) const;
    void next_step();
    void take_number();
    void reenter();
    void upgrade();
    void release();
    void note(const std::string& what) const;

    actor::environment env_;
    std::vector<keeper*> keepers_;
    random_stream random_;
    std::string name_;
    engine::owner_id owner_;
    keeper* at_ = nullptr;
    std::unique_ptr<kept_claim> wish_;  // of the request in flight
    std::unique_ptr<kept_claim> mine_;  // what it holds
    std::vector<std::unique_ptr<kept_claim>> past_;
    bool asking_ = false;
    bool cancelled_ = false;
    bool is_lost_ = false;
    instant asked_at_{};
    engine::patience patience_;
    std::uint64_t serial_ = 0;
    engine::fencing_token number_ = 0;  // the last one
    std::shared_ptr<belief> belief_;
};

}  // namespace holdfast::sim
