#include "api/locks/local_waits.hpp"

#include "api/operations/asynchronous.hpp"
#include "base/race_detector.hpp"

#include <boost/asio/error.hpp>
#include <utility>

namespace holdfast::api {

// --- threads

void blocking_local::will_wait(bool for_server) {
    drives_ = for_server;
    if (drives_) lock_->driver_comes();
}

// The waiting thread may be gone as soon as it sees the state.
void blocking_local::end() {
    if (drives_) return lock_->where().loop().end(driven_);
    state_.store(over, std::memory_order_release);
    futex_wake_one(&state_);
}

std::shared_ptr<local_face> blocking_local::wait(kept_lock::answer said, std::stop_token stop) {
    if (said.now == kept_lock::answer::what::granted) return std::move(said.face);
    if (said.now == kept_lock::answer::what::refused) {
        why_ = std::move(said.why);
        return nullptr;
    }
    const std::stop_callback on_stop(std::move(stop), [this, &said] { lock_->cancel(*said.face, errc::cancelled); });
    if (drives_) {
        lock_->where().loop().until(driven_);
        lock_->driver_goes();
    } else {
        while (state_.load(std::memory_order_acquire) == open) futex_wait(state_, open);
    }
    return std::move(face_);
}

std::shared_ptr<local_face> blocking_local::acquire(engine::owner_id owner, engine::access want, engine::patience limit,
                                                    std::stop_token stop) {
    return wait(lock_->acquire(owner, want, limit, *this), std::move(stop));
}

std::shared_ptr<local_face> blocking_local::upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit,
                                                    std::stop_token stop) {
    return wait(lock_->upgrade(*reading, limit, *this), std::move(stop));
}

// --- handlers

void async_local::acquire(engine::owner_id owner, engine::patience limit, std::stop_token stop, refusal* why_not) {
    why_not_ = why_not;
    begin(std::move(stop));
    const auto want = to_access(kind_);
    answered(lock_->acquire(owner, want, limit, *this));
}

void async_local::upgrade(const std::shared_ptr<local_face>& reading, engine::patience limit) {
    begin({});
    answered(lock_->upgrade(*reading, limit, *this));
}

void async_local::begin(std::stop_token stop) {
    self_ = shared_from_this();
    const auto canceller = [this] {
        return [weak = weak_from_this()] {
            if (const auto live = weak.lock()) live->cancel();
        };
    };
    if (handler_->can_be_cancelled()) handler_->on_cancellation(canceller());
    if (stop.stop_possible()) on_stop_.emplace(std::move(stop), canceller());
}

void async_local::cancel() {
    std::shared_ptr<local_face> waits;
    {
        const std::lock_guard held(mutex_);
        is_cancelled_ = true;
        waits = waits_;
    }
    if (waits) lock_->cancel(*waits, errc::cancelled);
}

void async_local::answered(kept_lock::answer said) {
    if (said.now == kept_lock::answer::what::granted) return finish(std::move(said.face), nullptr);
    if (said.now == kept_lock::answer::what::refused) return finish(nullptr, &said.why);
    bool is_cancelled = false;
    {
        const std::lock_guard held(mutex_);
        if (is_over_) return;
        waits_ = said.face;
        is_cancelled = is_cancelled_;
    }
    if (is_cancelled) lock_->cancel(*said.face, errc::cancelled);
}

void async_local::finish(std::shared_ptr<local_face> face, const engine::refusal* why) {
    const auto keep_alive = std::move(self_);
    {
        const std::lock_guard held(mutex_);
        is_over_ = true;
        waits_.reset();
    }
    on_stop_.reset();
    auto& handler = *handler_;
    if (face) race_detector::on_acquired(face->keys().lock());
    if (face) return handler.complete(std::move(handler_), {}, lease_access::make(std::move(face), kind_));
    if (why_not_ != nullptr) *why_not_ = told_in_words(*why, *lock_->keys(), *core_);
    boost::system::error_code code = make_error_code(why->code);
    if (why->code == errc::cancelled) code = boost::asio::error::operation_aborted;
    handler.complete(std::move(handler_), code, lease());
}

}  // namespace holdfast::api
