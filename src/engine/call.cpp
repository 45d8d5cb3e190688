#include "engine/call.hpp"

#include "engine/node_agent.hpp"

#include <algorithm>

namespace holdfast::engine {

call::slot call::place() const noexcept {
    switch (what_) {
        case purpose::acquire:
        case purpose::confirm_grant:
            return &node_hold::requests_in_flight::asking;
        case purpose::release:
        case purpose::release_alone:
            return &node_hold::requests_in_flight::leaving;
        case purpose::renew:
        case purpose::renew_again:
        case purpose::renew_alone:
        case purpose::confirm_renewal:
            return &node_hold::requests_in_flight::renewing;
        case purpose::change:
        case purpose::cancel:
            return &node_hold::requests_in_flight::changing;
        case purpose::raise:
        case purpose::confirm_raise:
            break;
    }
    return &node_hold::requests_in_flight::raising;
}

node_hold& call::leave() noexcept {
    const std::unique_ptr<node_hold::requests_in_flight>& in_flight = subject_->in_flight_;
    if (in_flight && (*in_flight).*place() == this) (*in_flight).*place() = nullptr;
    return *subject_;
}

void call::on_reply(const redis::reply_view& reply, instant now) {
    if (subject_ != nullptr) {
        node_hold& subject = leave();
        switch (what_) {
            case purpose::acquire:
                owner_.answered_acquire(subject, *this, reply, now);
                break;
            case purpose::release:
                owner_.answered_release(subject, reply, now);
                break;
            case purpose::release_alone:
                owner_.answered_release_alone(subject, reply, now);
                break;
            case purpose::renew:
            case purpose::renew_again:
            case purpose::renew_alone:
                owner_.answered_renew(subject, *this, reply, now);
                break;
            case purpose::change:
            case purpose::cancel:
                owner_.answered_change(subject, *this, reply, now);
                break;
            case purpose::raise:
                owner_.answered_raise(subject, reply, now);
                break;
            case purpose::confirm_grant:
            case purpose::confirm_renewal:
            case purpose::confirm_raise:
                owner_.answered_confirm(subject, *this, reply, now);
                break;
        }
    }
    owner_.finish_call(*this);
}

// Less than was proved, if the server that has it now took over from the one that proved it, and was behind.
void call::on_shown(milliseconds left, instant asked_at) {
    if (subject_ == nullptr) return;
    shown_.at = std::min(shown_.at, asked_at + left - owner_.terms_of(*subject_).lease);
}

void call::on_failure(const failure& why, instant now) {
    if (subject_ != nullptr) {
        node_hold& subject = leave();
        switch (what_) {
            case purpose::acquire:
                owner_.failed_acquire(subject, why, now);
                break;
            case purpose::release:
                owner_.failed_release(subject, why, now);
                break;
            case purpose::release_alone:
                owner_.failed_release_alone(subject, why, now);
                break;
            case purpose::renew:
            case purpose::renew_again:
            case purpose::renew_alone:
                owner_.failed_renew(subject, why, now);
                break;
            case purpose::change:
            case purpose::cancel:
                owner_.failed_change(subject, why, now);
                break;
            case purpose::raise:
                owner_.failed_raise(subject, why, now);
                break;
            case purpose::confirm_grant:
            case purpose::confirm_renewal:
            case purpose::confirm_raise:
                owner_.not_confirmed(subject, *this, why, now);
                break;
        }
    }
    owner_.finish_call(*this);
}

}  // namespace holdfast::engine
