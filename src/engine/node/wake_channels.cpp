#include "engine/node/wake_channels.hpp"

#include "base/assert.hpp"

namespace holdfast::engine {

wake_channels::wake_channels(channels kind, std::string client, outbox& out, agenda& todo)
    : kind_(kind), client_(std::move(client)), out_(out), todo_(todo), name_(wire::channel_of(client_)) {}

const std::string& wake_channels::of(const lock_keys& lock) {
    if (!is_common()) name_ = wire::channel_of(lock, client_);
    return name_;
}

void wake_channels::enter(const lock_keys& lock) {
    if (is_common()) return;
    ++by_name_.try_emplace(of(lock), channel{.lock = lock}).first->second.listeners;
}

void wake_channels::leave(const lock_keys& lock) {
    if (is_common()) return;
    const auto found = by_name_.find(of(lock));
    HOLDFAST_ASSERT(found != by_name_.end());
    if (--found->second.listeners > 0) return;
    const bool was_subscribed = found->second.subscribed;
    by_name_.erase(found);
    if (was_subscribed) todo_.add(effects::unsubscribe{&out_, todo_.keep(name_)});
}

void wake_channels::subscribe(const lock_keys& lock) {
    const std::string& name = of(lock);
    bool& subscribed = is_common() ? common_subscribed_ : by_name_.at(name).subscribed;
    if (!std::exchange(subscribed, true)) todo_.add(effects::subscribe{&out_, todo_.keep(name)});
}

void wake_channels::refused(const lock_set& which) {
    common_subscribed_ = false;
    for (auto& [name, one] : by_name_) {
        if (which.has(one.lock)) one.subscribed = false;
    }
}

}  // namespace holdfast::engine
