#include <holdfast/lease.hpp>

#include "api/blocking.hpp"
#include "api/lease_state.hpp"

#include <utility>

namespace holdfast {
namespace api {

void lease_state::attach(engine::hold& held) {
    hold_ = &held;
    token_ = held.token();
    id_ = held.id().text();
    valid_until_.store(held.valid_until(), std::memory_order_relaxed);
    held.listen(this);
}

void lease_state::on_validity(instant until) {
    valid_until_.store(until, std::memory_order_relaxed);
}

void lease_state::on_lost(errc) {
    // request_stop() runs the user's callbacks: not here.
    core_->notifier().notify([source = lost_]() mutable { source.request_stop(); });
}

}  // namespace api

namespace {

boost::system::error_code ask(api::lease_state& state, api::blocking_hold_request::what kind) noexcept {
    try {
        if (state.where().forked()) return make_error_code(errc::forked);
        api::blocking_hold_request request(
            state.where(), kind,
            [](api::core&, void* context) { return static_cast<api::lease_state*>(context)->held(); },
            &state);
        const auto why_not = request.wait();
        return why_not ? make_error_code(why_not->code) : boost::system::error_code();
    } catch (const std::bad_alloc&) {
        return make_error_code(errc::outcome_unknown);
    }
}

}  // namespace

lease::lease() noexcept = default;
lease::lease(std::unique_ptr<api::lease_state> state) noexcept : state_(std::move(state)) {}
lease::lease(lease&&) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        release();
        state_ = std::move(other.state_);
    }
    return *this;
}

lease::~lease() {
    release();
}

std::uint64_t lease::token() const noexcept {
    return state_ ? state_->token() : 0;
}

milliseconds lease::validity() const noexcept {
    if (!state_ || state_->lost().stop_requested()) return milliseconds(0);
    return std::chrono::duration_cast<milliseconds>(state_->valid_until() - boot_now());
}

std::stop_token lease::lost() const noexcept {
    return state_ ? state_->lost() : std::stop_token();
}

const std::string& lease::id() const noexcept {
    static const std::string none;
    return state_ ? state_->id() : none;
}

boost::system::error_code lease::renew() noexcept {
    return state_ ? ask(*state_, api::blocking_hold_request::what::renew) : make_error_code(errc::not_held);
}

boost::system::error_code lease::release() noexcept {
    if (!state_) return make_error_code(errc::not_held);
    const auto result = ask(*state_, api::blocking_hold_request::what::release);
    state_.reset();
    return result;
}

}  // namespace holdfast
