// A cached page is stale and many requests want it at once. One request rebuilds the page under the lock. The others
// wait for it, but at most 200 ms: then they serve the stale page. Without the lock all requests would rebuild the page
// at once and overload the site.
//
// Usage: cache_rebuild [URL]. The requests are threads here.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

std::atomic<int> page_version{1};
constexpr int wanted_version = 2;

std::atomic<int> rebuilt{0};
std::atomic<int> served_fresh{0};
std::atomic<int> served_stale{0};

void serve(holdfast::client& redis, std::chrono::milliseconds rebuilding_takes) {
    holdfast::mutex lock{redis, "rebuild:/news"};
    if (page_version.load() < wanted_version) {
        if (const holdfast::lease hold = lock.try_acquire_for(200ms)) {
            // Another request may have rebuilt the page during the wait.
            if (page_version.load() < wanted_version) {
                std::this_thread::sleep_for(rebuilding_takes);
                page_version = wanted_version;
                ++rebuilt;
            }
        }
    }
    ++(page_version.load() == wanted_version ? served_fresh : served_stale);
}

void rush(holdfast::client& redis, std::chrono::milliseconds rebuilding_takes) {
    page_version = 1;
    rebuilt = served_fresh = served_stale = 0;
    {
        std::vector<std::jthread> requests;
        for (int number = 0; number < 20; ++number) {
            requests.emplace_back([&] { serve(redis, rebuilding_takes); });
        }
    }
    std::printf("rebuilding takes %lld ms: rebuilt %d time(s), fresh page %d times, stale page %d times\n",
                static_cast<long long>(rebuilding_takes.count()), rebuilt.load(), served_fresh.load(),
                served_stale.load());
}

}  // namespace

int main(int count, char** words) try {
    holdfast::client redis{count > 1 ? words[1] : "redis://127.0.0.1:6379"};
    redis.ping();
    rush(redis, 50ms);  // all requests wait for the new page
    const bool once = rebuilt == 1;
    rush(redis, 500ms);  // the others serve the stale page
    return once && rebuilt == 1 && served_fresh + served_stale == 20 ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "cache_rebuild: " << failure.what() << '\n';
    return 2;
}
