// The exclusive lock on a real server: what is on the wire, who may do what, and how it nests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <mutex>
#include <set>
#include <thread>

#include "api/operations/blocking.hpp"
#include "api/runtime/client_access.hpp"
#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_server.hpp"
#include "wire/hold_id.hpp"
#include "wire/keys.hpp"

namespace holdfast::testing::mutex_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string key = "hf:{stock}";

class Mutex : public ::testing::Test {
protected:
    std::string value() { return server.call({"GET", key}).text; }
    std::int64_t left_ms() { return server.call({"PTTL", key}).integer; }
    std::int64_t script_calls() { return server.command_calls("evalsha") + server.command_calls("eval"); }

    redis_server server;
    client subject{server.url(), {.max_lease = 1h}};
    client other{server.url()};
};

// R01
TEST_F(Mutex, AcquireSetsAnUnguessableIdWithALease) {
    mutex lock{subject, "stock", {.lease = 20s}};
    std::set<std::string> seen;
    std::string client_part;
    for (int i = 0; i < 20; ++i) {
        const lease held = lock.acquire();
        EXPECT_EQ(value(), held.id());
        EXPECT_TRUE(wire::is_ours(held.id()));
        EXPECT_GT(left_ms(), 0);
        EXPECT_LE(left_ms(), 20000);
        EXPECT_GT(held.validity(), 0ms);
        EXPECT_LT(held.validity(), 20s);
        EXPECT_TRUE(seen.insert(held.id()).second) << "new for every outermost acquisition";
    }
    subject.ping();  // behind the last release, on the same link
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 0);
}

TEST_F(Mutex, TokensGrowWithEveryGrant) {
    mutex lock{subject, "stock"};
    mutex theirs{other, "stock"};
    std::uint64_t last = 0;
    for (int i = 0; i < 10; ++i) {
        const lease held = (i % 2 == 0 ? lock : theirs).acquire();
        EXPECT_GT(held.token(), last);
        last = held.token();
    }
}

// R02: with a fixed lease, acquiring again makes it full again; it never shortens.
TEST_F(Mutex, AcquiringAgainRefreshesAFixedLease) {
    mutex lock{subject, "stock", {.lease = 60s, .renew = false}};
    lock.lock();
    server.call({"PEXPIRE", key, "5000"});
    lock.lock();
    EXPECT_TRUE(eventually([&] { return left_ms() > 5000; }));
    server.call({"PEXPIRE", key, "900000"});
    lock.lock();
    subject.ping();  // behind the refresh, on the same link
    EXPECT_GT(left_ms(), 100000);
    for (int i = 0; i < 3; ++i) lock.unlock();
    subject.ping();
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 0);
}

TEST_F(Mutex, RenewingNeverShortens) {
    mutex lock{subject, "stock", {.lease = 10s, .renew = false}};
    lease held = lock.acquire();
    server.call({"PEXPIRE", key, "900000"});
    EXPECT_FALSE(held.renew());
    EXPECT_GT(left_ms(), 100000);
}

// R03
TEST_F(Mutex, ABusyLockIsRefusedAtOnceAndSaysWhoHasItAndForHowLong) {
    mutex theirs{other, "stock", {.lease = 50s}};
    const lease held = theirs.acquire();
    mutex lock{subject, "stock"};
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_lock());
    EXPECT_EQ(server.call({"EXISTS", key + ":queue"}).integer, 0) << "nobody waits in the queue";

    const auto keys = std::make_shared<const wire::lock_keys>(
        wire::make_keys(wire::lock_name("stock"), wire::key_naming::tagged, "hf:"));
    api::blocking_acquire request(api::core_of(subject),
                                  {.keys = keys, .limit = {engine::waiting::not_at_all, boot_now() + 10s}},
                                  api::acquire_operation::face::not_wanted);
    request.wait({});
    ASSERT_FALSE(request.acquired());
    EXPECT_EQ(request.why().code, errc::busy);
    EXPECT_EQ(request.why().holder, held.id());
    ASSERT_TRUE(request.why().holder_left);
    EXPECT_GT(*request.why().holder_left, 0ms);
    EXPECT_LE(*request.why().holder_left, 50s);
}

// R04
TEST_F(Mutex, ReleaseOfALockThatIsGoneOrAnothersChangesNothing) {
    mutex lock{subject, "stock"};
    lease gone = lock.acquire();
    server.call({"DEL", key});
    EXPECT_EQ(gone.release(), make_error_code(errc::not_held));
    lease stolen = lock.acquire();
    server.call({"SET", key, "a thief", "PX", "60000"});
    EXPECT_EQ(stolen.release(), make_error_code(errc::held_by_other));
    EXPECT_EQ(value(), "a thief");
    EXPECT_GT(left_ms(), 0);
}

