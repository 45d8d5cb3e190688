// Candidates that are killed while they lead (R56): never two leaders of which none was told of its loss, and observers
// hear leaders in the order of their tokens. HOLDFAST_CHAOS_SECONDS makes it longer.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

namespace holdfast::testing::election_chaos_test {
namespace {

using namespace std::chrono_literals;

constexpr int candidates = 4;
constexpr auto lease_time = 600ms;

/// What all processes see, in shared memory.
struct board {
    std::atomic<pid_t> leads = 0;                // who leads and was not told of a loss
    std::atomic<std::int64_t> valid_until_ns{};  // its validity, by a clock that all processes share
    std::atomic<unsigned> leaderships = 0;
    std::atomic<unsigned> at_the_same_time = 0;
    std::atomic<unsigned> sights = 0;
    std::atomic<unsigned> out_of_order = 0;
};

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

// A process that stalls for longer than its validity is told late; then only its own clock says that it lost.
void take_the_lead(board& shared) {
    if (shared.leads.exchange(::getpid()) != 0 && now_ns() < shared.valid_until_ns) ++shared.at_the_same_time;
    ++shared.leaderships;
}

void step_down(board& shared) {
    pid_t me = ::getpid();
    shared.leads.compare_exchange_strong(me, 0);
}

[[noreturn]] void campaign_for_ever(board& shared, const std::string& url, int number) {
    const client own{url};
    election vote{own, "leader", {.lease = lease_time}};
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (;;) {
        lease leadership = vote.campaign("candidate " + std::to_string(number));
        {
            take_the_lead(shared);
            const std::stop_callback on_loss(leadership.lost(), [&] { step_down(shared); });
            for (auto steps = random() % 20; steps > 0 && !leadership.lost().stop_requested(); --steps) {
                const std::int64_t now = now_ns();
                shared.valid_until_ns = now + std::chrono::nanoseconds(leadership.validity()).count();
                std::this_thread::sleep_for(4ms);
            }
            step_down(shared);
        }
        vote.resign(leadership);
    }
}

[[noreturn]] void observe_for_ever(board& shared, const std::string& url) {
    const client own{url};
    const election vote{own, "leader", {.lease = lease_time}};
    std::uint64_t last = 0;
    const watching eye = vote.observe([&](const std::optional<leader>& who) {
        ++shared.sights;
        if (!who) return;
        if (who->token < last) ++shared.out_of_order;
        last = who->token;
    });
    for (;;) ::pause();
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

TEST(ElectionChaos, NeverHasTwoLeadersAndObserversSeeThemInOrder) {
    redis_server server;
    const std::string url = server.url();
    void* const room = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(room, MAP_FAILED);
    board& shared = *new (room) board;
    std::vector<pid_t> running;
    for (int i = 0; i < candidates; ++i) running.push_back(start([&, i] { campaign_for_ever(shared, url, i); }));
    const pid_t observer = start([&] { observe_for_ever(shared, url); });

    std::mt19937 random(7);
    unsigned killed = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(seconds_to_run("6")));
    while (std::chrono::steady_clock::now() < end || shared.leaderships < 10 || shared.sights < 5) {
        std::this_thread::sleep_for(300ms);
        const auto which = static_cast<std::size_t>(random() % candidates);
        pid_t victim = running[which];
        kill_and_wait(victim);
        shared.leads.compare_exchange_strong(victim, 0);  // the dead do nothing more
        running[which] = start([&, which] { campaign_for_ever(shared, url, static_cast<int>(which)); });
        ++killed;
    }
    for (const pid_t one : running) kill_and_wait(one);
    kill_and_wait(observer);
    std::cout << shared.leaderships << " leaderships, " << killed << " killed, " << shared.sights << " sights\n";
    EXPECT_EQ(shared.at_the_same_time, 0U);
    EXPECT_EQ(shared.out_of_order, 0U);
    ::munmap(room, sizeof(board));
}

}  // namespace
}  // namespace holdfast::testing::election_chaos_test
