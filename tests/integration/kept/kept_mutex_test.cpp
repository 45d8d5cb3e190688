// Locks that their client keeps, on a real server: local grants ask nothing, others get the lock when they want it, and
// nothing is left behind. R50 R51 R52
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::kept_mutex_test {
namespace {

using namespace std::chrono_literals;

const std::string key = "hf:{stock}";
const mutex_options kept{.lease = 20s, .keep = 60s, .passes = 16};

class KeptMutex : public ::testing::Test {
protected:
    bool exists() { return server.call({"EXISTS", key}).integer == 1; }
    bool becomes_free() {
        return eventually([&] { return !exists(); });
    }
    std::int64_t script_calls() { return server.command_calls("evalsha") + server.command_calls("eval"); }
    // A hold is kept only once the client can be asked for it, which the first acquisition may be too early for.
    void warm_up(mutex& lock) {
        ASSERT_TRUE(eventually([&] {
            lock.lock();
            lock.unlock();
            subject->ping();
            return exists();
        }));
    }

    // A program keeps the lock, and ends without destroying it.
    void leaves(const std::string& how) {
        child_process program{HOLDFAST_LEAVER, {.arguments = {server.url(), how}, .after_input = input_end::open}};
        ASSERT_TRUE(eventually([&] { return program.output() == "kept\n" || !program.running(); }));
        EXPECT_EQ(program.output(), "kept\n") << program.errors();
        EXPECT_TRUE(exists());
        program.write_input("\n");
        EXPECT_EQ(program.wait(), exit_result{.status = 0}) << program.errors();
        EXPECT_TRUE(becomes_free()) << how;
    }

    redis_server server;
    std::shared_ptr<metrics> counted = std::make_shared<metrics>();
    std::unique_ptr<client> subject = std::make_unique<client>(server.url(), client_options{.metrics = counted});
    client other{server.url()};
};

TEST_F(KeptMutex, AcquiringItAgainSendsNothing) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    const auto before = script_calls();
    for (int i = 0; i < 20'000; ++i) {
        const std::lock_guard held(lock);
    }
    for (int i = 0; i < 20'000; ++i) lock.acquire();
    EXPECT_LE(script_calls() - before, 2) << "renewals only";
    EXPECT_GE(counted->local_grants, 40'000U);
}

TEST_F(KeptMutex, OthersGetItWhenTheyWantIt) {
    mutex lock{*subject, "stock", kept};
    mutex theirs{other, "stock"};
    for (int i = 0; i < 5; ++i) {
        warm_up(lock);
        ASSERT_TRUE(theirs.try_lock_for(20s));
        EXPECT_FALSE(lock.try_lock());
        theirs.unlock();
    }
    EXPECT_GE(counted->give_backs, 5U);
}

TEST_F(KeptMutex, ATryBesideALockThatNobodyUsesSucceeds) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    mutex theirs{other, "stock"};
    EXPECT_TRUE(theirs.try_lock());
    theirs.unlock();
}

TEST_F(KeptMutex, ATryBesideALockInUseSaysThatItIsKept) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    const lease held = lock.acquire();
    mutex theirs{other, "stock"};
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::busy);
    EXPECT_EQ(why.holder, held.id());
    EXPECT_TRUE(why.kept);
    refusal late;
    EXPECT_FALSE(theirs.try_acquire_for(20ms, {.why_not = &late}));
    EXPECT_TRUE(late.kept);
    refusal here;
    EXPECT_FALSE(lock.try_acquire({.why_not = &here}));
    EXPECT_EQ(here.code, errc::busy);
    EXPECT_EQ(here.holder, held.id());
    EXPECT_TRUE(here.kept);
    refusal told;
    auto answered = theirs.async_try_acquire({.why_not = &told}, boost::asio::use_future);
    EXPECT_THROW(answered.get(), boost::system::system_error);
    EXPECT_NE(told.detail.find("held by " + held.id() + " (kept)"), std::string::npos) << told.detail;
}

