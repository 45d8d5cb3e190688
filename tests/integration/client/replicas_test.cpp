// Locks that count only what replicas have, on a primary with replicas that can be stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/leftovers.hpp"
#include "support/replica_set.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::replicas_test {
namespace {

using namespace std::chrono_literals;

/// A replica that runs acknowledges within this on the slowest machine; one that is stopped never does.
constexpr milliseconds patient{3000};
constexpr milliseconds hurried{50};
const std::string with_time_for_it = "?timeout=6s";

mutex_options acknowledged_by(unsigned replicas, milliseconds within) {
    return {.replicas = replicas, .replica_timeout = within};
}

bool exists(redis_server& server, const std::string& key) {
    return server.call({"EXISTS", key}).integer == 1;
}

class Replicas : public ::testing::Test {
protected:
    ~Replicas() override { set.resume_replicas(); }

    bool lock_is_free() {
        return eventually([&] { return !exists(set.primary, "hf:{stock}"); }, an_age);
    }
    bool somebody_waits() {
        return eventually([&] { return set.primary.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }, an_age);
    }

    replica_set set{2};
    client subject{set.primary.url() + with_time_for_it};
};

TEST_F(Replicas, AGrantIsOnAllOfThemWhenItIsTold) {
    mutex lock{subject, "stock", acknowledged_by(2, patient)};
    lease held = lock.acquire();
    for (redis_server& each : set.replicas) EXPECT_EQ(each.call({"GET", "hf:{stock}"}).text, held.id());
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    EXPECT_EQ(leftovers(set.primary), "");
}

TEST_F(Replicas, AGrantThatTooFewHaveIsUndoneAndReported) {
    mutex lock{subject, "stock", acknowledged_by(2, hurried)};
    set.replicas[1].pause();
    EXPECT_EQ(condition_of([&] { lock.acquire(); }), errc::not_replicated);
    // In the background: a server that does not know the script yet may serve the next request before it.
    EXPECT_TRUE(lock_is_free());
    EXPECT_EQ(condition_of([&] { lock.try_acquire(); }), errc::not_replicated);
    EXPECT_TRUE(lock_is_free());
    mutex content_with_one{subject, "stock", acknowledged_by(1, patient)};
    EXPECT_TRUE(content_with_one.acquire());
    set.resume_replicas();
    ASSERT_TRUE(set.has_caught_up());
    mutex again{subject, "stock", acknowledged_by(2, patient)};
    EXPECT_TRUE(again.acquire());
}

TEST_F(Replicas, AGrantThatIsHandedOverCountsOnlyWhenItIsAcknowledged) {
    mutex theirs{subject, "stock"};
    lease before = theirs.acquire();
    client other{set.primary.url() + with_time_for_it};
    mutex lock{other, "stock", acknowledged_by(1, hurried)};
    auto waiting = std::async(std::launch::async, [&] { return condition_of([&] { lock.acquire(); }); });
    ASSERT_TRUE(somebody_waits());
    set.pause_replicas();
    EXPECT_FALSE(before.release());
    EXPECT_EQ(waiting.get(), errc::not_replicated);
    EXPECT_TRUE(lock_is_free());

    set.resume_replicas();
    ASSERT_TRUE(set.has_caught_up());
    mutex patiently{other, "stock", acknowledged_by(2, patient)};
    before = theirs.acquire();
    auto served = std::async(std::launch::async, [&] {
        const lease held = patiently.acquire();
        return set.replicas[0].call({"GET", "hf:{stock}"}).text == held.id();
    });
    ASSERT_TRUE(somebody_waits());
    EXPECT_FALSE(before.release());
    EXPECT_TRUE(served.get());
}

TEST_F(Replicas, ARenewalThatTooFewHaveIsNotCounted) {
    mutex_options terms = acknowledged_by(1, hurried);
    terms.lease = 6s;
    mutex lock{subject, "stock", terms};
    // The replicas of a busy machine may take longer than that: only the loss below is the point.
    lease held;
    ASSERT_TRUE(eventually([&] { return condition_of([&] { held = lock.acquire(); }) == errc{}; }, an_age));
    set.pause_replicas();
    EXPECT_EQ(held.renew(), make_error_code(errc::not_replicated));
    EXPECT_TRUE(eventually([&] { return held.lost().stop_requested(); }, an_age));
    EXPECT_TRUE(exists(set.primary, "hf:{stock}")) << "the primary renewed it all the time";
}

TEST_F(Replicas, AReadWriteLockIsAcknowledgedInAllItsModes) {
    shared_mutex catalog{subject, "catalog", {.replicas = 2, .replica_timeout = patient}};
    lease reading = catalog.acquire_shared();
    lease writing = reading.upgrade();
    for (redis_server& each : set.replicas) {
        EXPECT_EQ(each.call({"HGET", "hf:{catalog}", "writer"}).text, writing.id());
    }
    lease again = writing.downgrade();
    set.pause_replicas();
    shared_mutex quickly{subject, "catalog", {.replicas = 2, .replica_timeout = hurried}};
    EXPECT_EQ(condition_of([&] { quickly.acquire_shared(); }), errc::not_replicated);
}

// The first WAIT lasts as long as the replicas are stopped. One more is for all who were granted meanwhile, however
// many.
TEST_F(Replicas, OneWaitIsForAllWhoAskTogether) {
    constexpr std::size_t many = 100;
    // As patient as there is, and so long that nothing is renewed before the end.
    const mutex_options terms{.lease = 60s, .replicas = 2, .replica_timeout = 4000ms};
    client busy{set.primary.url() + "?timeout=60s"};
    mutex first{busy, "first", terms};
    EXPECT_TRUE(first.acquire());  // the script is there, and the link for acknowledgements
    set.primary.reset_stats();
    set.pause_replicas();
    std::vector<std::unique_ptr<mutex>> locks;
    std::vector<std::future<lease>> wanted;
    for (std::size_t i = 0; i < many; ++i) {
        locks.push_back(std::make_unique<mutex>(busy, "shelf " + std::to_string(i), terms));
        wanted.push_back(locks.back()->async_acquire(boost::asio::use_future));
    }
    // It is answered on the same link, behind all of them.
    mutex last{busy, "last"};
    EXPECT_TRUE(last.acquire());
    set.resume_replicas();
    for (std::future<lease>& each : wanted) EXPECT_TRUE(each.get());
    EXPECT_GE(set.primary.command_calls("wait"), 1);
    EXPECT_LE(set.primary.command_calls("wait"), 2);
}

TEST_F(Replicas, ALinkThatIsLostIsMadeAnew) {
    mutex lock{subject, "stock", acknowledged_by(1, patient)};
    EXPECT_TRUE(lock.acquire());
    for (int i = 0; i < 3; ++i) {
        subject.ping();  // behind the release, on the same link
        set.primary.call({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        EXPECT_TRUE(lock.acquire());
    }
}

TEST_F(Replicas, AServerThatIsFullIsAskedForThemAllTheSame) {
    mutex lock{subject, "stock", acknowledged_by(2, patient)};
    lease held = lock.acquire();
    set.primary.call({"CONFIG", "SET", "maxmemory", "1"});
    ASSERT_TRUE(set.primary.call({"SET", "more", "x"}).is_error());
    EXPECT_FALSE(held.renew());
    set.primary.call({"CONFIG", "SET", "maxmemory", "0"});
    EXPECT_FALSE(held.release());
}

// The link for acknowledgements need not have broken, and the process is the same.
TEST_F(Replicas, AServerThatWasAReplicaMeanwhileIsAskedAgain) {
    mutex lock{subject, "stock", acknowledged_by(2, patient)};
    EXPECT_FALSE(lock.acquire().release());  // nothing is in flight any more
    redis_server& other = set.replicas[0];
    other.call({"REPLICAOF", "NO", "ONE"});
    set.primary.call({"REPLICAOF", "127.0.0.1", std::to_string(other.port())});
    set.primary.call({"REPLICAOF", "NO", "ONE"});
    other.call({"REPLICAOF", "127.0.0.1", std::to_string(set.primary.port())});
    ASSERT_TRUE(set.has_caught_up());
    EXPECT_TRUE(lock.acquire());
}

// Whose replicas are slow holds up nobody who wants something else.
TEST_F(Replicas, EachWishHasALinkOfItsOwn) {
    const auto links = [&] {
        const std::string all = set.primary.call({"CLIENT", "LIST", "TYPE", "normal"}).text;
        return std::count(all.begin(), all.end(), '\n');
    };
    EXPECT_TRUE((mutex{subject, "stock", acknowledged_by(2, patient)}.acquire()));
    const auto with_one_wish = links();
    EXPECT_TRUE((mutex{subject, "shelf", acknowledged_by(2, patient)}.acquire()));
    EXPECT_EQ(links(), with_one_wish);
    EXPECT_TRUE((mutex{subject, "stock", acknowledged_by(1, patient)}.acquire()));
    EXPECT_EQ(links(), with_one_wish + 1);
}

TEST_F(Replicas, AReplicaThatHasAcknowledgedKnowsTheHoldWhenItIsPromoted) {
    mutex lock{subject, "stock", acknowledged_by(1, patient)};
    set.replicas[1].pause();
    const lease held = lock.acquire();
    set.primary.kill();
    redis_server& promoted = set.replicas[0];
    promoted.call({"REPLICAOF", "NO", "ONE"});
    client other{promoted.url()};
    mutex theirs{other, "stock"};
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.holder, held.id());
}

TEST(ReplicasWithSentinels, HoldsOutliveAFailoverAndNobodyElseComesIn) {
    constexpr std::size_t many = 20;
    sentinel_set set;
    // With one replica left nothing is renewed any more: what was acknowledged must last until the end.
    client subject{set.url() + with_time_for_it, {.max_lease = 600s}};
    mutex_options terms = acknowledged_by(2, patient);
    terms.lease = 600s;
    std::vector<lease> held;
    for (std::size_t i = 0; i < many; ++i) {
        held.push_back(mutex{subject, "shelf " + std::to_string(i), terms}.acquire());
    }
    redis_server& former = set.primary();
    former.kill();
    ASSERT_TRUE(set.has_replaced(former));
    client other{set.url()};
    for (std::size_t i = 0; i < many; ++i) {
        refusal why;
        mutex theirs{other, "shelf " + std::to_string(i)};
        EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
        EXPECT_EQ(why.holder, held[i].id());
    }
    // The link for acknowledgements goes to the new primary, too, which has one replica left.
    mutex content_with_one{subject, "stock", acknowledged_by(1, patient)};
    EXPECT_TRUE(eventually([&] { return condition_of([&] { content_with_one.acquire(); }) == errc{}; }, an_age));
    for (lease& each : held) EXPECT_FALSE(each.release());
}

TEST(ReplicasOfNobody, AreMissed) {
    redis_server alone;
    client subject{alone.url()};
    mutex lock{subject, "stock", acknowledged_by(1, hurried)};
    expect_refusal(errc::not_replicated, at_port(alone.port()), [&] { lock.acquire(); });
}

TEST(ReplicasAndRights, WithoutTheRightToWaitThatIsSaid) {
    redis_server server{{.acl_users = {"bob on >hunter2 ~* &* +@all -wait"}}};
    client subject{"redis://bob:hunter2@" + at_port(server.port()) + with_time_for_it};
    mutex lock{subject, "stock", acknowledged_by(1, patient)};
    expect_refusal(errc::no_permission, at_port(server.port()), [&] { lock.acquire(); });
    EXPECT_TRUE(eventually([&] { return !exists(server, "hf:{stock}"); }, an_age));
}

TEST(ReplicaOptions, OutOfRangeAreRefused) {
    redis_server server;
    client subject{server.url()};
    for (const mutex_options& wrong :
         {acknowledged_by(16, 100ms), acknowledged_by(1, 0ms), acknowledged_by(1, 1001ms)}) {
        EXPECT_EQ(condition_of([&] { mutex{subject, "stock", wrong}; }), errc::bad_option);
    }
    EXPECT_EQ(condition_of([&] { client(server.url(), {.clock_skew = 15001ms}); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { client(server.url(), {.clock_skew = -1ms}); }), errc::bad_option);
    EXPECT_EQ(condition_of([&] { client(server.url(), {.lost_margin_percent = 50, .clock_skew = 6001ms}); }),
              errc::bad_option)
        << "nothing would be left for the first renewal";
    client cautious{server.url(), {.lost_margin_percent = 50, .clock_skew = 1s}};
    EXPECT_EQ(condition_of([&] { mutex{cautious, "stock", {.lease = 11s}}; }), errc::bad_option);
    EXPECT_TRUE((mutex{cautious, "stock", {.lease = 12s}}.acquire()));
    client skewed{server.url(), {.clock_skew = 1s}};
    EXPECT_EQ(condition_of([&] { mutex{skewed, "stock", {.lease = 3999ms}}; }), errc::bad_option);
    mutex lock{skewed, "stock", {.lease = 4s}};
    EXPECT_LE(lock.acquire().validity(), 3s);
}

}  // namespace
}  // namespace holdfast::testing::replicas_test
