// Three shops sell from one stock. To sell, a shop reads the stock, checks it and writes it back. Without a lock, two
// shops could sell the same last item. With the lock no item is sold twice. The queue is first come, first served, so
// no shop starves.
//
// Usage: stock_counter [URL]. Each shop is a thread here; processes on three machines would do the same.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

// A store that knows nothing of locks, as most do not.
std::atomic<int> stock{30};

int sell_until_empty(const std::string& url) {
    holdfast::client redis{url};
    holdfast::mutex lock{redis, "stock:1001"};
    for (int sold = 0;; ++sold) {
        const std::scoped_lock guard{lock};
        const int left = stock.load();
        if (left == 0) return sold;
        std::this_thread::sleep_for(5ms);  // packing; no other shop may read the stock meanwhile
        stock.store(left - 1);
    }
}

}  // namespace

int main(int count, char** words) try {
    const std::string url = count > 1 ? words[1] : "redis://127.0.0.1:6379";
    const int had = stock.load();
    std::vector<int> sold(3);
    {
        std::vector<std::jthread> shops;
        for (int& mine : sold) shops.emplace_back([&] { mine = sell_until_empty(url); });
    }
    int all = 0;
    for (std::size_t shop = 0; shop < sold.size(); ++shop) {
        std::printf("shop %zu sold %d\n", shop + 1, sold[shop]);
        all += sold[shop];
    }
    std::printf("sold %d of %d, %d left\n", all, had, stock.load());
    return all == had ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "stock_counter: " << failure.what() << '\n';
    return 2;
}
