// Tellers read a price list all day. Now and then one of them finds a price that is out of date and corrects it.
// Readers do not exclude each other. A teller that corrects upgrades its hold: it keeps what it has read, waits until
// the others have released, and no other teller can change the list in between. Then it downgrades, and the others read
// again while it checks what it wrote. If two tellers want to correct at once, they would wait for each other: the
// second one gets an error, releases, and starts again with the new list.
//
// Usage: price_list [URL]. The tellers are threads here; processes on several machines would do the same.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int tellers = 4;
constexpr int corrections_each = 5;

// A store that knows nothing of locks: two prices that belong together.
struct {
    int net = 100;
    int gross = 119;
} prices;

std::atomic<int> torn{0};
std::atomic<int> looked{0};
std::atomic<int> corrected{0};
std::atomic<int> started_again{0};

void look() {
    const int net = prices.net;
    std::this_thread::sleep_for(1ms);
    if (prices.gross != net + 19) ++torn;
    ++looked;
}

void correct() {
    ++prices.net;
    std::this_thread::sleep_for(1ms);  // a reader would now see prices that do not match
    ++prices.gross;
    ++corrected;
}

// True if it was this teller's turn.
bool try_to_correct(holdfast::shared_mutex& list) {
    holdfast::lease reading = list.acquire_shared();
    look();
    try {
        holdfast::lease writing = reading.upgrade();
        correct();
        const holdfast::lease still_reading = writing.downgrade();
        look();
        return true;
    } catch (const holdfast::error& refused) {
        if (refused.condition() != holdfast::errc::would_deadlock) throw;
        ++started_again;  // another teller waits for this one to release
        return false;
    }
}

void work(const holdfast::client& redis) {
    holdfast::shared_mutex list{redis, "prices"};
    for (int done = 0; done < corrections_each;) {
        {
            const std::shared_lock guard{list};
            look();
        }
        if (try_to_correct(list)) ++done;
    }
}

}  // namespace

int main(int count, char** words) try {
    const holdfast::client redis{count > 1 ? words[1] : "redis://127.0.0.1:6379"};
    {
        std::vector<std::jthread> all;
        for (int number = 0; number < tellers; ++number) all.emplace_back([&] { work(redis); });
    }
    std::printf("looked %d times, corrected %d times, started again %d times\n", looked.load(), corrected.load(),
                started_again.load());
    std::printf("net %d, gross %d, torn %d\n", prices.net, prices.gross, torn.load());
    const int all = tellers * corrections_each;
    return torn == 0 && corrected == all && prices.net == 100 + all ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "price_list: " << failure.what() << '\n';
    return 2;
}
