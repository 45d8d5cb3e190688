// A hold on a lock, as a value.
#pragma once

#include <holdfast/errors.hpp>
#include <holdfast/export.hpp>
#include <holdfast/options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace holdfast {

namespace api {
class core;
class hold_face;
struct lease_access;
}  // namespace api

namespace detail {
template <typename... Results>
class completion;
}

/// Holds a lock until it is released or destroyed. May move between threads; may outlive client and mutex.
///
/// Thread safety: `lost()`, `validity()`, `token()` may be called from any thread while no other thread
/// moves, releases or destroys the object.
class HOLDFAST_EXPORT lease {
public:
    /// Holds nothing.
    lease() noexcept;
    /// Releases, waiting for the answer at most the request timeout or the validity left, then going on in
    /// the background. Never throws.
    ~lease();
    /// The hold moves; the other lease is empty afterwards.
    lease(lease&&) noexcept;
    /// Releases what this lease held before, as the destructor does.
    lease& operator=(lease&&) noexcept;
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;

    /// True until released or moved from, even if the hold was lost meanwhile: ask `lost()` or `validity()` for that.
    explicit operator bool() const noexcept { return face_ != nullptr; }

    /// The fencing token: larger than that of every earlier grant of this lock. Have what the lock protects
    /// refuse smaller ones.
    std::uint64_t token() const noexcept;

    /// How long the holder may still believe in it, by this machine's clock; zero or less: no longer.
    milliseconds validity() const noexcept;

    /// Requested when the hold is lost, before its validity ends. Callbacks run on a thread of the library's
    /// own and may call the library.
    std::stop_token lost() const noexcept;

    /// The hold's id on the wire: what the key of the lock holds.
    const std::string& id() const noexcept;

    /// How many wait in line behind this hold, as the server sees it now: a question of its own, not free.
    ///
    /// Throws `error` if the server cannot be asked, errc::not_held on an empty lease.
    std::size_t waiters() const;

    /// Makes the lease full again now, whether it is renewed in the background or not.
    ///
    /// Errors: errc::lost, errc::unreachable and what the server may refuse. Never throws.
    boost::system::error_code renew() noexcept;

    /// Gives the lock up and tells how that went. The lease is empty afterwards, whatever the answer.
    ///
    /// Errors: errc::lost, errc::not_held, errc::held_by_other: it had ended before; errc::outcome_unknown:
    /// no answer in time, the release goes on in the background. Never throws.
    boost::system::error_code release() noexcept;

    /// As renew(). Completion: void(boost::system::error_code). Include <holdfast/async.hpp>.
    template <typename CompletionToken>
    auto async_renew(CompletionToken&& token);

    /// As release(): the lease is empty at once, the handler hears how it went. Include <holdfast/async.hpp>.
    /// Completion: void(boost::system::error_code).
    template <typename CompletionToken>
    auto async_release(CompletionToken&& token);

private:
    friend struct api::lease_access;
    explicit lease(std::shared_ptr<api::hold_face> face) noexcept;

    std::shared_ptr<api::core> shared_core() const;
    void start_renew(std::unique_ptr<detail::completion<boost::system::error_code>> handler);
    void start_release(std::unique_ptr<detail::completion<boost::system::error_code>> handler);

    std::shared_ptr<api::hold_face> face_;
};

}  // namespace holdfast
