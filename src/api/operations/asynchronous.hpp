// Operations that end in a completion handler.
//
// Each operation owns itself from start to finish. A cancellation that arrives later does nothing. While operations are
// in flight, the background thread or the callback thread drives the loop whenever no caller does.
#pragma once

#include "api/operations/operation.hpp"
#include "base/recycled.hpp"

#include <holdfast/detail/callback.hpp>
#include <holdfast/lease.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace holdfast::api {

// The refusal with a `detail` that names the lock and the server, for callers whom no exception tells them.
refusal told_in_words(refusal why, const wire::lock_keys& lock, const core& where);

class async_acquire final : public acquire_operation, public std::enable_shared_from_this<async_acquire> {
public:
    using completion = detail::completion<boost::system::error_code, lease>;

    // `why_not` may be null.
    static void start(std::shared_ptr<core> where, engine::acquire_terms terms, std::stop_token stop, refusal* why_not,
                      std::unique_ptr<completion> handler);
    // Upgrades the hold of `target`.
    static void start(std::shared_ptr<hold_face> target, engine::patience limit, std::unique_ptr<completion> handler);

    // Used by start() only. Public for std::make_shared.
    async_acquire(std::shared_ptr<core> where, engine::acquire_terms terms, mode kind,
                  std::unique_ptr<completion> handler);
    async_acquire(std::shared_ptr<hold_face> target, engine::patience limit, std::unique_ptr<completion> handler);

private:
    static void begin(const std::shared_ptr<async_acquire>& operation, std::stop_token stop);
    void cancel(errc why);
    void finished() override;

    // Where to tell why it was refused, and what is to be named there.
    struct told_refusal {
        refusal* where;
        std::shared_ptr<const wire::lock_keys> keys;
    };

    const mode kind_;
    std::unique_ptr<told_refusal> told_;  // null: nobody wants to know
    std::unique_ptr<completion> handler_;
    std::shared_ptr<async_acquire> self_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

class async_hold_operation final : public hold_operation, public recycled_object<async_hold_operation> {
public:
    using completion = detail::completion<boost::system::error_code>;

    // A null handler: nobody waits for the result.
    static void start(std::shared_ptr<hold_face> target, what kind, std::unique_ptr<completion> handler);

private:
    async_hold_operation(std::shared_ptr<hold_face> target, what kind, std::unique_ptr<completion> handler);
    void finished() override;

    const std::shared_ptr<core> keeps_core_;
    std::unique_ptr<completion> handler_;
};

}  // namespace holdfast::api
