#include "api/operations/hold_face.hpp"

#include <algorithm>

namespace holdfast::api {

std::shared_ptr<hold_face> hold_face::of(engine::hold& held, std::shared_ptr<hold_face> fresh) {
    if (held.listener() != nullptr) return std::static_pointer_cast<hold_face>(held.listener());
    fresh->hold_ = &held;
    fresh->kind_ = held.options().kind;
    fresh->on_token(held.token());
    fresh->id_ = held.id();
    const auto nodes = held.nodes();
    const auto known = std::ranges::find_if(nodes, [](const engine::node_hold& n) { return n.counts(); });
    if (known != nodes.end()) fresh->mark_ = known->mark;
    fresh->keys_ = held.terms().keys;
    fresh->valid_until_.store(held.valid_until(), std::memory_order_relaxed);
    held.listen(fresh);
    return fresh;
}

// Of on_lost() and lost(), whichever comes second sees what the other has done: hence the strict order.
void hold_face::on_lost(errc why) {
    why_lost_.store(why, std::memory_order_relaxed);
    is_lost_.store(true, std::memory_order_seq_cst);
    const std::stop_source* const source = lost_.load(std::memory_order_seq_cst);
    if (source != nullptr) fire(*source);  // otherwise whoever asks later finds it stopped
}

// request_stop() runs the user's callbacks: not here. They may end the last lease, so the source goes along.
void hold_face::fire(const std::stop_source& source) const {
    if (source.stop_requested()) return;
    core_.notifier().notify([source]() mutable { source.request_stop(); });
}

std::stop_token hold_face::lost() const {
    std::stop_source* source = lost_.load(std::memory_order_seq_cst);
    if (source == nullptr) {
        auto made = std::make_unique<std::stop_source>();
        if (is_lost_.load(std::memory_order_seq_cst)) made->request_stop();  // nobody listens yet
        if (lost_.compare_exchange_strong(source, made.get(), std::memory_order_seq_cst)) {
            source = made.release();
            // Lost meanwhile: somebody else may have asked, too, and listen by now.
            if (is_lost_.load(std::memory_order_seq_cst)) fire(*source);
        }
    }
    return source->get_token();
}

}  // namespace holdfast::api