TEST_F(KeptMutex, TwoClientsThatKeepItTakeTurnsAndLoseNoUpdate) {
    mutex mine{*subject, "stock", kept};
    mutex theirs{other, "stock", kept};
    std::uint64_t last = 0;
    int value = 0;
    std::vector<std::thread> all;
    for (mutex* const lock : {&mine, &theirs}) {
        for (int t = 0; t < 3; ++t) {
            all.emplace_back([&, lock] {
                for (int i = 0; i < 200; ++i) {
                    const lease held = lock->acquire();
                    EXPECT_GT(held.token(), last);
                    last = held.token();
                    ++value;
                }
            });
        }
    }
    for (auto& each : all) each.join();
    EXPECT_EQ(value, 1200);
}

TEST_F(KeptMutex, TokensGrowWithEveryLocalGrant) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    std::uint64_t last = 0;
    for (int i = 0; i < 1000; ++i) {
        const lease held = lock.acquire();
        ASSERT_GT(held.token(), last);
        last = held.token();
    }
    EXPECT_LE(last, std::stoull(server.call({"GET", "hf:{stock}:fence"}).text));
    mutex theirs{other, "stock"};
    EXPECT_GT(theirs.acquire().token(), last);
}

TEST_F(KeptMutex, OneOwnerReentersAcrossAllObjectsOfTheName) {
    mutex lock{*subject, "stock", kept};
    mutex plain{*subject, "stock"};
    mutex different{*subject, "stock", {.lease = 10s, .keep = 1s}};
    lock.lock();
    EXPECT_TRUE(plain.try_lock());
    EXPECT_TRUE(different.try_lock());
    std::thread([&] { EXPECT_FALSE(plain.try_lock()); }).join();
    different.unlock();
    plain.unlock();
    lock.unlock();

    plain.lock();
    EXPECT_TRUE(lock.try_lock());
    EXPECT_TRUE(different.try_lock());
    different.unlock();
    lock.unlock();
    plain.unlock();

    const owner me;
    const lease outer = lock.acquire({.owner = me});
    EXPECT_TRUE(plain.try_acquire({.owner = me}));
    EXPECT_TRUE(lock.async_try_acquire({.owner = me}, boost::asio::use_future).get());
}

TEST_F(KeptMutex, LocalWaitersHaveTheirOwnDeadlinesAndStops) {
    mutex lock{*subject, "stock", kept};
    lease held = lock.acquire();
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_acquire_for(20ms));
    EXPECT_FALSE(lock.try_lock_for(20ms));
    std::stop_source stop;
    std::jthread later([&] {
        std::this_thread::sleep_for(20ms);
        stop.request_stop();
    });
    EXPECT_THROW(lock.acquire({.stop = stop.get_token()}), error);
    auto waits = lock.async_acquire(boost::asio::use_future);
    auto in_vain = lock.async_try_acquire_for(20ms, boost::asio::use_future);
    EXPECT_THROW(in_vain.get(), boost::system::system_error);
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(waits.get());
}

TEST_F(KeptMutex, LossReachesTheHolderAndTheNextAcquisitionStartsAnew) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    lease held = lock.acquire();
    server.call({"DEL", key});
    EXPECT_TRUE(held.renew());
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }));
    EXPECT_LE(held.validity(), 0ms);
    EXPECT_EQ(held.release(), make_error_code(errc::lost));
    EXPECT_TRUE(lock.acquire());
}

TEST_F(KeptMutex, ALeaseIsRenewedAndToldAsOfItsHold) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    lease held = lock.acquire();
    EXPECT_GT(held.validity(), 1s);
    EXPECT_FALSE(held.renew());
    EXPECT_EQ(held.id(), server.call({"GET", key}).text);
    EXPECT_EQ(held.waiters(), 0U);
}

TEST_F(KeptMutex, TheLastLockObjectGivesItBack) {
    auto first = std::make_unique<mutex>(*subject, "stock", kept);
    const auto second = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(*first);
    const auto number = script_calls();
    second->lock();
    second->unlock();
    EXPECT_LE(script_calls() - number, 1) << "they share it";
    first.reset();
    subject->ping();
    EXPECT_TRUE(exists());
}

