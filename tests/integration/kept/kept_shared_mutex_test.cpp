// Read-write locks that their client keeps, on a real server. R50 R51
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::kept_shared_mutex_test {
namespace {

using namespace std::chrono_literals;

const shared_mutex_options kept{.lease = 20s, .keep = 60s, .passes = 16};

class KeptSharedMutex : public ::testing::Test {
protected:
    std::int64_t script_calls() { return server.command_calls("evalsha") + server.command_calls("eval"); }
    std::int64_t fields() { return server.call({"HLEN", "hf:{stock}"}).integer; }
    void warm_up(shared_mutex& lock) {
        ASSERT_TRUE(eventually([&] {
            lock.lock_shared();
            lock.unlock_shared();
            subject.ping();
            return server.call({"EXISTS", "hf:{stock}"}).integer == 1;
        }));
    }

    redis_server server;
    client subject{server.url()};
    client other{server.url()};
};

TEST_F(KeptSharedMutex, ReadersShareOneHold) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    const auto before = script_calls();
    const auto fields_of_one = fields();
    std::vector<lease> all;
    for (int i = 0; i < 100; ++i) all.push_back(lock.acquire_shared());
    EXPECT_LE(script_calls() - before, 1);
    EXPECT_EQ(all.front().token(), all.back().token());
    EXPECT_EQ(fields(), fields_of_one);
    shared_mutex theirs{other, "stock"};
    EXPECT_TRUE(theirs.try_acquire_shared());
    EXPECT_FALSE(theirs.try_acquire());
}

TEST_F(KeptSharedMutex, ReadersAndWritersOfOneProcessTakeTurns) {
    for (const prefer order : {prefer::arrival, prefer::readers, prefer::writers}) {
        shared_mutex_options chosen = kept;
        chosen.prefer = order;
        shared_mutex lock{subject, "turns" + std::to_string(static_cast<int>(order)), chosen};
        int value = 0;
        std::vector<std::thread> all;
        for (int t = 0; t < 4; ++t) {
            all.emplace_back([&, t] {
                for (int i = 0; i < 100; ++i) {
                    if ((i + t) % 4 == 0) {
                        const std::lock_guard held(lock);
                        ++value;
                    } else {
                        const std::shared_lock held(lock);
                        EXPECT_GE(value, 0);
                    }
                }
            });
        }
        for (auto& each : all) each.join();
        EXPECT_EQ(value, 100);
    }
}

TEST_F(KeptSharedMutex, AWriterElsewhereGetsAReadHoldThatNobodyUses) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    shared_mutex theirs{other, "stock"};
    EXPECT_TRUE(theirs.try_lock());
    theirs.unlock();
}

TEST_F(KeptSharedMutex, OurOwnWriterGetsTheUnusedReadHold) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(std::async(std::launch::async, [&] { return lock.try_lock_shared(); }).get());
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_shared());
    lock.unlock_shared();
}

TEST_F(KeptSharedMutex, AReaderElsewhereEntersBesideOurReadersOfAWritersHold) {
    shared_mutex lock{subject, "stock", kept};
    lock.lock();
    lock.unlock();
    lock.lock();
    lock.unlock();
    const lease reading = lock.acquire_shared();
    shared_mutex theirs{other, "stock"};
    EXPECT_TRUE(theirs.try_acquire_shared_for(20s));
    EXPECT_GT(reading.validity(), 0ms);
}

TEST_F(KeptSharedMutex, AnUpgradeAndADowngradeAreLocalOnesOfTheOwner) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    lease reading = lock.acquire_shared();
    const auto before = reading.token();
    lease writing = reading.upgrade();
    EXPECT_GT(writing.token(), before);
    EXPECT_FALSE(lock.try_acquire_shared());
    lease again = writing.downgrade();
    EXPECT_EQ(again.mode(), mode::shared);
    EXPECT_TRUE(lock.try_acquire_shared());
    EXPECT_FALSE(again.release());
    EXPECT_FALSE(reading.release());
    lock.lock_shared();
    lock.lock();
    lock.unlock();
    lock.unlock_shared();
}

TEST_F(KeptSharedMutex, ASecondUpgradeInTheProcessIsToldAtOnce) {
    shared_mutex lock{subject, "stock", kept};
    lease a = lock.acquire_shared();
    lease b = lock.acquire_shared();
    auto first = a.async_upgrade(boost::asio::use_future);
    EXPECT_THROW(b.upgrade(), error);
    EXPECT_FALSE(b.release());
    EXPECT_TRUE(first.get());
}

TEST_F(KeptSharedMutex, LossReachesEveryReader) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    lease a = lock.acquire_shared();
    lease b = lock.acquire_shared();
    server.call({"DEL", "hf:{stock}"});
    EXPECT_TRUE(a.renew());
    EXPECT_TRUE(eventually([&] { return a.lost().stop_requested() && b.lost().stop_requested(); }));
}

