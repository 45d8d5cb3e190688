#include "engine/call.hpp"

#include "engine/voter.hpp"

namespace holdfast::engine {

void call::leave(const std::unique_ptr<ballot::errands_state>& errands, call* ballot::errands_state::*slot) noexcept {
    if (errands && (*errands).*slot == this) (*errands).*slot = nullptr;
}

// The slot in the ballot is cleared first: what follows may start the next call of the same kind.
void call::on_reply(const redis::reply_view& reply, instant now) {
    if (subject_ != nullptr) {
        ballot& subject = *subject_;
        switch (what_) {
            case purpose::acquire:
                leave(subject.errands_, &ballot::errands_state::asking);
                owner_.answered_acquire(subject, *this, reply, now);
                break;
            case purpose::release:
                leave(subject.errands_, &ballot::errands_state::leaving);
                owner_.answered_release(subject, reply, now);
                break;
            case purpose::release_alone:
                leave(subject.errands_, &ballot::errands_state::leaving);
                owner_.answered_release_alone(subject, reply, now);
                break;
            case purpose::renew:
            case purpose::renew_again:
            case purpose::renew_alone:
                leave(subject.errands_, &ballot::errands_state::renewing);
                owner_.answered_renew(subject, *this, reply, now);
                break;
            case purpose::change:
            case purpose::cancel:
                leave(subject.errands_, &ballot::errands_state::changing);
                owner_.answered_change(subject, *this, reply, now);
                break;
            case purpose::raise:
                leave(subject.errands_, &ballot::errands_state::raising);
                owner_.answered_raise(subject, reply, now);
                break;
        }
    }
    owner_.finish_call(*this);
}

void call::on_failure(const failure& why, instant now) {
    if (subject_ != nullptr) {
        ballot& subject = *subject_;
        switch (what_) {
            case purpose::acquire:
                leave(subject.errands_, &ballot::errands_state::asking);
                owner_.failed_acquire(subject, why, now);
                break;
            case purpose::release:
                leave(subject.errands_, &ballot::errands_state::leaving);
                owner_.failed_release(subject, why, now);
                break;
            case purpose::release_alone:
                leave(subject.errands_, &ballot::errands_state::leaving);
                owner_.failed_release_alone(subject, why, now);
                break;
            case purpose::renew:
            case purpose::renew_again:
            case purpose::renew_alone:
                leave(subject.errands_, &ballot::errands_state::renewing);
                owner_.failed_renew(subject, why, now);
                break;
            case purpose::change:
            case purpose::cancel:
                leave(subject.errands_, &ballot::errands_state::changing);
                owner_.failed_change(subject, why, now);
                break;
            case purpose::raise:
                leave(subject.errands_, &ballot::errands_state::raising);
                owner_.failed_raise(subject, why, now);
                break;
        }
    }
    owner_.finish_call(*this);
}

}  // namespace holdfast::engine
