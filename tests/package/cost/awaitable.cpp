// What a user's file costs to compile: a lock in a coroutine.
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

boost::asio::awaitable<void> sell(holdfast::mutex& stock) {
    holdfast::lease held = co_await stock.async_acquire(boost::asio::use_awaitable);
    co_await held.async_release(boost::asio::use_awaitable);
}
