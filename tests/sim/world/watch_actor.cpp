#include "world/watch_actor.hpp"

#include <utility>

namespace holdfast::sim {

using namespace std::chrono_literals;

watch_actor::watch_actor(actor::environment where, std::shared_ptr<const wire::lock_keys> keys, random_stream random,
                         std::string name)
    : env_(std::move(where)),
      keys_(std::move(keys)),
      random_(random),
      name_(std::move(name)),
      comes_and_goes_(random_.percent(40)) {}

void watch_actor::after(nanoseconds wait, void (watch_actor::*what)()) {
    env_.time.after(wait, [this, what] { env_.process.when_awake([this, what] { (this->*what)(); }); });
}

void watch_actor::start() {
    after(random_.within({0ns, random_.percent(50) ? nanoseconds(0) : nanoseconds(2s)}), &watch_actor::begin);
}

void watch_actor::died() {
    if (known_) known_->over = true;
}

void watch_actor::begin() {
    if (env_.trace) env_.trace(name_ + " watches " + keys_->lock());
    known_ = env_.check.watches().begins({.name = name_,
                                          .client = env_.process.engine().id().text(),
                                          .keys = keys_,
                                          .has_id = [this](std::string_view id) { return which_->has_id(id); }});
    watch();
    if (env_.load.broken_watcher == watch_mutant::forgets) after(300ms, &watch_actor::watch_anew);
    if (comes_and_goes_) after(random_.within({1ms, 3s}), &watch_actor::stop);
}

void watch_actor::watch() {
    const std::shared_ptr<engine::watch_listener> me(std::shared_ptr<void>(), this);
    which_ = &env_.process.engine().watch(keys_, me, env_.process.now());
}

void watch_actor::unwatch() {
    env_.process.engine().unwatch(*std::exchange(which_, nullptr), env_.process.now());
}

void watch_actor::stop() {
    if (env_.time.now() >= env_.load.stop) return;
    if (env_.trace) env_.trace(name_ + " watches no longer");
    known_->over = true;
    unwatch();
    after(random_.within({1ms, 1s}), &watch_actor::begin);
}

// Mutant: what was told before is not remembered.
void watch_actor::watch_anew() {
    if (which_ == nullptr) return;
    unwatch();
    watch();
    after(300ms, &watch_actor::watch_anew);
}

void watch_actor::on_sight(const wire::watch_answer& seen) {
    if (env_.load.broken_watcher != watch_mutant::tells_late) return env_.check.watches().told(*known_, seen);
    env_.time.after(random_.within({0ns, 40ms}), [this, seen] {
        if (!known_->over) env_.check.watches().told(*known_, seen);
    });
}

void watch_actor::on_trouble(const failure& why) {
    env_.check.told(name_, why.code);
}

}  // namespace holdfast::sim
