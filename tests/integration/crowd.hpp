// Many who hold locks and wait for them, for tests in which a server fails: who believes what, and whether all are
// served in the end.
#pragma once

#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing {

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

/// How late a thread is woken at worst while this is there: a busy machine keeps everybody waiting, us as well.
class pulse {
public:
    milliseconds worst() const { return milliseconds{worst_ms_.load()}; }

private:
    void beat(const std::stop_token& end) {
        constexpr milliseconds rest{10};
        while (!end.stop_requested()) {
            const auto before = std::chrono::steady_clock::now();
            std::this_thread::sleep_for(rest);
            const auto late = std::chrono::steady_clock::now() - before - rest;
            worst_ms_ = std::max(worst_ms_.load(), std::chrono::duration_cast<milliseconds>(late).count());
        }
    }

    std::atomic<milliseconds::rep> worst_ms_ = 0;
    std::jthread beating_{[this](const std::stop_token& end) { beat(end); }};
};

/// Fifty who hold, and behind each of them one who waits, all over a few clients.
class crowd {
public:
    using steady = std::chrono::steady_clock;
    static constexpr std::size_t many = 50;
    /// All are served or told within the time of the failover and this.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static constexpr milliseconds soon = std::chrono::seconds{10};
#else
    static constexpr milliseconds soon = std::chrono::seconds{2};
#endif

    static inline const mutex_options usual{.lease = std::chrono::seconds{60}};

    /// The URL with options, if any: "?...".
    explicit crowd(const std::string& url, const mutex_options& wanted = usual)
        : holding{clients(url)}, waiting{clients(url)}, terms{wanted} {}

    static std::string name_of(std::size_t i) {
        return "shelf " + std::to_string(i);
    }
    static std::string queue_of(std::size_t i) {
        return "hf:{" + name_of(i) + "}:queue";
    }
    static milliseconds since(steady::time_point begin) {
        return std::chrono::duration_cast<milliseconds>(steady::now() - begin);
    }

    /// Returns when all locks are held. The waiters may not be in the queue yet.
    void hold_and_wait() {
        for (std::size_t i = 0; i < many; ++i) {
            mutex theirs{holding[i % holding.size()], name_of(i), terms};
            held.push_back(theirs.acquire());
            believers.begins(name_of(i), held.back().token());
        }
        for (std::size_t i = 0; i < many; ++i) {
            waiters.emplace_back([this, i](const std::stop_token& giving_up) {
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
    }

    /// From when on another server serves in the place of one that failed: when a write went well that was sent, again
    /// and again, to whatever `where_to` tells (nullptr: nobody is known), as any other client would do it.
    static steady::time_point first_write(const std::function<redis_server*()>& where_to, const std::string& key) {
        const auto goes_well = [&] {
            redis_server* const there = where_to();
            return there != nullptr && there->call({"SET", key, "1", "PX", "60000"}).text == "OK";
        };
        EXPECT_TRUE(eventually(goes_well, 2 * an_age)) << "nobody took over";
        return steady::now();
    }

    /// Holders give back what they have, and so every waiter is served: soon after another server serves. Nobody
    /// hangs.
    void expect_all_served(steady::time_point serving) {
        const auto begun = steady::now();
        const pulse machine;
        for (std::size_t i = 0; i < many; ++i) {
            EXPECT_GT(held[i].validity(), milliseconds{0});
            believers.ends(name_of(i), held[i].token());
            // The new primary may not have a replica yet; then it refuses. Or it was sent to the old one, which hangs.
            // In both cases the release goes on in the background, and the waiters are served.
            const boost::system::error_code refused = held[i].release();
            EXPECT_TRUE(!refused || refused == errc::misconfigured || refused == errc::outcome_unknown)
                << name_of(i) << ": " << refused.message();
        }
        const milliseconds released = since(begun);
        EXPECT_TRUE(eventually([&] { return served + told == static_cast<int>(many); }, 2 * an_age));
        const milliseconds needed = since(serving);
        std::cout << "after the first write of another client: all given back in " << released.count()
                  << " ms, all served in " << needed.count() << " ms\n";
        EXPECT_LE(needed, soon + 10 * machine.worst()) << "threads were late by " << machine.worst().count() << " ms";
        waiters.clear();
        EXPECT_EQ(served, static_cast<int>(many));
        EXPECT_EQ(believers.overlaps(), 0) << "nothing was lost: all of it was on the replicas";
    }

    std::vector<client> holding;
    std::vector<client> waiting;
    std::vector<lease> held;
    std::atomic<int> served = 0;
    std::atomic<int> told = 0;
    belief believers;
    const mutex_options terms;
    std::vector<std::jthread> waiters;  // last, for they use all the others; stopped and joined however a test ends

private:
    static std::vector<client> clients(const std::string& url) {
        std::vector<client> some;
        for (int i = 0; i < 3; ++i) {
            some.emplace_back(url + (url.find('?') == url.npos ? "?" : "&") + "client_name=subject");
        }
        return some;
    }
};

}  // namespace holdfast::testing
