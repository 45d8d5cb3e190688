// Releases that nobody waits for: what a thread may have released already, and what the same client asks next.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "integration/mutex/posted_release_fixture.hpp"

namespace holdfast::testing::posted_release_test {
namespace {

/// What the log says of threads that end while they hold.
class PostedReleaseOfAThread : public PostedRelease {
protected:
    void thread_that_ends_holding() {
        std::thread([this] { kept.lock(); }).join();
    }
    /// Lines are heard in the order they were written in, and this many of them are about such threads.
    bool comes_to(int so_many) {
        return eventually([&] { return reported >= so_many; }, an_age);
    }
    bool is_free(const std::string& name) { return server.call({"EXISTS", "hf:{" + name + "}"}).integer == 0; }

    std::atomic<int> reported = 0;
    std::unique_ptr<client> subject = std::make_unique<client>(
        server.url(), client_options{.max_lease = 1h, .log = [this](log_level, const std::string& text) {
                                         if (text.find("a thread ended without unlocking") != std::string::npos)
                                             ++reported;
                                     }});
    mutex kept{*subject, "kept", {.lease = 1s}};  // outlives those threads: its end would release what they hold
};

TEST_F(PostedReleaseOfAThread, ThatUnlocksAndEndsAtOnceIsNotReported) {
    constexpr int crowd = 8;
    for (int round = 0; round < 25; ++round) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < crowd; ++i) {
            threads.emplace_back([&, i] {
                mutex own{*subject, "own " + std::to_string(i), {.lease = lasting}};
                shared_mutex all{*subject, "all", {.lease = lasting}};
                own.lock();
                own.lock();
                all.lock_shared();
                own.unlock();
                all.unlock_shared();
                own.unlock();
            });
        }
    }
    thread_that_ends_holding();
    ASSERT_TRUE(comes_to(1));
    EXPECT_EQ(reported, 1) << "only the one that did not unlock";
    EXPECT_TRUE(nothing_is_left()) << leftovers(server);
}

TEST_F(PostedReleaseOfAThread, OfWhatItHasNotLockedChangesNothing) {
    mutex stock{*subject, "stock", {.lease = lasting}};
    shared_mutex catalog{*subject, "catalog", {.lease = lasting}};
    stock.lock();
    catalog.lock_shared();
    std::thread([&] {
        mutex own{*subject, "own", {.lease = lasting}};
        stock.unlock();  // the other thread's
        catalog.unlock();
        catalog.unlock_shared();
        own.lock();
        stock.unlock();
        own.unlock();
        own.unlock();  // once too often
    }).join();
    catalog.unlock();  // it only reads
    subject->ping();   // behind whatever all those may have sent
    EXPECT_TRUE(exists());
    EXPECT_EQ(server.call({"HGET", "hf:{catalog}", "rcount"}).text, "1");
    EXPECT_TRUE(is_free("own"));
    boost::system::error_code ec;
    stock.unlock(ec);
    EXPECT_FALSE(ec);
    catalog.unlock_shared(ec);
    EXPECT_FALSE(ec);
    thread_that_ends_holding();
    ASSERT_TRUE(comes_to(1));
    EXPECT_EQ(reported, 1) << "nobody ended holding before";
}

TEST_F(PostedReleaseOfAThread, OfWhatItHasNotLockedDoesNotHideWhatItHolds) {
    mutex stock{*subject, "stock", {.lease = lasting}};
    std::thread([&] {
        mutex own{*subject, "own", {.lease = lasting}};
        kept.lock();
        own.lock();
        own.unlock();
        own.unlock();
        stock.unlock();
        stock.unlock();
        subject->ping();
        EXPECT_FALSE(is_free("kept"));
    }).join();
    EXPECT_TRUE(comes_to(1));
    EXPECT_TRUE(eventually([&] { return is_free("kept"); }, an_age)) << "renewed no longer";
}

// A guard that is made before its thread first uses a lock goes after the thread's bookkeeping has gone.
TEST_F(PostedRelease, OfAGuardThatOutlivesItsThreadsBookkeepingIsHarmless) {
    const auto subject = make_client(server.url(), "30s");
    mutex lock{*subject, "stock", {.lease = lasting}};
    std::thread([&] {
        thread_local std::unique_lock<mutex> guard;
        guard = std::unique_lock(lock);
        EXPECT_TRUE(guard.owns_lock());
    }).join();
    subject->ping();
    EXPECT_TRUE(exists()) << "what a thread holds when it ends is renewed no longer, and not released";
}

