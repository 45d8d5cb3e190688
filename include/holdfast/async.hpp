// The asynchronous operations. Apart from the rest, because Asio is slow to compile and not everyone needs it.
#pragma once

#include <holdfast/detail/completion.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/async_result.hpp>
#include <chrono>
#include <utility>

namespace holdfast {

template <typename CompletionToken>
auto mutex::initiate_acquire(milliseconds wait, acquire_options options, CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, lease)>(
        [](auto handler, mutex* self, milliseconds limit, acquire_options chosen) {
            self->start_acquire(limit, std::move(chosen),
                                detail::erase_handler<boost::system::error_code, lease>(
                                    std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this, wait, std::move(options));
}

template <typename CompletionToken>
auto mutex::async_acquire(acquire_options options, CompletionToken&& token) {
    return initiate_acquire(for_ever, std::move(options), std::forward<CompletionToken>(token));
}

template <typename CompletionToken>
auto mutex::async_acquire(CompletionToken&& token) {
    return initiate_acquire(for_ever, {}, std::forward<CompletionToken>(token));
}

template <typename CompletionToken>
auto mutex::async_try_acquire(acquire_options options, CompletionToken&& token) {
    return initiate_acquire(milliseconds(0), std::move(options), std::forward<CompletionToken>(token));
}

template <typename CompletionToken>
auto mutex::async_try_acquire(CompletionToken&& token) {
    return initiate_acquire(milliseconds(0), {}, std::forward<CompletionToken>(token));
}

template <typename Rep, typename Period, typename CompletionToken>
auto mutex::async_try_acquire_for(std::chrono::duration<Rep, Period> wait, acquire_options options,
                                  CompletionToken&& token) {
    return initiate_acquire(detail::wait_time(wait), std::move(options), std::forward<CompletionToken>(token));
}

template <typename Rep, typename Period, typename CompletionToken>
auto mutex::async_try_acquire_for(std::chrono::duration<Rep, Period> wait, CompletionToken&& token) {
    return initiate_acquire(detail::wait_time(wait), {}, std::forward<CompletionToken>(token));
}

template <typename CompletionToken>
auto lease::async_renew(CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
        [](auto handler, lease* self) {
            self->start_renew(detail::erase_handler<boost::system::error_code>(
                std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this);
}

template <typename CompletionToken>
auto lease::async_release(CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code)>(
        [](auto handler, lease* self) {
            self->start_release(detail::erase_handler<boost::system::error_code>(
                std::move(handler), detail::callback_executor(self->shared_core())));
        },
        token, this);
}

}  // namespace holdfast
