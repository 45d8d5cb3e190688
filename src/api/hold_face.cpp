#include "api/hold_face.hpp"

#include <utility>

namespace holdfast::api {

std::shared_ptr<hold_face> hold_face::of(engine::hold& held, std::shared_ptr<hold_face> fresh) {
    if (held.listener() != nullptr) return std::static_pointer_cast<hold_face>(held.listener());
    fresh->hold_ = &held;
    fresh->kind_ = held.terms().kind;
    fresh->on_token(held.token());
    fresh->id_ = held.id().text();
    fresh->keys_ = held.terms().keys;
    fresh->valid_until_.store(held.valid_until(), std::memory_order_relaxed);
    held.listen(fresh);
    return fresh;
}

void hold_face::on_validity(instant until) {
    valid_until_.store(until, std::memory_order_relaxed);
}

void hold_face::on_lost(errc) {
    is_lost_.store(true, std::memory_order_relaxed);
    // request_stop() runs the user's callbacks: not here. They may end the last lease, so the face goes along.
    core_->notifier().notify([source = lost_]() mutable { source.request_stop(); });
}

}  // namespace holdfast::api
