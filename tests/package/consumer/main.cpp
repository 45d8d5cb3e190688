// A program of somebody else's, compiled with nothing but what was installed. It touches what breaks first when a
// library is packaged badly: symbols that only templates in the headers ask for, and an exception and an error category
// that must be the same thing on both sides of the shared object's border.
//
// Usage: consumer URL
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>
#include <future>
#include <iostream>
#include <mutex>

namespace {

bool knows_our_errors() {
    try {
        holdfast::client nowhere{"no-such-scheme://here"};
    } catch (const holdfast::error& failure) {
        return failure.code() == std::error_code(make_error_code(holdfast::errc::bad_url)) &&
               failure.condition() == holdfast::errc::bad_url;
    }
    return false;
}

bool locks(const char* url) {
    holdfast::client redis{url};
    holdfast::mutex lock{redis, "consumer"};
    { std::scoped_lock guard{lock}; }
    const auto earlier = lock.acquire().token();
    holdfast::lease hold = lock.async_acquire(boost::asio::use_future).get();
    holdfast::mutex same{redis, "consumer"};
    const bool excludes = !same.try_acquire();
    const bool grows = hold.token() > earlier;
    std::promise<bool> released;  // by a handler that has no executor of its own
    hold.async_release([&](boost::system::error_code failure) { released.set_value(!failure); });
    return released.get_future().get() && excludes && grows;
}

}  // namespace

int main(int count, char** words) try {
    if (count != 2) return 2;
    if (!knows_our_errors()) {
        std::cerr << "an error of the library is not recognised\n";
        return 1;
    }
    if (!locks(words[1])) {
        std::cerr << "the lock does not lock\n";
        return 1;
    }
    std::cout << "locked\n";
} catch (const std::exception& failure) {
    std::cerr << "consumer: " << failure.what() << '\n';
    return 2;
}
