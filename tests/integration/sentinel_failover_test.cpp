// Another server becomes the primary while many hold locks and wait for them: all are served or told, and soon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

milliseconds since(steady::time_point begin) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - begin);
}

/// Who believes to hold what. Two at once must be told apart by their tokens. Which of them is greater says nothing
/// here: both servers give tokens for a moment, and the one who is noted later may have been granted it earlier.
class belief {
public:
    void begins(const std::string& lock, std::uint64_t token) {
        const std::lock_guard guard{mutex_};
        std::set<std::uint64_t>& tokens = now_[lock];
        if (!tokens.empty()) ++overlaps_;
        tokens.insert(token);
        EXPECT_TRUE(ever_[lock].insert(token).second) << lock << ": one token for two grants";
    }
    void ends(const std::string& lock, std::uint64_t token) {
        const std::lock_guard guard{mutex_};
        now_[lock].erase(token);
    }
    int overlaps() {
        const std::lock_guard guard{mutex_};
        return overlaps_;
    }
    /// The greatest so far.
    std::uint64_t greatest(const std::string& lock) {
        const std::lock_guard guard{mutex_};
        return ever_[lock].empty() ? 0 : *ever_[lock].rbegin();
    }

private:
    std::mutex mutex_;
    std::map<std::string, std::set<std::uint64_t>> now_;
    std::map<std::string, std::set<std::uint64_t>> ever_;
    int overlaps_ = 0;
};

/// Fifty who hold, and behind each of them one who waits, all over a few clients.
class SentinelFailover : public ::testing::Test {
protected:
    static constexpr std::size_t many = 50;

    static std::string name_of(std::size_t i) { return "shelf " + std::to_string(i); }

    void hold_and_wait() {
        const mutex_options terms{.lease = 60s};
        for (std::size_t i = 0; i < many; ++i) {
            mutex theirs{holding[i % holding.size()], name_of(i), terms};
            held.push_back(theirs.acquire());
            believers.begins(name_of(i), held.back().token());
        }
        for (std::size_t i = 0; i < many; ++i) {
            waiters.emplace_back([this, i, terms](const std::stop_token& giving_up) {
                mutex ours{waiting[i % waiting.size()], name_of(i), terms};
                try {
                    lease got = ours.try_acquire_for(4 * an_age, {.stop = giving_up});
                    if (!got) return void(++told);
                    believers.begins(name_of(i), got.token());
                    ++served;
                    believers.ends(name_of(i), got.token());
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                    ++told;
                }
            });
        }
        ASSERT_TRUE(eventually([&] { return in_line(set.servers[0]) == many; }, an_age));
        ASSERT_TRUE(
            eventually([&] { return in_line(set.servers[1]) == many && in_line(set.servers[2]) == many; }, an_age))
            << "both replicas know all of it";
    }

    static std::size_t in_line(redis_server& server) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < many; ++i) {
            count += static_cast<std::size_t>(server.call({"ZCARD", "hf:{" + name_of(i) + "}:queue"}).integer);
        }
        return count;
    }

    /// Of our clients.
    static std::size_t links_at(redis_server& server) {
        const std::string list = list_of_links(server);
        std::size_t count = 0;
        for (std::size_t at = 0; (at = list.find("name=subject ", at)) != std::string::npos; ++at) ++count;
        return count;
    }
    // The sentinels cut all links to a server that they make a replica, the harness's own included.
    static std::string list_of_links(redis_server& server) {
        try {
            return server.call({"CLIENT", "LIST"}).text;
        } catch (const std::runtime_error&) {
            return server.call({"CLIENT", "LIST"}).text;
        }
    }

    /// Holders give back what they have, and so everybody in line is served. Nobody hangs.
    void expect_all_served() {
        const auto announced = steady::now();
        for (std::size_t i = 0; i < many; ++i) {
            EXPECT_GT(held[i].validity(), 0ms);
            believers.ends(name_of(i), held[i].token());
            // The new primary may not have a replica yet; then it refuses, and the release goes on in the background.
            const boost::system::error_code refused = held[i].release();
            EXPECT_TRUE(!refused || refused == errc::misconfigured) << name_of(i) << ": " << refused.message();
        }
        const milliseconds released = since(announced);
        EXPECT_TRUE(eventually([&] { return served + told == static_cast<int>(many); }, 2 * an_age));
        std::cout << "after the switch: all given back in " << released.count() << " ms, all served in "
                  << since(announced).count() << " ms\n";
        waiters.clear();
        EXPECT_EQ(served, static_cast<int>(many));
        EXPECT_EQ(believers.overlaps(), 0) << "nothing was lost: all of it was on both replicas";
    }

    sentinel_set set{{.config = {"min-replicas-to-write 1"}}};  // as docs/deployment.md recommends
    std::vector<client> holding = clients();
    std::vector<client> waiting = clients();
    std::vector<lease> held;
    std::atomic<int> served = 0;
    std::atomic<int> told = 0;
    belief believers;
    std::vector<std::jthread> waiters;  // last, for they use all the others; stopped and joined however a test ends

