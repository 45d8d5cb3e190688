#include "api/posted_release.hpp"

#include "base/recycled.hpp"

#include <utility>

namespace holdfast::api {

void posted_release::start(std::shared_ptr<hold_face> target, engine::access level) {
    const auto keep_core = target->where().shared_from_this();  // until begin() has returned
    auto* const made = new posted_release(*keep_core, level);
    made->face_ = std::move(target);
    begin(*made);
}

void posted_release::start(const std::shared_ptr<core>& where, hold_operation::owned_hold target, engine::access level,
                           lock_count locked) {
    auto* const made = new posted_release(*where, level);
    made->owned_ = std::move(target);
    made->locked_ = std::move(locked);
    begin(*made);
}

void posted_release::begin(posted_release& release) {
    release.core_.release_is_posted();
    if (release.core_.loop().has_company()) {
        enter_in_company(release.core_, release);
    } else {
        release.core_.enter(release);
    }
}

void posted_release::run() {
    const auto face = std::exchange(face_, nullptr);  // from here on the core waits for us, and not we keep it
    engine::hold* const held = face ? face->held() : core_.engine().find(owned_.owner, *owned_.keys);
    if (held == nullptr || held->levels(level_) == 0) return end();
    if (locked_) count_down(*locked_);
    const instant now = boot_now();
    core_.engine().release(*held, level_, this, answer_by(core_, *held, now), now);
}

void posted_release::end() {
    const std::unique_ptr<posted_release> self(this);
    core_.posted_release_has_ended();
}

void* posted_release::operator new(std::size_t) {
    return recycled<sizeof(posted_release)>::take();
}

void posted_release::operator delete(void* room) noexcept {
    recycled<sizeof(posted_release)>::give_back(room);
}

}  // namespace holdfast::api
