// The asynchronous operations. They have a header of their own because Asio compiles slowly and not every program
// needs it.
//
// A thread of the client posts each handler to its executor, and counts as work there until then. So let an execution
// context run out of work before you destroy it: the client may still post to a context that was only stopped.
//
// g++ 12 destroys members of a braced temporary inside a co_await expression twice. Everything in the options may stand
// there but a stop_token: give options with one a name before the co_await, or use cancellation.
#pragma once

#include <holdfast/detail/completion.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/striped_shared_mutex.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

/// @cond internal
namespace detail {

// Options that outlive the call they were given to: a token may start the operation later.
class stored_options {
public:
    explicit stored_options(acquire_options options) : options_(std::move(options)), note_(options_.note) {}

    // The note is a view into this object.
    const acquire_options& get() {
        options_.note = note_;
        return options_;
    }

private:
    acquire_options options_;
    std::string note_;
};

}  // namespace detail

template <typename CompletionToken>
auto lockable::initiate_acquire(mode kind, milliseconds wait, acquire_options options, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, lease)>(
        [](auto handler, lockable* self, mode chosen_mode, milliseconds limit, detail::stored_options chosen) {
            self->start_acquire(chosen_mode, limit, chosen.get(),
                                detail::erase_handler<boost::system::error_code, lease>(
                                    std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this, kind, wait, detail::stored_options(std::move(options)));
}

template <typename CompletionToken>
auto semaphore::initiate_acquire(milliseconds wait, std::size_t permits, acquire_options options,
                                 CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, lease)>(
        [](auto handler, semaphore* self, milliseconds limit, std::size_t wanted, detail::stored_options chosen) {
            self->start_acquire(limit, wanted, chosen.get(),
                                detail::erase_handler<boost::system::error_code, lease>(
                                    std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this, wait, permits, detail::stored_options(std::move(options)));
}

template <typename... Results, typename Start, typename CompletionToken>
auto lease::initiate(Start start, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, Results...)>(
        [start](auto handler, lease* self) {
            std::invoke(start, *self,
                        detail::erase_handler<boost::system::error_code, Results...>(
                            std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this);
}

// Acquires one stripe after the other. If one fails, the stripes before it are released in the background, the last one
// first.
struct striped_shared_mutex::take_all {
    striped_shared_mutex* locks;
    detail::stored_options options;
    std::vector<lease> taken = {};
    bool started = false;

    template <typename Self>
    void operator()(Self& self, boost::system::error_code failed = {}, lease one = {}) {
        if (!std::exchange(started, true)) self.reset_cancellation_state(boost::asio::enable_total_cancellation());
        if (one) taken.push_back(std::move(one));
        // Between two stripes no operation is in flight that would see a cancellation.
        if (!failed && self.cancelled() != boost::asio::cancellation_type::none) {
            failed = boost::asio::error::operation_aborted;
        }
        if (failed) {
            give_back();
            return self.complete(failed, striped_lease());
        }
        if (taken.size() == locks->stripes_.size()) {
            if (all_valid(taken)) return self.complete({}, bundle(std::move(taken)));
            give_back();
        }
        locks->stripes_[taken.size()]->async_acquire(options.get(), std::move(self));
    }

    void give_back() {
        for (; !taken.empty(); taken.pop_back()) taken.back().async_release([](boost::system::error_code) {});
    }
};

/// @endcond

template <typename CompletionToken>
auto striped_shared_mutex::async_acquire(acquire_options options, CompletionToken&& token) {
    return boost::asio::async_compose<CompletionToken, void(boost::system::error_code, striped_lease)>(
        take_all{this, detail::stored_options(std::move(options))}, token);
}

template <typename CompletionToken>
auto striped_shared_mutex::async_acquire_shared(acquire_options options, CompletionToken&& token) {
    shared_mutex& chosen = stripe_for(options);
    return chosen.async_acquire_shared(std::move(options), std::forward<CompletionToken>(token));
}

}  // namespace holdfast
