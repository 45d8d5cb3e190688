// The life of a hold on a read-write lock: its own lease, loss, a server that hangs, links that are cut, restarts.
// R25, R26, R27, R28, R44.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "integration/shared_mutex/shared_mutex_fixture.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing::shared_mutex_life_test {
namespace {

class SharedMutexLife : public shared_mutex_fixture {
protected:
    using shared_mutex_fixture::shared_mutex_fixture;

    /// When this hold ends by the server, if nobody renews it; 0 if it is not there.
    std::int64_t ends_at_ms(const lease& held) {
        const std::string score = server.call({"ZSCORE", key + ":leases", held.id()}).text;
        return score.empty() ? 0 : std::stoll(score);
    }
    bool reads(const lease& held) { return !field("r:" + held.id()).empty(); }

    tcp_proxy link{server.port()};
    client far{link.url() + "?timeout=2s"};
    shared_mutex distant{far, "catalog", {.lease = 20s}};
};

// R25
TEST_F(SharedMutexLife, RenewalIsForReadersAndForTheWriter) {
    shared_mutex fixed{subject, "catalog", {.lease = 20s, .renew = false}};
    for (const mode kind : {mode::shared, mode::exclusive}) {
        lease held = kind == mode::shared ? fixed.acquire_shared() : fixed.acquire();
        const auto before = ends_at_ms(held);
        ASSERT_GT(before, 0);
        ASSERT_TRUE(eventually([&] { return held.validity() < 19700ms; }));
        EXPECT_FALSE(held.renew());
        EXPECT_GT(ends_at_ms(held), before);
        EXPECT_FALSE(held.release());
        EXPECT_EQ(held.renew(), errc::not_held);
    }
}

// R25: only by one who holds
TEST_F(SharedMutexLife, RenewalNeverRevives) {
    for (const mode kind : {mode::shared, mode::exclusive}) {
        lease held = kind == mode::shared ? lock.acquire_shared() : lock.acquire();
        server.call({"DEL", key, key + ":leases", key + ":grants"});
        EXPECT_EQ(held.renew(), errc::lost);
        EXPECT_TRUE(free());
        EXPECT_TRUE(is_lost(held));
        EXPECT_EQ(held.release(), errc::lost);
    }
}

// R28
TEST_F(SharedMutexLife, AFixedLeaseOfAReaderEndsByItselfWhileOthersRenewTheirs) {
    shared_mutex fixed{subject, "catalog", {.lease = 300ms, .renew = false}};
    shared_mutex renewed{other, "catalog", {.lease = 6s}};
    lease ends = fixed.acquire_shared();
    lease stays = renewed.acquire_shared();
    EXPECT_TRUE(is_lost(ends));
    EXPECT_TRUE(eventually([&] { return !reads(ends); })) << "a renewal of the other one clears it away";
    const auto later = ends_at_ms(stays) + 300;
    EXPECT_TRUE(eventually([&] { return ends_at_ms(stays) > later; }));
    EXPECT_FALSE(stays.lost().stop_requested());
    EXPECT_EQ(readers(), 1);
    EXPECT_EQ(ends.release(), errc::lost);
    EXPECT_FALSE(stays.release());
}

// R28
TEST_F(SharedMutexLife, AShorterLeaseNeverCutsALongerOne) {
    const lease longer = lock.acquire_shared({.lease = 20s});
    const auto before = ends_at_ms(longer);
    lease shorter = theirs.acquire_shared({.lease = 5s});
    EXPECT_EQ(ends_at_ms(longer), before);
    EXPECT_LT(ends_at_ms(shorter), before);
    EXPECT_GT(server.call({"PTTL", key}).integer, 10'000);
    EXPECT_FALSE(shorter.renew());
    EXPECT_GT(server.call({"PTTL", key}).integer, 10'000);
    shorter.release();
    EXPECT_GT(server.call({"PTTL", key}).integer, 10'000) << "the key lives as long as the longest lease";
    EXPECT_EQ(readers(), 1);
}

// R28, R46
TEST_F(SharedMutexLife, AWriterComesInWhenTheLastReadersLeaseEnds) {
    shared_mutex fixed{subject, "catalog", {.lease = 400ms, .renew = false}};
    lease one = fixed.acquire_shared();
    lease two = fixed.acquire_shared();
    const lease writing = theirs.acquire();
    EXPECT_TRUE(is_lost(one));
    EXPECT_TRUE(is_lost(two));
    EXPECT_EQ(field("rcount"), "");
    EXPECT_EQ(one.release(), errc::lost);
    EXPECT_EQ(field("writer"), writing.id()) << "who lost its hold does not end another's";
}

TEST_F(SharedMutexLife, LeasesOutliveTheLockAndTheClient) {
    auto brief = std::make_unique<client>(server.url());
    auto made = std::make_unique<shared_mutex>(*brief, "catalog", shared_mutex_options{.lease = 6s});
    lease reading = made->acquire_shared();
    made.reset();
    brief.reset();
    const auto later = ends_at_ms(reading) + 400;
    EXPECT_TRUE(eventually([&] { return ends_at_ms(reading) > later; })) << "still renewed";
    lease writing = reading.upgrade();
    EXPECT_EQ(field("mode"), "write");
    lease again = writing.downgrade();
    EXPECT_EQ(field("mode"), "read");
    EXPECT_FALSE(again.release());
    EXPECT_FALSE(reading.release());
    EXPECT_TRUE(free());
}

TEST_F(SharedMutexLife, AThreadThatEndsReadingIsRenewedNoLonger) {
    shared_mutex brief{subject, "catalog", {.lease = 300ms}};
    std::thread([&] { brief.lock_shared(); }).join();
    EXPECT_TRUE(theirs.try_lock_for(an_age));
    theirs.unlock();
}

// What a forked child sees; the number of the first thing that was wrong, or 0.
int forked_child(shared_mutex& lock, lease& reading, lease& writing) {
    if (condition_of([&] { lock.lock_shared(); }) != errc::forked) return 1;
    if (condition_of([&] { reading.upgrade(); }) != errc::forked) return 2;
    if (condition_of([&] { writing.downgrade(); }) != errc::forked) return 3;
    boost::system::error_code code;
    lock.unlock_shared(code);
    if (code != errc::forked) return 4;
    if (reading.release() != errc::forked) return 5;
    return 0;
}

TEST_F(SharedMutexLife, AForkedChildHoldsNothing) {
    const owner job;
    lease writing = lock.acquire({.owner = job});
    lease reading = lock.acquire_shared({.owner = job});
    const pid_t child = ::fork();
    if (child == 0) ::_exit(forked_child(lock, reading, writing));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_FALSE(writing.release());
    EXPECT_FALSE(reading.release());
}

// R44
TEST_F(SharedMutexLife, ReadersAreToldBeforeTheirValidityEndsIfTheServerHangs) {
    shared_mutex brief{subject, "catalog", {.lease = 2s}};
    lease reading = brief.acquire_shared();
    lease writing = reading.upgrade();
    server.pause();
    EXPECT_TRUE(is_lost(reading));
    EXPECT_TRUE(is_lost(writing));
    EXPECT_LE(writing.validity(), 0ms);
    server.resume();
}

// R27
TEST_F(SharedMutexLife, ADowngradeDoesNotWaitForAServerThatHangs) {
    client hasty{server.url() + "?timeout=300ms"};
    ASSERT_TRUE(gets_connected(hasty));
    shared_mutex mine{hasty, "catalog", {.lease = 60s}};
    lease writing = mine.acquire();
    server.pause();
    const auto before = std::chrono::steady_clock::now();
    lease reading = writing.downgrade();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 300ms + 5s);
    EXPECT_FALSE(writing);
    EXPECT_EQ(reading.mode(), mode::shared);
    EXPECT_GT(reading.validity(), 0ms);
    server.resume();
    EXPECT_TRUE(eventually([&] { return field("mode") == "read"; })) << "the server learns of it later";
    EXPECT_FALSE(reading.lost().stop_requested());
    EXPECT_TRUE(eventually([&] { return static_cast<bool>(theirs.try_acquire_shared()); }));
}

TEST_F(SharedMutexLife, AnUpgradeThatWaitsSurvivesACutLink) {
    lease reading = distant.acquire_shared();
    lease in_the_way = theirs.acquire_shared();
    auto writing = in_background([&] { return reading.upgrade(); });
    ASSERT_TRUE(queue_has(1));
    const int links = link.accepted();
    link.cut();
    ASSERT_TRUE(eventually([&] { return link.accepted() > links; }));
    EXPECT_FALSE(is_ready(writing));
    in_the_way.release();
    const lease got = result_of(writing);
    EXPECT_EQ(field("writer"), reading.id());
}

// R10: passed over while its link is down, and served when it is back
TEST_F(SharedMutexLife, AnUpgradeWhoseTurnComesWhileItsLinkIsDownIsServedLater) {
    lease reading = distant.acquire_shared();
    lease in_the_way = theirs.acquire_shared();
    auto writing = in_background([&] { return reading.upgrade(); });
    ASSERT_TRUE(queue_has(1));
    link.refuse();
    link.cut();
    in_the_way.release();
    EXPECT_FALSE(is_ready(writing));
    link.accept();
    const lease got = result_of(writing);
    EXPECT_EQ(field("writer"), reading.id());
}

// R05: repeatable after a lost reply
TEST_F(SharedMutexLife, AnUpgradeWhoseAnswerIsLostIsAskedForAgain) {
    lease reading = distant.acquire_shared();
    link.stall(direction::to_client);
    auto upgrading = in_background([&] { return reading.upgrade(); });
    ASSERT_TRUE(eventually([&] { return field("mode") == "write"; }));
    const std::string granted = server.call({"HGET", key + ":grants", reading.id()}).text;
    link.cut();
    link.unstall(direction::to_client);
    const lease writing = result_of(upgrading);
    EXPECT_EQ("b " + std::to_string(writing.token()), granted) << "the same grant";
    EXPECT_EQ(field("rcount"), "1");
    EXPECT_EQ(field("wcount"), "1");
}

TEST_F(SharedMutexLife, ADowngradeIsRepeatedWhateverOfItWasLost) {
    for (const direction lost : {direction::to_server, direction::to_client}) {
        lease writing = distant.acquire();
        link.stall(lost);
        auto downgrading = in_background([&] { return writing.downgrade(); });
        if (lost == direction::to_client) {
            ASSERT_TRUE(eventually([&] { return field("mode") == "read"; }));
        }
        link.cut();
        link.unstall(lost);
        lease reading = result_of(downgrading);
        EXPECT_EQ(reading.mode(), mode::shared);
        EXPECT_TRUE(eventually([&] { return field("mode") == "read"; }));
        EXPECT_EQ(readers(), 1);
        EXPECT_FALSE(theirs.try_acquire_shared().release());
        EXPECT_FALSE(reading.release());
        EXPECT_TRUE(free());
    }
}

TEST_F(SharedMutexLife, AStoppedUpgradeWhoseLinkIsDownIsTakenBackWhenItIsUp) {
    lease reading = distant.acquire_shared();
    const lease in_the_way = theirs.acquire_shared();
    std::stop_source stop;
    auto upgrading = in_background([&] { return condition_of([&] { reading.upgrade({.stop = stop.get_token()}); }); });
    ASSERT_TRUE(queue_has(1));
    link.refuse();
    link.cut();
    stop.request_stop();
    EXPECT_EQ(result_of(upgrading), errc::cancelled) << "whoever gives up does not wait for the link";
    link.accept();
    EXPECT_TRUE(queue_has(0));
    EXPECT_TRUE(reads(reading));
    EXPECT_FALSE(reading.release());
}

class SharedMutexRestart : public SharedMutexLife {
protected:
    SharedMutexRestart() : SharedMutexLife(server_options{.persistent = true}) {}
};

TEST_F(SharedMutexRestart, WithItsDataTheServerGoesOnWithReadersWriterAndUpgrader) {
    shared_mutex prices{other, "prices"};
    lease pricing = prices.acquire();
    lease reading = lock.acquire_shared();
    lease in_the_way = theirs.acquire_shared();
    auto upgrading = in_background([&] { return reading.upgrade(); });
    ASSERT_TRUE(queue_has(1));
    server.kill();
    server.restart(redis_server::data::keep);
    for (lease* const each : {&pricing, &in_the_way}) {
        EXPECT_TRUE(eventually([&] { return !each->renew(); }, an_age));
        EXPECT_FALSE(each->lost().stop_requested());
    }
    EXPECT_FALSE(is_ready(upgrading));
    EXPECT_FALSE(in_the_way.release());
    EXPECT_TRUE(result_of(upgrading));
    EXPECT_FALSE(pricing.release());
}

TEST_F(SharedMutexRestart, WithoutItsDataEverybodyIsToldOfTheLoss) {
    const shared_mutex_options brief{.lease = 3s};
    shared_mutex catalog{subject, "catalog", brief};
    shared_mutex catalog_too{other, "catalog", brief};
    shared_mutex prices{other, "prices", brief};
    lease pricing = prices.acquire();
    lease reading = catalog.acquire_shared();
    lease in_the_way = catalog_too.acquire_shared();
    const auto last_token = in_the_way.token();
    auto upgrading = in_background([&] { return condition_of([&] { reading.upgrade(); }); });
    ASSERT_TRUE(queue_has(1));
    server.kill();
    server.restart(redis_server::data::lose);
    EXPECT_EQ(result_of(upgrading), errc::lost);
    for (lease* const each : {&pricing, &reading, &in_the_way}) {
        EXPECT_TRUE(is_lost(*each));
        EXPECT_EQ(each->release(), errc::lost);
    }
    lease writing = catalog.try_acquire_for(an_age);
    ASSERT_TRUE(writing);
    EXPECT_GT(writing.token(), last_token);
}

}  // namespace
}  // namespace holdfast::testing::shared_mutex_life_test
