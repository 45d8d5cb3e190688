#include <holdfast/lease.hpp>

#include "api/asynchronous.hpp"
#include "api/blocking.hpp"
#include "api/blocking_command.hpp"
#include "api/hold_face.hpp"

#include <new>
#include <utility>

namespace holdfast {
namespace {

using what = api::hold_operation::what;

boost::system::error_code ask(std::shared_ptr<api::hold_face> face, what kind) noexcept {
    try {
        if (face->where().forked()) return make_error_code(errc::forked);
        if (api::may_block()) return api::blocking_hold_operation(std::move(face), kind).wait();
        // Waiting here would be waiting for ourselves: it goes on in the background.
        if (kind == what::release) api::async_hold_operation::start(std::move(face), kind, nullptr);
        return make_error_code(errc::would_deadlock);
    } catch (const std::bad_alloc&) {
        return make_error_code(errc::outcome_unknown);
    }
}

}  // namespace

lease::lease() noexcept = default;
lease::lease(std::shared_ptr<api::hold_face> face) noexcept : face_(std::move(face)) {}
lease::lease(lease&&) noexcept = default;

lease& lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        release();
        face_ = std::move(other.face_);
    }
    return *this;
}

lease::~lease() {
    release();
}

std::uint64_t lease::token() const noexcept {
    return face_ ? face_->token() : 0;
}

milliseconds lease::validity() const noexcept {
    if (!face_ || face_->is_lost() || face_->where().forked()) return milliseconds(0);
    return std::chrono::duration_cast<milliseconds>(face_->valid_until() - boot_now());
}

std::stop_token lease::lost() const noexcept {
    return face_ ? face_->lost() : std::stop_token();
}

const std::string& lease::id() const noexcept {
    static const std::string none;
    return face_ ? face_->id() : none;
}

std::size_t lease::waiters() const {
    if (!face_) throw error(errc::not_held, "an empty lease");
    std::size_t count = 0;
    api::ask_server(face_->where(), {"ZCARD", face_->keys().queue}, [&count](const redis::reply_view& reply) {
        count = static_cast<std::size_t>(reply.to_integer().value_or(0));
    });
    return count;
}

boost::system::error_code lease::renew() noexcept {
    return face_ ? ask(face_, what::renew) : make_error_code(errc::not_held);
}

boost::system::error_code lease::release() noexcept {
    if (!face_) return make_error_code(errc::not_held);
    return ask(std::exchange(face_, nullptr), what::release);
}

std::shared_ptr<api::core> lease::shared_core() const {
    return face_ ? face_->where().shared_from_this() : nullptr;
}

namespace {

using hold_completion = detail::completion<boost::system::error_code>;

// Starts it, or says at once why there is nothing to start.
void start(std::shared_ptr<api::hold_face> face, what kind, std::unique_ptr<hold_completion> handler) {
    if (face && !face->where().forked())
        return api::async_hold_operation::start(std::move(face), kind, std::move(handler));
    hold_completion& told = *handler;
    told.complete(std::move(handler), make_error_code(face ? errc::forked : errc::not_held));
}

}  // namespace

void lease::start_renew(std::unique_ptr<detail::completion<boost::system::error_code>> handler) {
    start(face_, what::renew, std::move(handler));
}

void lease::start_release(std::unique_ptr<detail::completion<boost::system::error_code>> handler) {
    start(std::exchange(face_, nullptr), what::release, std::move(handler));
}

}  // namespace holdfast
