// Read-write locks that their client keeps, on a real server. R50 R51
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

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

}  // namespace
}  // namespace holdfast::testing::kept_shared_mutex_test
