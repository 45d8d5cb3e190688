// A user that watches a mutex and does not want it. Some come and go.
#pragma once

#include <memory>
#include <string>

#include "engine/node/lock_watch.hpp"
#include "world/actor.hpp"

namespace holdfast::sim {

class watch_actor final : public user, public engine::watch_listener {
public:
    watch_actor(actor::environment where, std::shared_ptr<const wire::lock_keys> keys, random_stream random,
                std::string name);

    void start() override;
    bool idle() const override { return true; }
    bool waits_for(const std::string&) const override { return false; }
    bool keeps(const std::string&) const override { return false; }
    bool has_own_position() const override { return false; }
    instant asked_at() const override { return {}; }
    void died() override;
    std::string describe() const override { return name_ + " watches " + keys_->lock(); }

    void on_sight(const wire::watch_answer& seen) override;
    void on_trouble(const failure& why) override;

private:
    void after(nanoseconds wait, void (watch_actor::*what)());
    void begin();
    void watch();
    void stop();
    void watch_anew();
    void unwatch();

    actor::environment env_;
    const std::shared_ptr<const wire::lock_keys> keys_;
    random_stream random_;
    const std::string name_;
    const bool comes_and_goes_;
    engine::lock_watch* which_ = nullptr;
    std::shared_ptr<watcher> known_;
};

}  // namespace holdfast::sim
