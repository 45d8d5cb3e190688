#include "engine/call.hpp"

#include "engine/voter.hpp"

namespace holdfast::engine {

// The slot in the hold is cleared first: what follows may start the next call of the same kind.
void call::on_reply(const redis::reply_view& reply, instant now) {
    if (subject_ != nullptr) {
        ballot& subject = *subject_;
        switch (what_) {
            case purpose::acquire:
                subject.errands_->asking = nullptr;
                owner_.answered_acquire(subject, *this, reply, now);
                break;
            case purpose::release:
                subject.errands_->leaving = nullptr;
                owner_.answered_release(subject, reply, now);
                break;
            case purpose::renew:
                subject.errands_->renewing = nullptr;
                owner_.answered_renew(subject, *this, reply, now);
                break;
            case purpose::change:
            case purpose::cancel:
                subject.errands_->changing = nullptr;
                owner_.answered_change(subject, *this, reply, now);
                break;
            case purpose::raise:
                subject.errands_->raising = nullptr;
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
                subject.errands_->asking = nullptr;
                owner_.failed_acquire(subject, why, now);
                break;
            case purpose::release:
                subject.errands_->leaving = nullptr;
                owner_.failed_release(subject, why, now);
                break;
            case purpose::renew:
                subject.errands_->renewing = nullptr;
                owner_.failed_renew(subject, why, now);
                break;
            case purpose::change:
            case purpose::cancel:
                subject.errands_->changing = nullptr;
                owner_.failed_change(subject, why, now);
                break;
            case purpose::raise:
                subject.errands_->raising = nullptr;
                owner_.failed_raise(subject, why, now);
                break;
        }
    }
    owner_.finish_call(*this);
}

}  // namespace holdfast::engine