private:
    std::vector<client> clients() {
        std::vector<client> some;
        for (int i = 0; i < 3; ++i) some.emplace_back(set.url() + "?client_name=subject");
        return some;
    }
};

TEST_F(SentinelFailover, WhenThePrimaryIsKilledAllGoOnWithItsSuccessor) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto killed = steady::now();
    set.servers[0].kill();
    ASSERT_TRUE(set.has_replaced(set.servers[0]));
    std::cout << "failed over within " << since(killed).count() << " ms\n";
    expect_all_served();
}

// Its links are all there; only the sentinels know.
TEST_F(SentinelFailover, WhenThePrimaryHangsAllGoOnWithItsSuccessor) {
    ASSERT_NO_FATAL_FAILURE(hold_and_wait());
    const auto paused = steady::now();
    set.servers[0].pause();
    ASSERT_TRUE(set.has_replaced(set.servers[0]));
    std::cout << "failed over within " << since(paused).count() << " ms\n";
    expect_all_served();
    // When it wakes up it still takes itself for the primary, until the sentinels have told it otherwise. Nobody goes
    // there.
    set.servers[0].resume();
    EXPECT_TRUE(eventually([&] { return links_at(set.servers[0]) == 0; }, an_age));
    mutex again{holding[0], "afterwards"};
    lease afterwards = again.acquire();
    EXPECT_EQ(set.primary().call({"GET", "hf:{afterwards}"}).text, afterwards.id());
    EXPECT_EQ(links_at(set.primary()), holding.size() + waiting.size());
}

// The old primary is well, and goes on for a moment; what it grants then is forgotten.
TEST_F(SentinelFailover, AFailoverByHandUnderLoadLeavesNobodyBehind) {
    constexpr std::size_t names = 10;
    constexpr std::size_t workers = 40;
    std::vector<std::atomic<int>> rounds(workers);
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < workers; ++i) {
        running.emplace_back([&, i](const std::stop_token& stop) {
            const std::string name = name_of(i % names);
            mutex lock{(i % 2 == 0 ? holding : waiting)[i % 3], name, {.lease = 2s}};
            while (!stop.stop_requested()) {
                try {
                    lease got = lock.try_acquire_for(4 * an_age);
                    if (!got) continue;
                    const std::uint64_t token = got.token();
                    believers.begins(name, token);
                    std::this_thread::sleep_for(1ms);
                    believers.ends(name, token);
                    got.release();
                    ++rounds[i];
                } catch (const error& refused) {
                    ADD_FAILURE() << refused.what();
                }
            }
        });
    }
    const auto everybody_gets_on = [&](int more) {
        std::vector<int> before(rounds.begin(), rounds.end());
        return eventually(
            [&] {
                for (std::size_t i = 0; i < workers; ++i) {
                    if (rounds[i] < before[i] + more) return false;
                }
                return true;
            },
            2 * an_age);
    };
    EXPECT_TRUE(everybody_gets_on(2));
    EXPECT_TRUE(set.fail_over());
    EXPECT_TRUE(set.has_moved_from(set.servers[0]));
    const auto announced = steady::now();
    EXPECT_TRUE(everybody_gets_on(1));
    std::cout << "after the switch: everybody was served again within " << since(announced).count() << " ms, "
              << believers.overlaps() << " grants overlapped\n";
    // Nobody is at the old primary any more: what comes now is the new one's, and greater than all before.
    EXPECT_TRUE(eventually([&] { return links_at(set.servers[0]) == 0; }, an_age));
    for (std::jthread& each : running) each.request_stop();
    running.clear();
    for (std::size_t i = 0; i < names; ++i) {
        const std::uint64_t before = believers.greatest(name_of(i));
        mutex lock{holding[0], name_of(i)};
        EXPECT_GT(lock.acquire().token(), before) << name_of(i);
    }
}

}  // namespace
}  // namespace holdfast::testing