TEST_F(Mutex, UnlockByAThreadThatDoesNotHoldIsToldAndChangesNothing) {
    mutex lock{subject, "stock"};
    boost::system::error_code ec;
    lock.unlock(ec);
    EXPECT_EQ(ec, make_error_code(errc::not_held));
    lock.lock();
    std::thread([&] {
        boost::system::error_code theirs;
        lock.unlock(theirs);
        EXPECT_EQ(theirs, make_error_code(errc::not_held));
    }).join();
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 1);
    lock.unlock(ec);
    EXPECT_FALSE(ec);
}

// R05
TEST_F(Mutex, ReleasingTwiceIsHarmless) {
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    EXPECT_FALSE(held.release());
    EXPECT_FALSE(held) << "empty now";
    const lease next = lock.acquire();
    EXPECT_EQ(held.release(), make_error_code(errc::not_held));
    EXPECT_EQ(value(), next.id());
}

// R06: T1 A acquires, T2 A's lease ends, T3 B acquires, T4 A releases (and renews), T5 B still holds.
TEST_F(Mutex, AnExpiredHolderCanNeitherReleaseNorRenewTheNextOnesLock) {
    mutex lock{subject, "stock", {.lease = 50ms, .renew = false}};
    mutex theirs{other, "stock", {.lease = 50s}};
    lease expired = lock.acquire();
    ASSERT_TRUE(eventually([&] { return server.call({"EXISTS", key}).integer == 0; }));
    const lease held = theirs.acquire();
    EXPECT_GT(held.token(), expired.token());
    EXPECT_EQ(expired.renew(), make_error_code(errc::lost));
    EXPECT_EQ(value(), held.id());
    EXPECT_EQ(expired.release(), make_error_code(errc::lost));
    subject.ping();  // behind whatever the release sent
    EXPECT_EQ(value(), held.id());
    EXPECT_GT(left_ms(), 10000);
}

// R06 again, for a holder that does not know yet that it has expired.
TEST_F(Mutex, AHolderThatLostItUnawaresCannotHarmTheNextOne) {
    mutex lock{subject, "stock", {.lease = 10min, .renew = false}};
    mutex theirs{other, "stock"};
    lease first = lock.acquire();
    lease second = lock.try_acquire();
    ASSERT_FALSE(second);
    server.call({"DEL", key});
    const lease held = theirs.acquire();
    EXPECT_EQ(first.renew(), make_error_code(errc::lost));
    EXPECT_EQ(first.release(), make_error_code(errc::lost));
    subject.ping();
    EXPECT_EQ(value(), held.id());
}

// R08
TEST_F(Mutex, NAcquiresNeedNReleasesAndInnerOnesCostNoCommand) {
    mutex lock{subject, "stock"};
    lock.lock();
    lock.unlock();  // now the server knows the scripts
    lock.lock();
    const std::string id = value();
    server.reset_stats();
    for (int i = 0; i < 9; ++i) {
        lock.lock();
        EXPECT_TRUE(lock.try_lock());
        EXPECT_TRUE(lock.try_lock_for(1s));
    }
    for (int i = 0; i < 27; ++i) {
        boost::system::error_code ec;
        lock.unlock(ec);
        EXPECT_FALSE(ec);
    }
    EXPECT_EQ(script_calls(), 0);
    EXPECT_EQ(value(), id);
    lock.unlock();
    subject.ping();  // behind it
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 0);
    EXPECT_EQ(script_calls(), 1);
}

// R08
TEST_F(Mutex, TwoThreadsAreTwoOwnersEvenOnOneObject) {
    mutex lock{subject, "stock"};
    lock.lock();
    std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
    lock.unlock();
    std::thread([&] {
        EXPECT_TRUE(lock.try_lock());
        lock.unlock();
    }).join();
}

TEST_F(Mutex, TwoObjectsOfOneNameAreOneLockToTheirThread) {
    mutex one{subject, "stock"};
    mutex two{subject, "stock"};
    one.lock();
    EXPECT_TRUE(two.try_lock());
    two.unlock();
    subject.ping();  // behind whatever it may have sent
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 1);
    one.unlock();
    subject.ping();
    EXPECT_EQ(server.call({"EXISTS", key}).integer, 0);
}

TEST_F(Mutex, EveryLeaseIsAnOwnerOfItsOwn) {
    mutex lock{subject, "stock"};
    const lease held = lock.acquire();
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_lock());
}

