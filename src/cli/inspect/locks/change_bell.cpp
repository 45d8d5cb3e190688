#include "cli/inspect/locks/change_bell.hpp"

namespace holdfast::cli {

change_bell::change_bell(const client& link, const lock_ref& where, const std::string& prefix) {
    if (where.naming != wire::key_naming::tagged) return;
    eye_ = holdfast::watch(link, std::string(where.keys.name()), [this](const sight& seen) { on_sight(seen); },
                           {.prefix = prefix, .on_trouble = [this](const refusal& why) { on_trouble(why.code); }});
}

bool change_bell::was_free() const {
    const std::lock_guard guard(mutex_);
    return was_free_;
}

bool change_bell::will_tell() const {
    const std::lock_guard guard(mutex_);
    return will_tell_;
}

void change_bell::on_sight(const sight& seen) {
    const std::lock_guard guard(mutex_);
    was_free_ = was_free_ || seen.is_free();
    will_tell_ = !seen.is_free() && wire::is_ours(seen.holder);
    rung_.raise();
}

void change_bell::on_trouble(errc why) {
    const std::lock_guard guard(mutex_);
    will_tell_ = false;
    if (why != errc::no_permission) return;
    may_not_ = true;
    rung_.raise();
}

// A question that is refused for ever would only fill the server's log.
void change_bell::answer() noexcept {
    rung_.lower();
    std::unique_lock guard(mutex_);
    const bool is_of_no_use = may_not_;
    guard.unlock();  // stop() waits for a callback
    if (is_of_no_use) eye_.stop();
}

}  // namespace holdfast::cli
