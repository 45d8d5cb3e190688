// The end of clients and locks: an ordinary one is silent; a lock that a thread still holds is released, and told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::client_end_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class warning_list {
public:
    client_options options() {
        return {.log = [this](log_level level, const std::string& text) {
            const std::lock_guard guard(mutex_);
            if (level == log_level::warning) heard_.push_back(text);
        }};
    }
    std::vector<std::string> heard() {
        const std::lock_guard guard(mutex_);
        return heard_;
    }
    [[nodiscard]] bool come() {
        return eventually([this] { return !heard().empty(); });
    }

private:
    std::mutex mutex_;
    std::vector<std::string> heard_;
};

TEST(ClientEnd, AnOrdinaryEndWarnsOfNothing) {
    redis_server server;
    warning_list warnings;
    for (int i = 0; i < 50; ++i) {
        client brief{server.url(), warnings.options()};
        mutex lock{brief, "stock"};
        lease held = lock.acquire();
        EXPECT_FALSE(held.release());
    }
    EXPECT_THAT(warnings.heard(), IsEmpty());
}

TEST(ClientEnd, ALinkThatBreaksIsStillWarnedOf) {
    redis_server server;
    warning_list warnings;
    client subject{server.url(), warnings.options()};
    subject.ping();
    server.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(warnings.come());
    EXPECT_THAT(warnings.heard().front(), HasSubstr("the connection broke"));
}

class DestroyedWhileLocked : public ::testing::Test {
protected:
    [[nodiscard]] bool gets_free(const std::string& key = "hf:{stock}") {
        return eventually([&] { return server.call({"EXISTS", key}).integer == 0; });
    }
    std::string holder() { return server.call({"GET", "hf:{stock}"}).text; }
    /// Everything that was asked for before is done.
    void settle() { subject.ping(); }
    void expect_one_warning(const std::string& name = "stock") {
        ASSERT_TRUE(warnings.come());
        EXPECT_THAT(warnings.heard(), ElementsAre(HasSubstr("'" + name + "' was destroyed while it was locked")));
    }

    redis_server server;
    warning_list warnings;
    client subject{server.url(), warnings.options()};
};

TEST_F(DestroyedWhileLocked, AMutexIsReleasedWithAWarning) {
    {
        mutex lock{subject, "stock"};
        lock.lock();
        lock.lock();
    }
    EXPECT_TRUE(gets_free());
    expect_one_warning();
    mutex again{subject, "stock"};
    EXPECT_TRUE(again.try_acquire()) << "by another owner";
}

TEST_F(DestroyedWhileLocked, TheWarningIsHeardThoughTheClientEndsAtOnce) {
    constexpr int rounds = 50;
    for (int i = 0; i < rounds; ++i) {
        client brief{server.url(), warnings.options()};
        mutex lock{brief, "stock"};
        lock.lock();
    }
    EXPECT_EQ(warnings.heard().size(), static_cast<std::size_t>(rounds));
}

TEST_F(DestroyedWhileLocked, OneThatWasUnlockedIsDestroyedInSilence) {
    {
        mutex lock{subject, "stock"};
        lock.lock();
        ASSERT_TRUE(lock.try_lock());
        boost::system::error_code ec;
        lock.unlock(ec);
        EXPECT_FALSE(ec);
        lock.unlock();
    }
    EXPECT_TRUE(gets_free());
    settle();
    EXPECT_THAT(warnings.heard(), IsEmpty());
}

TEST_F(DestroyedWhileLocked, WhatAnotherThreadHoldsIsReleasedAndItsEndIsSilent) {
    auto lock = std::make_unique<mutex>(subject, "stock");
    std::promise<void> destroyed;
    std::promise<void> locked;
    std::thread holder([&] {
        lock->lock();
        locked.set_value();
        destroyed.get_future().wait();
    });
    locked.get_future().wait();
    lock.reset();
    EXPECT_TRUE(gets_free());
    settle();
    destroyed.set_value();
    holder.join();
    settle();
    expect_one_warning();
}

TEST_F(DestroyedWhileLocked, LevelsThatWereLockedThroughAnotherObjectStay) {
    mutex first{subject, "stock"};
    first.lock();
    {
        mutex second{subject, "stock"};
        second.lock();
    }
    settle();
    EXPECT_NE(holder(), "");
    expect_one_warning();
    first.unlock();
    EXPECT_TRUE(gets_free()) << "the other level was released";
}

TEST_F(DestroyedWhileLocked, AnUnlockThroughAnotherObjectCounts) {
    auto first = std::make_unique<mutex>(subject, "stock");
    mutex second{subject, "stock"};
    first->lock();
    second.unlock();
    second.lock();
    const std::string held = holder();
    ASSERT_NE(held, "");
    first.reset();
    settle();
    EXPECT_EQ(holder(), held) << "that is not the hold which the first one locked";
    EXPECT_THAT(warnings.heard(), IsEmpty());
    second.unlock();
    EXPECT_TRUE(gets_free());
}

TEST_F(DestroyedWhileLocked, ASharedMutexIsReleasedInBothModes) {
    {
        shared_mutex lock{subject, "stock"};
        lock.lock_shared();
        lock.lock();
        lock.lock_shared();
    }
    EXPECT_TRUE(gets_free());
    expect_one_warning();
}

TEST_F(DestroyedWhileLocked, AStripedLockIsReleasedWithOneWarning) {
    {
        striped_shared_mutex lock{subject, "stock", 4};
        lock.lock();
    }
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(gets_free("hf:{stock#" + std::to_string(i) + "}"));
    expect_one_warning();
}

TEST_F(DestroyedWhileLocked, LeasesAreNotAffected) {
    auto lock = std::make_unique<mutex>(subject, "stock");
    lease held = lock->acquire();
    lock.reset();
    settle();
    EXPECT_EQ(holder(), held.id());
    EXPECT_THAT(warnings.heard(), IsEmpty());
}

}  // namespace
}  // namespace holdfast::testing::client_end_test
