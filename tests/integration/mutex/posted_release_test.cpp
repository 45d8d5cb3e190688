// Releases that nobody waits for, on real servers: unlock() and the end of a lease. They do not wait for an answer, and
// yet none is forgotten: not with its client, not with its link, not with its thread.
#include <boost/asio/post.hpp>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "integration/mutex/posted_release_fixture.hpp"

namespace holdfast::testing::posted_release_test {
namespace {

/// Far more patient than the tests: what waits for an answer of the server while that is stopped would be noticed.
class PostedReleaseToAServerThatHangs : public PostedRelease {
protected:
    /// Long before the timeout, and yet more than any machine needs to send something.
    static constexpr milliseconds soon = an_age;

    /// True if it waits for the server, and ends when that goes on.
    bool waits(const std::function<void()>& what) {
        server.pause();
        auto ending = std::async(std::launch::async, what);
        const bool waiting = ending.wait_for(300ms) == std::future_status::timeout;
        server.resume();
        ending.get();
        return waiting;
    }

    std::unique_ptr<client> subject = make_client(server.url(), "120s");
    mutex stock{*subject, "stock", {.lease = lasting}};
    shared_mutex catalog{*subject, "catalog", {.lease = lasting}};
    striped_shared_mutex shelves{*subject, "shelves", 4, {.lease = lasting}};
};

TEST_F(PostedReleaseToAServerThatHangs, UnlockDoesNotWait) {
    stock.lock();
    catalog.lock_shared();
    shelves.lock();
    server.pause();
    EXPECT_LT(time_of([&] { stock.unlock(); }), soon);
    EXPECT_LT(time_of([&] { catalog.unlock_shared(); }), soon);
    EXPECT_LT(time_of([&] { shelves.unlock(); }), soon);
    server.resume();
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

TEST_F(PostedReleaseToAServerThatHangs, TheEndOfAGuardDoesNotWait) {
    auto writing = std::make_unique<std::scoped_lock<mutex>>(stock);
    auto reading = std::make_unique<std::shared_lock<shared_mutex>>(catalog);
    server.pause();
    EXPECT_LT(time_of([&] { writing.reset(); }), soon);
    EXPECT_LT(time_of([&] { reading.reset(); }), soon);
    server.resume();
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

TEST_F(PostedReleaseToAServerThatHangs, TheEndOfALeaseAndItsAssignmentDoNotWait) {
    lease held = stock.acquire();
    auto reading = std::make_unique<lease>(catalog.acquire_shared());
    auto striped = std::make_unique<striped_lease>(shelves.acquire());
    server.pause();
    EXPECT_LT(time_of([&] { held = lease(); }), soon);
    EXPECT_LT(time_of([&] { reading.reset(); }), soon);
    EXPECT_LT(time_of([&] { striped.reset(); }), soon);
    server.resume();
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

TEST_F(PostedReleaseToAServerThatHangs, TheEndOfLockAllDoesNotWait) {
    auto all = std::make_unique<lock_all>(stock, catalog);
    server.pause();
    EXPECT_LT(time_of([&] { all.reset(); }), soon);
    server.resume();
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

// A writer that goes on reading.
TEST_F(PostedReleaseToAServerThatHangs, TheEndOfAnUpgradeDoesNotWait) {
    lease reading = catalog.acquire_shared();
    auto writing = std::make_unique<lease>(reading.upgrade());
    server.pause();
    EXPECT_LT(time_of([&] { writing.reset(); }), soon);
    server.resume();
    EXPECT_TRUE(eventually([&] { return server.call({"HGET", "hf:{catalog}", "mode"}).text == "read"; }, an_age));
    EXPECT_FALSE(reading.release());
}

TEST_F(PostedReleaseToAServerThatHangs, WhatTellsHowItWentWaits) {
    lease held = stock.acquire();
    EXPECT_TRUE(waits([&] { EXPECT_FALSE(held.release()); }));
    EXPECT_FALSE(exists());
    striped_lease striped = shelves.acquire();
    EXPECT_TRUE(waits([&] { EXPECT_FALSE(striped.release()); }));
    EXPECT_EQ(leftovers(server), "");
    std::promise<void> locked;
    std::promise<void> stopped;
    auto unlocking = std::async(std::launch::async, [&] {
        stock.lock();
        catalog.lock_shared();
        locked.set_value();
        stopped.get_future().wait();
        boost::system::error_code ec;
        stock.unlock(ec);
        EXPECT_FALSE(ec);
        catalog.unlock_shared(ec);
        EXPECT_FALSE(ec);
    });
    locked.get_future().wait();
    server.pause();
    stopped.set_value();
    EXPECT_EQ(unlocking.wait_for(300ms), std::future_status::timeout);
    server.resume();
    unlocking.get();
    EXPECT_EQ(leftovers(server), "");
}

/// A link on which everything takes its time.
class PostedReleaseOverASlowLink : public PostedRelease {
protected:
    void slow_down() { link.delay(direction::both, 300ms); }

    std::unique_ptr<client> subject = make_client(link.url(), "60s");
};

TEST_F(PostedReleaseOverASlowLink, IsDoneWhenTheClientIsGone) {
    {
        mutex lock{*subject, "stock", {.lease = lasting}};
        const lease held = lock.acquire();
        ASSERT_TRUE(exists());
        slow_down();
    }
    subject.reset();
    EXPECT_FALSE(exists());
}

TEST_F(PostedReleaseOverASlowLink, OfAThreadIsDoneWhenTheClientIsGone) {
    {
        mutex lock{*subject, "stock", {.lease = lasting}};
        shared_mutex catalog{*subject, "catalog", {.lease = lasting}};
        const std::scoped_lock guard{lock};
        const std::shared_lock reading{catalog};
        ASSERT_TRUE(exists());
        slow_down();
    }
    subject.reset();
    EXPECT_EQ(leftovers(server), "");
}

// Nothing else is left of the client: it goes with the lease.
TEST_F(PostedReleaseOverASlowLink, IsDoneThoughTheClientWentBeforeItsLease) {
    {
        const lease held = mutex{*subject, "stock", {.lease = lasting}}.acquire();
        subject.reset();
        ASSERT_TRUE(exists());
        slow_down();
    }
    EXPECT_TRUE(eventually([&] { return !exists(); }, an_age));
}

TEST_F(PostedReleaseOverASlowLink, IsBeforeWhatTheSameClientAsksNext) {
    mutex lock{*subject, "stock", {.lease = lasting}};
    lock.lock();
    slow_down();
    lock.unlock();
    std::thread([&] {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    }).join();
    subject->ping();
    EXPECT_FALSE(exists());
}

/// The thread that drives the loop is inside the serial section when releases are posted: they are left to it. What the
/// caller ends last waits for it, so that a program which ends behind that has sent them.
class PostedReleaseLeftToTheLoop : public PostedRelease {
protected:
    ~PostedReleaseLeftToTheLoop() override { let_the_loop_go_on(); }

    void stop_the_loop() {
        api::core& where = *api::core_of(*subject);
        boost::asio::post(where.loop().context(), [this, &where] {
            where.enter_with([this] {
                inside.set_value();
                may_go_on.get_future().wait();
            });
        });
        inside.get_future().wait();
    }
    void let_the_loop_go_on() {
        if (!std::exchange(goes_on, true)) may_go_on.set_value();
    }
    void expect_to_wait(const std::function<void()>& the_last_end) {
        auto ending = std::async(std::launch::async, the_last_end);
        EXPECT_EQ(ending.wait_for(300ms), std::future_status::timeout) << "the release was not sent yet";
        EXPECT_TRUE(exists());
        let_the_loop_go_on();
        ending.get();
        EXPECT_FALSE(exists());
    }

    std::promise<void> inside;
    std::promise<void> may_go_on;
    bool goes_on = false;
    std::unique_ptr<client> subject = make_client(server.url(), "60s");
    std::unique_ptr<mutex> stock = std::make_unique<mutex>(*subject, "stock", mutex_options{.lease = lasting});
};

TEST_F(PostedReleaseLeftToTheLoop, OfALeaseIsDoneWhenTheClientIsGone) {
    lease held = stock->acquire();
    stop_the_loop();
    held = lease();
    stock.reset();
    expect_to_wait([&] { subject.reset(); });
}

TEST_F(PostedReleaseLeftToTheLoop, OfTheLastLeaseIsDoneWhenThatIsGone) {
    auto held = std::make_unique<lease>(stock->acquire());
    stop_the_loop();
    stock.reset();
    subject.reset();
    expect_to_wait([&] { held.reset(); });
}

TEST_F(PostedReleaseLeftToTheLoop, OfAnOwnersSecondLeaseIsDoneWhenThatIsGone) {
    const owner who;
    auto held = std::make_unique<lease>(stock->acquire({.owner = who}));
    lease again = stock->acquire({.owner = who});
    stop_the_loop();
    again = lease();
    stock.reset();
    subject.reset();
    expect_to_wait([&] { held.reset(); });
}

TEST_F(PostedReleaseLeftToTheLoop, OfAThreadIsDoneWhenTheClientIsGone) {
    stock->lock();
    stop_the_loop();
    stock->unlock();
    stock.reset();
    expect_to_wait([&] { subject.reset(); });
}

TEST_F(PostedReleaseLeftToTheLoop, OfALockThatIsDestroyedLockedIsDoneWhenTheClientIsGone) {
    stock->lock();
    stop_the_loop();
    stock.reset();
    expect_to_wait([&] { subject.reset(); });
}

// What that thread held is renewed no longer, and not released.
TEST_F(PostedReleaseLeftToTheLoop, IsDoneThoughAThreadHasEndedHolding) {
    auto kept = std::make_unique<mutex>(*subject, "kept", mutex_options{.lease = lasting});
    lease held = stock->acquire();
    std::promise<void> locked;
    std::promise<void> stopped;
    std::thread ends([&] {
        kept->lock();
        locked.set_value();
        stopped.get_future().wait();
    });
    locked.get_future().wait();
    stop_the_loop();
    stopped.set_value();
    ends.join();
    held = lease();
    kept.reset();
    stock.reset();
    expect_to_wait([&] { subject.reset(); });
}

// Nobody asks the client for anything any more: it notices by itself.
TEST_F(PostedRelease, IsRepeatedInTheBackgroundIfItsLinkBreaks) {
    const auto subject = make_client(link.url(), "20s");
    mutex lock{*subject, "stock", {.lease = lasting}};
    for (const bool by_a_thread : {true, false}) {
        lease held;
        by_a_thread ? lock.lock() : void(held = lock.acquire());
        link.stall(direction::to_server);
        by_a_thread ? lock.unlock() : void(held = lease());
        link.cut();
        ASSERT_TRUE(exists()) << "it was lost with the link";
        link.unstall(direction::to_server);
        EXPECT_TRUE(eventually([&] { return !exists(); }, an_age));
    }
}

/// An answer never comes.
class PostedReleaseWithoutAnAnswer : public PostedRelease {
protected:
    /// The lease ends, the client goes: by about the timeout, and not by the lease.
    void expect_to_be_gone_in_time(const std::function<void()>& silence) {
        auto subject = make_client(link.url(), "1s");
        ASSERT_TRUE(gets_connected(*subject));
        lease held = mutex{*subject, "stock", {.lease = lasting}}.acquire();
        lease another = mutex{*subject, "other", {.lease = lasting}}.acquire();
        silence();
        const auto needed = time_of([&] {
            held = lease();
            another = lease();
            subject.reset();  // the last of it
        });
        EXPECT_LT(needed, an_age);
    }
};

TEST_F(PostedReleaseWithoutAnAnswer, KeepsTheClientNoLongerThanTheTimeoutIfTheServerHangs) {
    expect_to_be_gone_in_time([&] { server.pause(); });
}

TEST_F(PostedReleaseWithoutAnAnswer, KeepsTheClientNoLongerThanTheTimeoutIfTheServerIsGone) {
    expect_to_be_gone_in_time([&] { server.kill(); });
}

TEST_F(PostedReleaseWithoutAnAnswer, KeepsTheClientNoLongerThanTheTimeoutIfItRanUnheard) {
    expect_to_be_gone_in_time([&] { link.stall(direction::to_client); });
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

}  // namespace
}  // namespace holdfast::testing::posted_release_test