TEST_F(KeptMutex, ItIsGivenBackWithTheLockObjectTheLeaseAndTheClient) {
    auto lock = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(*lock);
    lease held = lock->acquire();
    lock.reset();
    subject->ping();
    EXPECT_TRUE(exists()) << "a lease outlives its lock object";
    held = {};
    EXPECT_TRUE(becomes_free());

    lock = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(*lock);
    lock.reset();
    EXPECT_TRUE(becomes_free());

    lock = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(*lock);
    held = lock->acquire();
    subject.reset();
    lock.reset();
    EXPECT_TRUE(exists());
    held = {};
    EXPECT_FALSE(exists()) << "the last one waits for the release";
}

TEST_F(KeptMutex, ItIsGivenBackWhenItWasKeptLongEnough) {
    mutex lock{*subject, "stock", {.lease = 20s, .keep = 50ms}};
    lock.lock();
    lock.unlock();
    EXPECT_TRUE(becomes_free());
}

TEST_F(KeptMutex, BeyondTheLimitTheLongestUnusedIsGivenBack) {
    const client few{server.url(), {.max_kept = 2}};
    std::vector<std::unique_ptr<mutex>> locks;
    const auto held = [&] { return server.call({"EXISTS", "hf:{m0}", "hf:{m1}", "hf:{m2}", "hf:{m3}"}).integer; };
    for (int i = 0; i < 4; ++i) {
        locks.push_back(std::make_unique<mutex>(few, "m" + std::to_string(i), kept));
        for (int n = 0; n < 2; ++n) {
            locks.back()->lock();
            locks.back()->unlock();
        }
    }
    EXPECT_TRUE(eventually([&] { return held() == 2; })) << held();
    EXPECT_EQ(server.call({"EXISTS", "hf:{m3}"}).integer, 1);
}

TEST_F(KeptMutex, AThreadThatEndsHoldingLeavesItToItsLease) {
    mutex lock{*subject, "stock", {.lease = 1s, .keep = 60s}};
    warm_up(lock);
    std::thread([&] { lock.lock(); }).join();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_TRUE(lock.try_lock_for(20s));
    lock.unlock();
}

TEST_F(KeptMutex, AnObjectThatIsDestroyedReleasesWhatItsThreadsLocked) {
    auto lock = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(*lock);
    lock->lock();
    lock->lock();
    lock.reset();
    EXPECT_TRUE(becomes_free());
}

TEST_F(KeptMutex, AnObjectThatIsDestroyedReleasesOnlyItsOwnLevels) {
    mutex stays{*subject, "stock", kept};
    auto goes = std::make_unique<mutex>(*subject, "stock", kept);
    warm_up(stays);
    const auto is_free_here = [&] {
        return std::async(std::launch::async,
                          [&] {
                              const bool is_free = stays.try_lock();
                              if (is_free) stays.unlock();
                              return is_free;
                          })
            .get();
    };
    goes->lock();
    stays.lock();
    goes->unlock();
    goes.reset();
    EXPECT_FALSE(is_free_here());
    EXPECT_FALSE(mutex(other, "stock").try_lock());
    stays.unlock();
    EXPECT_TRUE(is_free_here());

    goes = std::make_unique<mutex>(*subject, "stock", kept);
    stays.lock();
    goes->lock();
    goes.reset();
    EXPECT_FALSE(is_free_here());
    stays.unlock();
    EXPECT_TRUE(eventually(is_free_here)) << "the level of the object that is gone is released";
}

TEST_F(KeptMutex, TheChildOfAForkHoldsNothingAndSendsNothing) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    lease held = lock.acquire();
    const auto before = script_calls();
    const pid_t child = fork();
    if (child == 0) {
        bool right = held.validity() == 0ms;
        try {
            lock.lock();
            right = false;
        } catch (const error& why) {
            right = right && why.condition() == errc::forked;
        }
        right = right && held.release() == make_error_code(errc::forked);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(script_calls(), before);
    EXPECT_FALSE(held.release());
    lock.lock();
    lock.unlock();
    EXPECT_EQ(script_calls(), before) << "the parent goes on";
}

