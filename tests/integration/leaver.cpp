// A program that ends while its client does: its only lease dies inside the library, with a handler that an executor
// drops, and takes the client along on the library's own thread. See last_lease_test.cpp.
//
//     holdfast_leaver URL
//
// Says "granted" when it has the lock, and lets go of it when it is told something. Ends as soon as another thread is
// about to take the client down, or has done so.
//
//     holdfast_leaver URL kept
//
// Keeps a lock, says "kept", and ends when it is told something, without destroying lock or client. See
// kept_mutex_test.cpp.
//
//     holdfast_leaver URL late
//
// The same, and uses the lock once more after the library has given it back at exit().
//
//     holdfast_leaver URL busy
//
// The same, while other threads use the client.
//
//     holdfast_leaver URL crash
//
// Acquires a lock with a delay, and is gone without another word to the server. See delay_test.cpp.
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/system_executor.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

namespace asio = boost::asio;

using directory = std::filesystem::directory_iterator;

std::ptrdiff_t threads() {
    return std::distance(directory("/proc/self/task"), directory());
}

std::atomic<std::ptrdiff_t> threads_then = 0;

// Runs nothing. Comes back when it is told to.
struct dropping_executor {
    template <typename Function>
    void execute(Function&&) const {
        std::cout << "granted" << std::endl;
        std::cin.get();
        threads_then = threads();
    }
    asio::system_context& query(asio::execution::context_t) const {
        return asio::query(asio::system_executor(), asio::execution::context);
    }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
        return asio::execution::blocking.never;
    }
    dropping_executor require(asio::execution::blocking_t::never_t) const { return *this; }

    [[maybe_unused]] friend bool operator==(dropping_executor, dropping_executor) noexcept { return true; }
};

// Reachable until the end, and so no leak for a sanitizer.
holdfast::client* kept_client = nullptr;
holdfast::mutex* kept_lock = nullptr;

void use_lock() {
    kept_lock->lock();
    kept_lock->unlock();
}

int keep_and_leave(const std::string& url, std::string_view how) {
    using namespace std::chrono_literals;
    if (how == "late" && std::atexit(use_lock) != 0) return 2;  // functions run in the reverse order
    const auto counted = std::make_shared<holdfast::metrics>();
    kept_client = new holdfast::client(url + "?timeout=30s", {.metrics = counted});
    kept_lock = new holdfast::mutex(*kept_client, "stock", {.lease = 20s, .keep = 60s});
    // A hold is kept once the client can be asked for it, which the first acquisition may be too early for.
    while (counted->local_grants == 0) {
        use_lock();
        kept_client->ping();
    }
    const int busy_threads = how == "busy" ? 3 : 0;
    for (int i = 0; i < busy_threads; ++i) {
        std::thread([] {
            for (;;) kept_client->ping();
        }).detach();
    }
    std::cout << "kept" << std::endl;
    std::cin.get();
    return 0;
}

int acquire_and_crash(const char* url) {
    using namespace std::chrono_literals;
    holdfast::client client{url};
    holdfast::mutex lock{client, "stock", {.lease = 10s, .delay = 30s}};
    const holdfast::lease held = lock.acquire();
    std::_Exit(held ? 0 : 1);
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 3 && std::string_view(arguments[2]) == "crash") return acquire_and_crash(arguments[1]);
    if (count == 3) return keep_and_leave(arguments[1], arguments[2]);
    if (count != 2) return 2;
    {
        holdfast::client client{arguments[1], {.max_lease = std::chrono::hours(1)}};
        holdfast::mutex lock{client, "stock", {.lease = std::chrono::minutes(10)}};
        lock.async_acquire(asio::bind_executor(dropping_executor{}, [](auto&&...) {}));
    }
    while (threads_then == 0 || threads() == threads_then) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
}
