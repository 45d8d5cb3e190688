// A hold's life on a real server: renewed, lost, moved, outliving its client, and left behind by fork().
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <memory>
#include <thread>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "support/renewed.hpp"

namespace holdfast::testing::mutex_life_test {
namespace {

using namespace std::chrono_literals;

const std::string key = "hf:{stock}";

class MutexLife : public ::testing::Test {
protected:
    /// Short enough to wait for, long enough for a machine that stalls.
    static constexpr milliseconds brief = 5s;

    bool exists() { return server.call({"EXISTS", key}).integer == 1; }

    redis_server server;
    std::unique_ptr<client> subject = std::make_unique<client>(server.url() + "?timeout=2s");
};

bool is_lost(const lease& held) {
    return eventually([&] { return held.lost().stop_requested(); });
}

TEST_F(MutexLife, RenewalKeepsALeaseAliveBeyondItsLength) {
    mutex lock{*subject, "stock", {.lease = brief}};
    lease held = lock.acquire();
    const auto end = std::chrono::steady_clock::now() + brief + brief / 2;
    while (std::chrono::steady_clock::now() < end) {
        ASSERT_EQ(server.call({"GET", key}).text, held.id());
        ASSERT_FALSE(held.lost().stop_requested());
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_GT(held.validity(), 0ms);
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(exists());
}

TEST_F(MutexLife, RenewalAlsoWorksForThreadsThatHold) {
    mutex lock{*subject, "stock", {.lease = brief}};
    lock.lock();
    EXPECT_TRUE(is_renewed(server, key));
    lock.unlock();
}

TEST_F(MutexLife, AFixedLeaseEndsByItself) {
    mutex lock{*subject, "stock", {.lease = 100ms, .renew = false}};
    lease held = lock.acquire();
    EXPECT_TRUE(is_lost(held));
    EXPECT_LE(held.validity(), 0ms);
    EXPECT_TRUE(eventually([&] { return !exists(); }));
    EXPECT_EQ(held.release(), make_error_code(errc::lost));
}

// R44
TEST_F(MutexLife, TheHolderIsToldWhenItsKeyIsDeletedOrTaken) {
    mutex lock{*subject, "stock", {.lease = 300ms}};
    lease deleted = lock.acquire();
    server.call({"DEL", key});
    EXPECT_TRUE(is_lost(deleted));
    EXPECT_EQ(deleted.renew(), make_error_code(errc::lost));
    EXPECT_FALSE(exists()) << "a renewal never revives";
    EXPECT_EQ(deleted.release(), make_error_code(errc::lost));
    lease stolen = lock.acquire();
    server.call({"SET", key, "a thief", "PX", "60000"});
    EXPECT_TRUE(is_lost(stolen));
    EXPECT_EQ(stolen.release(), make_error_code(errc::lost));
    subject->ping();
    EXPECT_EQ(server.call({"GET", key}).text, "a thief");
}

// R44
TEST_F(MutexLife, TheHolderIsToldBeforeItsValidityEndsIfTheServerHangs) {
    mutex lock{*subject, "stock", {.lease = 600ms}};
    lease held = lock.acquire();
    server.pause();
    EXPECT_TRUE(is_lost(held));
    EXPECT_LE(held.validity(), 0ms);
    EXPECT_EQ(held.release(), make_error_code(errc::lost));
    server.resume();
    EXPECT_TRUE(eventually([&] {
        try {
            return static_cast<bool>(lock.try_acquire());
        } catch (const error&) {
            return false;
        }
    }));
}

TEST_F(MutexLife, AShortPauseOfTheServerLosesNothing) {
    mutex lock{*subject, "stock", {.lease = 20s}};
    lease held = lock.acquire();
    server.pause();
    EXPECT_EQ(held.renew(), make_error_code(errc::request_timed_out));
    server.resume();
    EXPECT_TRUE(eventually([&] { return !held.renew(); }));
    EXPECT_FALSE(held.lost().stop_requested());
    EXPECT_FALSE(held.release());
}

// User code runs on a thread of its own: it may block and call the library.
TEST_F(MutexLife, ACallbackOfLostMayCallTheLibrary) {
    mutex lock{*subject, "stock", {.lease = 300ms}};
    lease held = lock.acquire();
    std::atomic<bool> done = false;
    const std::stop_callback on_lost{held.lost(), [&] {
                                         subject->ping();
                                         mutex other{*subject, "other"};
                                         EXPECT_TRUE(other.acquire());
                                         done = true;
                                     }};
    server.call({"DEL", key});
    EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TEST_F(MutexLife, AClientMayGoBeforeItsLease) {
    auto lock = std::make_unique<mutex>(*subject, "stock", mutex_options{.lease = brief});
    lease held = lock->acquire();
    lock.reset();
    subject.reset();
    EXPECT_TRUE(is_renewed(server, key));
    EXPECT_EQ(server.call({"GET", key}).text, held.id());
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(exists());
}

TEST_F(MutexLife, ALeaseMayMoveBetweenThreads) {
    mutex lock{*subject, "stock"};
    lease held = lock.acquire();
    std::thread([&, moved = std::move(held)]() mutable {
        EXPECT_TRUE(moved);
        EXPECT_FALSE(moved.renew());
        EXPECT_FALSE(moved.release());
    }).join();
    EXPECT_FALSE(held);
    EXPECT_FALSE(exists());
}

TEST_F(MutexLife, AssigningReleasesWhatWasThere) {
    mutex lock{*subject, "stock"};
    mutex other{*subject, "other"};
    lease held = lock.acquire();
    held = other.acquire();
    subject->ping();  // behind the release, on the same link
    EXPECT_FALSE(exists());
    EXPECT_EQ(server.call({"EXISTS", "hf:{other}"}).integer, 1);
    held = lease();
    subject->ping();
    EXPECT_EQ(server.call({"EXISTS", "hf:{other}"}).integer, 0);
}

// What a forked child sees; the number of the first thing that was wrong, or 0.
int forked_child(client& inherited, mutex& lock, lease& held) {
    if (condition_of([&] { inherited.ping(); }) != errc::forked) return 1;
    if (condition_of([&] { lock.lock(); }) != errc::forked) return 2;
    if (condition_of([&] { lock.try_acquire(); }) != errc::forked) return 3;
    if (held.renew() != make_error_code(errc::forked)) return 4;
    if (held.release() != make_error_code(errc::forked)) return 5;
    return 0;
}

TEST_F(MutexLife, AForkedChildHoldsNothingAndItsParentGoesOn) {
    mutex lock{*subject, "stock", {.lease = brief}};
    lease held = lock.acquire();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(forked_child(*subject, lock, held));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    subject->ping();
    EXPECT_EQ(server.call({"GET", key}).text, held.id());
    EXPECT_TRUE(is_renewed(server, key)) << "the parent renews as before";
    EXPECT_EQ(server.call({"GET", key}).text, held.id());
    EXPECT_FALSE(held.release());
}

#ifndef __SANITIZE_THREAD__  // which does not support threads started after a fork
TEST_F(MutexLife, AForkedChildMayHaveAClientOfItsOwn) {
    mutex lock{*subject, "stock"};
    const lease held = lock.acquire();
    const pid_t child = ::fork();
    if (child == 0) {
        int result = 1;
        {
            client own{server.url()};
            mutex theirs{own, "stock"};
            mutex other{own, "other"};
            result = !theirs.try_acquire() && other.try_acquire() ? 0 : 1;
        }
        ::_exit(result);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(exists());
}
#endif

}  // namespace
}  // namespace holdfast::testing::mutex_life_test
