#include "api/operations/posted_release.hpp"

#include "api/operations/blocking.hpp"

#include <new>
#include <utility>
#include <vector>

namespace holdfast::api {

bool posted_release::start(std::shared_ptr<hold_face> target, engine::access level) noexcept {
    posted_release* const made = make(target->where(), level);
    if (made == nullptr) return false;
    made->face_ = std::move(target);
    made->begin();
    return true;
}

bool posted_release::start(core& where, hold_operation::owned_hold target, engine::access level,
                           lock_count locked) noexcept {
    posted_release* const made = make(where, level);
    if (made == nullptr) return false;
    made->owned_ = std::move(target);
    made->locked_ = std::move(locked);
    made->begin();
    return true;
}

// Owns itself until it has run.
class posted_release::group final : private serial_task {
public:
    static void start(const std::vector<std::shared_ptr<hold_face>>& targets) {
        auto made = std::make_unique<group>();
        made->parts_.reserve(targets.size());
        for (const auto& target : targets) {
            made->parts_.emplace_back(new posted_release(target->where(), engine::access::exclusive))->face_ = target;
        }
        core& where = targets.front()->where();
        for (std::size_t i = 0; i < targets.size(); ++i) where.release_is_posted();
        enter(where, *made.release(), usual_sending(where));
        if (where.is_sending() && may_block()) where.loop().glance();
    }

private:
    void run() override {
        const std::unique_ptr<group> self(this);
        engine::engine& engine = parts_.front()->core_.engine();
        engine.begin_together();
        for (auto& part : parts_) part.release()->run();
        engine.end_together(boot_now());
    }

    std::vector<std::unique_ptr<posted_release>> parts_;
};

void posted_release::start_together(const std::vector<std::shared_ptr<hold_face>>& targets) {
    group::start(targets);
}

posted_release* posted_release::make(core& where, engine::access level) noexcept {
    try {
        return new posted_release(where, level);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void posted_release::begin() noexcept {
    core& where = core_;  // enter() may destroy this object
    where.release_is_posted();
    enter(where, *this, usual_sending(where));
    // Without a thread that drives the loop, the rest of an unfinished write would not be sent.
    if (where.is_sending() && may_block()) where.loop().glance();
}

void posted_release::run() {
    engine::hold* const held = face_ ? face_->held() : core_.engine().find(owned_.owner, *owned_.keys);
    if (held == nullptr || held->levels(level_) == 0) return end();
    if (owned_.number != 0 && held->id().counter() != owned_.number) return end();
    count_down(locked_);
    const instant now = boot_now();
    core_.engine().release(*held, level_, this, answer_by(core_, *held, now), now);
}

}  // namespace holdfast::api
