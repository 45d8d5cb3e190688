#include "engine/node/call.hpp"

#include "engine/hold.hpp"
#include "engine/node/node_agent.hpp"

namespace holdfast::engine {

const node_requests node_hold::none{};

call* node_requests::*call::slot() const noexcept {
    switch (what_) {
        case purpose::acquire:
        case purpose::confirm_grant:
            return &node_requests::asking;
        case purpose::release:
        case purpose::release_alone:
            return &node_requests::leaving;
        case purpose::renew:
        case purpose::renew_again:
        case purpose::renew_alone:
        case purpose::confirm_renewal:
            return &node_requests::renewing;
        case purpose::change:
        case purpose::cancel:
            return &node_requests::changing;
        case purpose::raise:
        case purpose::confirm_raise:
            break;
    }
    return &node_requests::raising;
}

node_hold* call::take_subject() noexcept {
    if (subject_ != nullptr && subject_->requests) {
        call*& pending = (*subject_->requests).*slot();
        if (pending == this) pending = nullptr;
    }
    return subject_;
}

void call::end() {
    owner_.calls().end(*this);
}

void call::on_reply(const redis::reply_view& reply, instant now) {
    owner_.on_reply(*this, reply, now);
}

void call::on_failure(const failure& why, instant now) {
    owner_.on_failure(*this, why, now);
}

// Less than was proved, if the server that has it now took over from the one that proved it, and was behind.
void call::on_shown(milliseconds left, instant asked_at) {
    if (subject_ == nullptr) return;
    shown_.at = std::min(shown_.at, asked_at + left - subject_->whole->options().lease);
}

call& call_pool::start(call::purpose what, node_hold& subject) {
    if (idle_.empty()) {
        all_.push_back(std::make_unique<call>(owner_));
        idle_.push_back(all_.back().get());
    }
    call& fresh = *idle_.back();
    idle_.pop_back();
    fresh.begin(what, subject);
    if (fresh.renews()) ++renewals_;
    return fresh;
}

void call_pool::end(call& ended) {
    if (ended.renews()) --renewals_;
    idle_.push_back(&ended);
}

}  // namespace holdfast::engine