TEST_F(KeptMutex, TheChildOfAForkIsNotHeldUpByWhatOtherThreadsDidThen) {
    std::atomic<bool> is_over = false;
    std::thread busy([&] {
        while (!is_over) {
            mutex lock{*subject, "stock", kept};
            lock.lock();
            lock.unlock();
        }
    });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60);
            try {
                mutex lock{*subject, "stock", kept};
                lock.lock();
            } catch (const error& why) {
                if (why.condition() == errc::forked) ::_exit(0);
            }
            ::_exit(1);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    is_over = true;
    busy.join();
}

TEST_F(KeptMutex, ExitGivesItBack) {
    leaves("kept");
}

TEST_F(KeptMutex, ExitGivesItBackThoughOtherThreadsUseTheClient) {
    for (int i = 0; i < 10; ++i) leaves("busy");
}

TEST_F(KeptMutex, AfterExitHasGivenItBackNothingIsKept) {
    leaves("late");
}

// Before, during and after: of local grants, of a hand-over, and of a hold that was acquired anew.
TEST(KeptMutexClock, TokensGrowAlsoWhenTheServersClockIsSetBack) {
    redis_server server({.clock_moves = true});
    client mine{server.url()};
    client theirs{server.url()};
    mutex lock{mine, "stock", kept};
    mutex plain{theirs, "stock"};
    std::uint64_t last = 0;
    const auto token_grows = [&](mutex& by) {
        const lease held = by.acquire();
        EXPECT_GT(held.token(), last);
        last = held.token();
    };
    const auto tokens_grow = [&] {
        for (int i = 0; i < 2000; ++i) token_grows(lock);
    };
    tokens_grow();
    const std::int64_t before = server.clock_us();
    server.set_clock_ahead(-2min);
    EXPECT_LT(server.clock_us(), before);
    tokens_grow();
    token_grows(plain);
    tokens_grow();
    server.set_clock_ahead(-4min);
    token_grows(plain);
    token_grows(lock);
    EXPECT_LE(last, std::stoull(server.call({"GET", "hf:{stock}:fence"}).text));
}

TEST_F(KeptMutex, WhatCannotBeAskedBackIsRefused) {
    const auto refused = [&](const mutex_options& chosen) {
        try {
            const mutex lock{*subject, "stock", chosen};
            return false;
        } catch (const error& why) {
            return why.condition() == errc::bad_option && std::string(why.what()).find("keep") != std::string::npos;
        }
    };
    EXPECT_TRUE(refused({.renew = false, .keep = 1s}));
    EXPECT_TRUE(refused({.renew = false, .passes = 1}));
    EXPECT_TRUE(refused({.keys = keys::raw, .keep = 1s}));
    EXPECT_TRUE(refused({.keep = -1s}));
    EXPECT_TRUE(refused({.keep = 25h}));
    EXPECT_THROW(striped_shared_mutex(*subject, "stock", 2, {.keep = 1s}), error);
}

TEST_F(KeptMutex, PassesWithoutKeepServeTheWaitersOfTheProcess) {
    mutex lock{*subject, "stock", {.lease = 20s, .passes = 16}};
    std::vector<std::thread> all;
    int value = 0;
    for (int t = 0; t < 4; ++t) {
        all.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                const std::lock_guard held(lock);
                ++value;
            }
        });
    }
    for (auto& each : all) each.join();
    EXPECT_EQ(value, 400);
    EXPECT_TRUE(becomes_free());
}

TEST_F(KeptMutex, AnotherLeaseGoesToTheServer) {
    mutex lock{*subject, "stock", kept};
    warm_up(lock);
    const lease other_lease = lock.acquire({.lease = 5s});
    EXPECT_LE(other_lease.validity(), 5s);
    EXPECT_FALSE(lock.try_acquire());
}

}  // namespace
}  // namespace holdfast::testing::kept_mutex_test
