// Candidates that are killed, stopped and cut off while they lead (R56): never two leaders of which none was told of
// its loss, and observers, whose links break, hear leaders in the order of their tokens. HOLDFAST_CHAOS_SECONDS makes
// it longer.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <new>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chaos/chaos_fixture.hpp"
#include "support/redis_server.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::election_chaos_test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t candidates = 4;
constexpr auto lease_time = 600ms;

/// What all processes see, in shared memory.
struct board {
    // Of each candidate: until when it leads, as far as it knows, by a clock that all processes share. 0: it does not.
    std::array<std::atomic<std::int64_t>, candidates> valid_until_ns{};
    std::atomic<unsigned> leaderships = 0;
    std::atomic<unsigned> cut_off = 0;
    std::atomic<unsigned> at_the_same_time = 0;
    std::atomic<unsigned> sights = 0;
    std::atomic<unsigned> out_of_order = 0;
};

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// Writes down until when this one leads, then looks at the others. Of two that lead at one instant the one that writes
/// later sees the other, from the first instant of its leadership on. One that was stopped in between is not valid any
/// more when it asks at the end, and says nothing.
void say_that_i_lead(board& shared, std::size_t me, const lease& leadership) {
    const std::int64_t now = now_ns();
    shared.valid_until_ns[me] = now + std::chrono::nanoseconds(leadership.validity()).count();
    const std::int64_t looked = now_ns();
    bool others_lead = false;
    for (std::size_t i = 0; i < candidates; ++i) others_lead |= i != me && shared.valid_until_ns[i] > looked;
    if (others_lead && leadership.validity() > 0ms) ++shared.at_the_same_time;
}

void lead(board& shared, std::size_t me, lease& leadership, tcp_proxy& way, std::mt19937& random) {
    say_that_i_lead(shared, me, leadership);
    ++shared.leaderships;
    const std::stop_callback on_loss(leadership.lost(), [&] { shared.valid_until_ns[me] = 0; });
    const bool is_cut_off = random() % 6 == 0;  // until it knows that it lost
    if (is_cut_off) way.stall(direction::both);
    for (auto steps = random() % 20; (is_cut_off || steps > 0) && !leadership.lost().stop_requested(); --steps) {
        say_that_i_lead(shared, me, leadership);
        std::this_thread::sleep_for(4ms);
    }
    shared.valid_until_ns[me] = 0;
    if (!is_cut_off) return;
    ++shared.cut_off;
    if (random() % 2 == 0) way.cut();
    way.unstall(direction::both);
}

[[noreturn]] void campaign_for_ever(board& shared, int port, std::size_t number) {
    tcp_proxy way{port};
    const client own{way.url()};
    election vote{own, "leader", {.lease = lease_time}};
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (;;) {
        try {
            lease leadership = vote.campaign("candidate " + std::to_string(number));
            lead(shared, number, leadership, way, random);
            vote.resign(leadership);
        } catch (const error&) {
            continue;  // its link broke at the wrong moment
        }
    }
}

[[noreturn]] void observe_for_ever(board& shared, int port) {
    tcp_proxy way{port};
    const client own{way.url()};
    const election vote{own, "leader", {.lease = lease_time}};
    std::uint64_t last = 0;
    const watching eye = vote.observe([&](const std::optional<leader>& who) {
        ++shared.sights;
        if (!who) return;
        if (who->token < last) ++shared.out_of_order;
        last = who->token;
    });
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1000));
        way.cut();
    }
}

template <typename Function>
pid_t start(Function function) {
    const pid_t child = ::fork();
    if (child == 0) {
        function();
        ::_exit(0);
    }
    return child;
}

void kill_and_wait(pid_t child) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
}

/// Stops it for about as long as a lease.
void stop_for_a_while(pid_t child, std::mt19937& random) {
    ::kill(child, SIGSTOP);
    std::this_thread::sleep_for(lease_time / 2 + std::chrono::milliseconds(random() % lease_time.count()));
    ::kill(child, SIGCONT);
}

TEST(ElectionChaos, NeverHasTwoLeadersAndObserversSeeThemInOrder) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer starts no threads in a child of a process that has threads";
#endif
    redis_server server;
    const int port = server.port();
    void* const room = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    board& shared = *new (room) board;
    std::vector<pid_t> running;
    for (std::size_t i = 0; i < candidates; ++i)
        running.push_back(start([&, i] { campaign_for_ever(shared, port, i); }));
    const pid_t observer = start([&] { observe_for_ever(shared, port); });

    std::mt19937 random(7);
    unsigned killed = 0;
    unsigned stopped = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(seconds_to_run("6")));
    const auto has_seen_enough = [&] {
        return shared.leaderships >= 10 && shared.sights >= 5 && shared.cut_off >= 1 && killed >= 3 && stopped >= 3;
    };
    while (std::chrono::steady_clock::now() < end || !has_seen_enough()) {
        std::this_thread::sleep_for(200ms);
        // The one that leads, if any: an event of a candidate that waits is worth less.
        std::size_t which = random() % candidates;
        for (std::size_t i = 0; i < candidates; ++i) {
            if (shared.valid_until_ns[i] > now_ns()) which = i;
        }
        if (random() % 2 == 0) {
            stop_for_a_while(running[which], random);
            ++stopped;
            continue;
        }
        kill_and_wait(running[which]);
        shared.valid_until_ns[which] = 0;  // the dead do nothing more
        running[which] = start([&, which] { campaign_for_ever(shared, port, which); });
        ++killed;
    }
    for (const pid_t one : running) kill_and_wait(one);
    kill_and_wait(observer);
    std::cout << shared.leaderships << " leaderships, " << killed << " killed, " << stopped << " stopped, "
              << shared.cut_off << " cut off, " << shared.sights << " sights\n";
    EXPECT_EQ(shared.at_the_same_time, 0U);
    EXPECT_EQ(shared.out_of_order, 0U);
    ::munmap(room, sizeof(board));
}

}  // namespace
}  // namespace holdfast::testing::election_chaos_test