// The thread sanitizer does not support threads started after a fork.
#if defined(HOLDFAST_WITH_TLS) && !defined(__SANITIZE_THREAD__)
// Takes two locks, unlocks them and is gone, with all that could go on in the background.
void lock_and_vanish(const std::string& url) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        client subject{url, {.max_lease = 1h}};
        mutex first{subject, "first", {.lease = lasting}};
        mutex second{subject, "second", {.lease = lasting}};
        first.lock();
        second.lock();
        first.unlock();
        second.unlock();
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Over TLS the second write waits until the loop has seen the end of the first, and nobody need be driving it. Where
// the background thread has just come to do so it may be too late for one who vanishes: hence most of them.
TEST(PostedReleaseOverTls, TheSecondOfTwoIsSentAsWellBeforeItReturns) {
    redis_server server{{.tls = true}};
    const std::string url = server.tls_url() + "?ca_file=" + server.tls().ca.string();
    constexpr int tries = 10;
    int left = 0;
    for (int i = 0; i < tries; ++i) {
        ASSERT_NO_FATAL_FAILURE(lock_and_vanish(url));
        if (!eventually([&] { return server.call({"EXISTS", "hf:{second}"}).integer == 0; }, 2s)) ++left;
        server.call({"FLUSHALL"});
    }
    EXPECT_LT(left, tries / 2);
}
#endif

/// The server knows no script when a client comes.
class FirstPostedRelease : public PostedRelease {
protected:
    /// Often: that something comes late is a matter of luck.
    void for_fresh_clients(const std::function<void(client&)>& what) {
        for (int i = 0; i < 50 && !HasFailure(); ++i) {
            ASSERT_EQ(server.call({"SCRIPT", "FLUSH"}).text, "OK");
            client fresh{server.url(), {.max_lease = 1h}};
            what(fresh);
        }
    }
    static void elsewhere(const std::function<void()>& what) { std::thread(what).join(); }
};

TEST_F(FirstPostedRelease, OfAMutexIsBeforeWhatTheSameClientAsksNext) {
    for_fresh_clients([](client& fresh) {
        mutex lock{fresh, "stock", {.lease = lasting}};
        lock.lock();
        lock.unlock();
        elsewhere([&] {
            EXPECT_TRUE(lock.try_lock());
            lock.unlock();
        });
        EXPECT_TRUE(lock.try_acquire());
    });
}

TEST_F(FirstPostedRelease, OfALeaseIsBeforeWhatTheSameClientAsksNext) {
    for_fresh_clients([](client& fresh) {
        mutex lock{fresh, "stock", {.lease = lasting}};
        EXPECT_TRUE(lock.try_acquire());
        EXPECT_TRUE(lock.try_acquire());
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    });
}

TEST_F(FirstPostedRelease, OfAReadWriteLockIsBeforeWhatTheSameClientAsksNext) {
    for_fresh_clients([](client& fresh) {
        shared_mutex lock{fresh, "catalog", {.lease = lasting}};
        lock.lock_shared();
        lock.unlock_shared();
        elsewhere([&] {
            EXPECT_TRUE(lock.try_lock());
            lock.unlock();
        });
        EXPECT_TRUE(lock.try_acquire_shared());
        EXPECT_TRUE(lock.try_acquire());
    });
}

// Less than all of the hold is given back.
TEST_F(FirstPostedRelease, OfAWriterThatGoesOnReadingIsBeforeWhatTheSameClientAsksNext) {
    for_fresh_clients([](client& fresh) {
        shared_mutex lock{fresh, "catalog", {.lease = lasting}};
        lock.lock();
        lock.lock_shared();
        lock.unlock();
        elsewhere([&] {
            EXPECT_TRUE(lock.try_lock_shared());
            lock.unlock_shared();
        });
        lock.unlock_shared();
    });
}

TEST_F(FirstPostedRelease, OfAllStripesIsBeforeWhatTheSameClientAsksNext) {
    for_fresh_clients([](client& fresh) {
        striped_shared_mutex lock{fresh, "shelves", 4, {.lease = lasting}};
        lock.lock();
        lock.unlock();
        elsewhere([&] {
            EXPECT_TRUE(lock.try_lock());
            lock.unlock();
        });
        EXPECT_TRUE(lock.try_acquire());
        EXPECT_TRUE(lock.try_acquire_shared());
    });
}

}  // namespace
}  // namespace holdfast::testing::posted_release_test