// R08, and design: re-entering after a loss is an error until the count is back to zero.
TEST_F(Mutex, ReenteringALostLockIsRefusedUntilItIsGivenBack) {
    mutex lock{subject, "stock", {.lease = 2s}};
    lock.lock();
    lock.lock();
    server.call({"SET", key, "a thief", "PX", "600000"});
    EXPECT_TRUE(eventually([&] {
        try {
            if (lock.try_lock()) lock.unlock();
            return false;
        } catch (const error& refused) {
            EXPECT_EQ(refused.condition(), errc::lost);
            EXPECT_THAT(refused.what(), HasSubstr("stock"));
            EXPECT_THAT(refused.what(), HasSubstr(at_port(server.port())));
            return true;
        }
    }));
    for (int i = 0; i < 2; ++i) {
        boost::system::error_code ec;
        lock.unlock(ec);
        EXPECT_EQ(ec, make_error_code(errc::lost));
    }
    EXPECT_FALSE(lock.try_lock()) << "free to ask again; the thief has it";
    EXPECT_EQ(value(), "a thief");
}

// R09
TEST_F(Mutex, WaitingEndsAtItsDeadline) {
    mutex theirs{other, "stock"};
    const lease held = theirs.acquire();
    mutex lock{subject, "stock"};
    subject.ping();
    const auto before = std::chrono::steady_clock::now();
    EXPECT_FALSE(lock.try_acquire_for(200ms));
    EXPECT_FALSE(lock.try_lock_for(200ms));
    EXPECT_FALSE(lock.try_lock_until(std::chrono::system_clock::now() + 100ms));
    EXPECT_FALSE(lock.try_acquire_until(std::chrono::steady_clock::now() - 1h)) << "long past: does not wait";
    const auto waited = std::chrono::steady_clock::now() - before;
    EXPECT_GE(waited, 480ms);
    EXPECT_LT(waited, an_age);
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", key + ":queue"}).integer == 0; })) << "left the queue";
}

// R09
TEST_F(Mutex, WaitingEndsWhenTheStopTokenSaysSo) {
    mutex theirs{other, "stock"};
    const lease held = theirs.acquire();
    mutex lock{subject, "stock"};
    std::stop_source stop;
    std::thread stopper([&] {
        EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", key + ":queue"}).integer == 1; }));
        stop.request_stop();
    });
    expect_refusal(errc::cancelled, at_port(server.port()), [&] { lock.acquire({.stop = stop.get_token()}); });
    stopper.join();
    expect_refusal(errc::cancelled, at_port(server.port()), [&] { lock.acquire({.stop = stop.get_token()}); });
    EXPECT_TRUE(eventually([&] { return server.call({"EXISTS", key + ":queue"}).integer == 0; }));
}

TEST_F(Mutex, TheLongestWaitThereIsIsNotInThePast) {
    mutex theirs{other, "stock"};
    lease held = theirs.acquire();
    mutex lock{subject, "stock"};
    std::atomic<int> got = 0;
    std::vector<std::thread> waiting;
    waiting.emplace_back([&] { got += lock.try_acquire_for(std::chrono::milliseconds::max()) ? 1 : 0; });
    waiting.emplace_back([&] { got += lock.try_acquire_for(std::chrono::hours::max()) ? 1 : 0; });
    waiting.emplace_back([&] { got += lock.try_acquire_until(std::chrono::steady_clock::time_point::max()) ? 1 : 0; });
    EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", key + ":queue"}).integer == 3; }));
    held.release();
    for (std::thread& each : waiting) each.join();
    EXPECT_EQ(got, 3);
}

TEST_F(Mutex, WorksWithTheGuardsOfTheStandardLibrary) {
    mutex a{subject, "stock"};
    mutex b{other, "other"};
    {
        const std::lock_guard guard{a};
        EXPECT_EQ(server.call({"EXISTS", key}).integer, 1);
    }
    {
        std::unique_lock guard{a, std::defer_lock};
        EXPECT_TRUE(guard.try_lock_for(5s));
        guard.unlock();
        EXPECT_TRUE(guard.try_lock());
    }
    {
        const std::scoped_lock guard{a, b};
        EXPECT_EQ(server.call({"EXISTS", key, "hf:{other}"}).integer, 2);
    }
    {
        const std::unique_lock guard{a, 5s};
        EXPECT_TRUE(guard.owns_lock());
    }
    for (client* const each : {&subject, &other}) each->ping();  // behind what the guards have sent
    EXPECT_EQ(server.call({"EXISTS", key, "hf:{other}"}).integer, 0);
}

TEST_F(Mutex, BadNamesAndLeasesAreRefusedWithoutAsking) {
    EXPECT_THROW(mutex(subject, ""), error);
    EXPECT_THROW(mutex(subject, "stock", {.lease = 9ms}), error);
    EXPECT_THROW(mutex(subject, "stock", {.lease = 25h}), error);
    mutex lock{subject, "stock"};
    EXPECT_THROW(lock.acquire({.lease = -1ms}), error);
}

}  // namespace
}  // namespace holdfast::testing::mutex_test
