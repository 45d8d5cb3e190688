// A program of a user who looks for races by ThreadSanitizer, with a library that is not instrumented.
//
// Usage: race URL locked|unlocked. What the locks protect is no race; what they do not protect still is one.
#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int rounds = 25;

// In two threads at the same time.
template <typename Work>
void twice(const Work& work) {
    std::jthread other([&] { work(1); });
    work(0);
}

void lock_all_kinds(const char* url) {
    holdfast::client redis{url};
    holdfast::client another{url};  // excludes through the server only
    holdfast::mutex one{redis, "one"};
    holdfast::mutex same{another, "one"};
    holdfast::shared_mutex both{redis, "both"};
    holdfast::striped_shared_mutex striped{redis, "striped", 2};
    holdfast::mutex kept{redis, "kept", {.keep = std::chrono::seconds(1), .passes = 16}};
    holdfast::mutex second{redis, "second"};
    holdfast::semaphore single{redis, "single", 1};
    int counter = 0;
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            const std::scoped_lock guard(which == 0 ? one : same);
            ++counter;
        }
    });
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            holdfast::lease hold = (which == 0 ? one : same).acquire();
            ++counter;
            if (i % 2 == 0) hold.release();
        }
    });
    twice([&](int) {
        for (int i = 0; i < rounds; ++i) {
            holdfast::lease hold = one.async_acquire(boost::asio::use_future).get();
            ++counter;
            hold.async_release(boost::asio::use_future).get();
        }
    });
    int seen = 0;
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            if (which == 0) {
                const std::unique_lock guard(both);
                ++counter;
            } else {
                const std::shared_lock guard(both);
                seen = counter;
            }
        }
    });
    twice([&](int) {
        for (int i = 0; i < rounds; ++i) {
            holdfast::lease writes = both.acquire();
            ++counter;
            holdfast::lease reads = writes.downgrade();
            if (counter < 0) return;
            reads.release();
        }
    });
    twice([&](int) {
        for (int i = 0; i < rounds; ++i) {
            const std::unique_lock guard(striped);
            ++counter;
        }
    });
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            boost::system::error_code ec;
            holdfast::mutex& lock = which == 0 ? one : same;
            lock.lock();
            ++counter;
            lock.unlock(ec);
        }
    });
    std::atomic<int> turn = 0;  // nobody waits, so the lock is kept; and only the lock orders the two
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            boost::system::error_code ec;
            while (turn.load(std::memory_order_relaxed) != which) std::this_thread::yield();
            kept.lock();
            ++counter;
            kept.unlock(ec);
            turn.store(1 - which, std::memory_order_relaxed);
        }
    });
    twice([&](int which) {
        for (int i = 0; i < rounds; ++i) {
            if (which == 0) {
                const std::unique_lock guard(both);
                ++counter;
            } else {
                holdfast::lease reads = both.acquire_shared();
                const holdfast::lease writes = reads.upgrade();
                ++counter;
            }
        }
    });
    twice([&](int) {
        for (int i = 0; i < rounds; ++i) {
            const holdfast::lease permit = single.acquire();
            ++counter;
        }
    });
    twice([&](int) {
        for (int i = 0; i < rounds; ++i) {
            holdfast::lock_all together{one, second};
            ++counter;
        }
    });
    std::cout << counter + seen * 0 << '\n';
}

// After both have unlocked, and before either calls the library again, which would order them by chance.
void do_not_lock(const char* url) {
    holdfast::client redis{url};
    holdfast::mutex one{redis, "one"};
    int counter = 0;
    std::atomic<int> arrived = 0;
    const auto meet = [&arrived](int how_many) {
        arrived.fetch_add(1, std::memory_order_relaxed);
        while (arrived.load(std::memory_order_relaxed) < how_many) std::this_thread::yield();
    };
    twice([&](int) {
        { const std::scoped_lock guard(one); }
        meet(2);
        ++counter;
        meet(4);
    });
    std::cout << counter << '\n';
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) return 2;
    std::string_view(words[2]) == "locked" ? lock_all_kinds(words[1]) : do_not_lock(words[1]);
}