TEST_F(KeptSharedMutex, TwoClientsThatKeepItLoseNoUpdate) {
    shared_mutex mine{subject, "stock", kept};
    shared_mutex theirs{other, "stock", kept};
    int value = 0;
    std::vector<std::thread> all;
    for (shared_mutex* const lock : {&mine, &theirs}) {
        for (int t = 0; t < 2; ++t) {
            all.emplace_back([&, lock] {
                for (int i = 0; i < 100; ++i) {
                    if (i % 3 == 0) {
                        const std::lock_guard held(*lock);
                        ++value;
                    } else {
                        const std::shared_lock held(*lock);
                        EXPECT_GE(value, 0);
                    }
                }
            });
        }
    }
    for (auto& each : all) each.join();
    EXPECT_EQ(value, 4 * 34);
}

// --- the fast path of threads, and what closes it

TEST_F(KeptSharedMutex, ThreadsThatReadByTheFastPathExcludeWritersHereAndElsewhere) {
    shared_mutex mine{subject, "stock", kept};
    shared_mutex theirs{other, "stock", kept};
    warm_up(mine);
    int value = 0;
    std::atomic<int> reading = 0;
    const auto use = [&](shared_mutex& lock, int turns, int write_every) {
        for (int i = 1; i <= turns; ++i) {
            if (i % write_every == 0) {
                const std::lock_guard held(lock);
                EXPECT_EQ(reading, 0);
                ++value;
            } else {
                const std::shared_lock held(lock);
                ++reading;
                EXPECT_GE(value, 0);
                --reading;
            }
        }
    };
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t) all.emplace_back([&] { use(mine, 2000, 100); });
    all.emplace_back([&] { use(theirs, 50, 2); });
    for (auto& each : all) each.join();
    EXPECT_EQ(value, 3 * 20 + 25);
}

TEST_F(KeptSharedMutex, ALossMeetsThreadsOnTheFastPath) {
    shared_mutex lock{subject, "stock", kept};
    warm_up(lock);
    std::atomic<bool> is_over = false;
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t) {
        all.emplace_back([&] {
            while (!is_over) {
                lock.lock_shared();
                try {
                    lock.lock_shared();
                    boost::system::error_code of_inner;
                    lock.unlock_shared(of_inner);
                } catch (const error& why) {
                    EXPECT_EQ(why.condition(), errc::lost) << why.what();
                }
                boost::system::error_code of_outer;
                lock.unlock_shared(of_outer);
                EXPECT_TRUE(!of_outer || of_outer == errc::lost) << of_outer.message();
            }
        });
    }
    for (int i = 0; i < 20; ++i) {
        lease seen = lock.acquire_shared();
        server.call({"DEL", "hf:{stock}"});
        EXPECT_TRUE(seen.renew());
    }
    is_over = true;
    for (auto& each : all) each.join();
    EXPECT_TRUE(lock.try_acquire_for(20s));
}

TEST_F(KeptSharedMutex, ALockObjectThatIsDestroyedReleasesWhatThreadsReadByIt) {
    shared_mutex stays{subject, "stock", kept};
    warm_up(stays);
    std::vector<std::thread> all;
    for (int t = 0; t < 3; ++t) {
        all.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                auto mine = std::make_unique<shared_mutex>(subject, "stock", kept);
                mine->lock_shared();
                if (i % 2 == 0) mine->unlock_shared();
            }
        });
    }
    for (auto& each : all) each.join();
    EXPECT_TRUE(stays.try_lock());
    stays.unlock();
}

TEST_F(KeptSharedMutex, ALockObjectThatIsDestroyedReleasesOnlyItsOwnLevels) {
    shared_mutex stays{subject, "stock", kept};
    auto goes = std::make_unique<shared_mutex>(subject, "stock", kept);
    warm_up(stays);
    goes->lock_shared();
    stays.lock_shared();
    goes->unlock_shared();
    goes.reset();
    EXPECT_FALSE(shared_mutex(other, "stock").try_lock());
    stays.unlock_shared();
    EXPECT_TRUE(shared_mutex(other, "stock").try_lock_for(20s));
}

TEST_F(KeptSharedMutex, AThreadThatEndsReadingByTheFastPathLeavesTheHoldToItsLease) {
    shared_mutex lock{subject, "stock", {.lease = 1s, .keep = 60s}};
    warm_up(lock);
    std::thread([&] { lock.lock_shared(); }).join();
    EXPECT_TRUE(shared_mutex(other, "stock").try_lock_for(20s));
}

TEST_F(KeptSharedMutex, AThreadReentersAndUpgradesWhatItReadsByTheFastPath) {
    shared_mutex lock{subject, "stock", kept};
    shared_mutex same{subject, "stock", kept};
    shared_mutex different{subject, "stock", {.lease = 5s}};
    warm_up(lock);
    lock.lock_shared();
    same.lock_shared();
    different.lock_shared();
    lock.lock();
    boost::system::error_code result;
    for (shared_mutex* const each : {&lock, &same}) {
        each->unlock_shared(result);
        EXPECT_FALSE(result);
    }
    lock.unlock(result);
    EXPECT_FALSE(result);
    EXPECT_FALSE(shared_mutex(other, "stock").try_lock()) << "one level is left";
    different.unlock_shared(result);
    EXPECT_FALSE(result);
    lock.unlock_shared(result);
    EXPECT_EQ(result, errc::not_held);
    EXPECT_TRUE(shared_mutex(other, "stock").try_lock_for(20s));
}

}  // namespace
}  // namespace holdfast::testing::kept_shared_mutex_test
