// What happens to a member of a Cluster happens to the locks that it has.
#include "unit/engine/cluster_node_fixture.hpp"

namespace holdfast::engine::cluster_node_test {
namespace {

using namespace std::chrono_literals;
using namespace redis::testing;
using ::testing::AllOf;
using testing::cluster_node_fixture;
using ::testing::HasSubstr;
using testing::keys_for;
using testing::list;
using testing::long_ago_s;
using testing::map_of;
using testing::mistrusted_for;
using ::testing::Not;
using testing::recorded_request;

class ClusterNode : public cluster_node_fixture {
protected:
    ClusterNode() : cluster_node_fixture(0) {}
};

/// With one single server besides the Cluster: both have to grant.
class ClusterAmongSeveral : public cluster_node_fixture {
protected:
    ClusterAmongSeveral() : cluster_node_fixture(1) {}

    testing::played_server& single() { return singles[0]; }
    std::string asked_of_single() {
        const auto asked = single().send(now);
        EXPECT_LE(asked.size(), 1U);
        return asked.empty() ? "nothing" : asked.front().script;
    }
    /// Asks for the lock a, and gives back what the single server grants: nobody has said yet who has the slot.
    void withdraw_without_map() {
        single().bring_link_up({.clock = 1'700'000'000s}, now);
        driven().start(now);
        settle();
        ask(first, "a");
        ASSERT_EQ(asked_of_single(), "mutex/acquire");
        single().receive(list({"1", "42"}), now);
        pass(1s);
        subject.on_timer(now);
        settle();
        ASSERT_EQ(asked_of_single(), "mutex/release");
        single().receive(list({"1", "0"}), now);
    }
    /// Here `three` has the lock a: it is no seed, so only those who need it dial it.
    void tell_first_map() {
        come_up(one, {.uptime_s = long_ago_s});
        ASSERT_EQ(sent(one), shards_question);
        say(one, map_of(one, three));
    }
};

TEST_F(ClusterNode, TheLossOfOneMemberIsThatOfItsLocksOnly) {
    start();
    wait_in_queue(first, "a", two);
    wait_in_queue(second, "b", one);
    fail(two);
    EXPECT_FALSE(is_up("a"));
    EXPECT_TRUE(is_up("b"));
    pass(30ms);
    come_up(two, {.client_id = 8});
    say(two, ":1\r\n");
    EXPECT_TRUE(is_up("a"));
    EXPECT_THAT(sent(two), HasSubstr("{a}")) << "whoever waits there asks";
    EXPECT_THAT(sent(one), Not(HasSubstr("{b}")));
    EXPECT_THAT(seen, ::testing::ElementsAre("up one", "up two", "down", "up two"));
}

TEST_F(ClusterNode, AWaiterListensAtTheOwnerOfItsLockAndBelievesWhatIsPushedThere) {
    start();
    ask(first, "a");
    const std::string bytes = sent(two);
    EXPECT_LT(bytes.find("SSUBSCRIBE"), bytes.find("EVALSHA"));
    EXPECT_THAT(bytes, HasSubstr(channel("a")));
    confirm(two, channel("a"));
    say(two, list({"2", "900", "other", "77", "0", "41"}));
    const auto at = bytes.find(subject.id().text() + ".", bytes.find("EVALSHA"));
    ASSERT_NE(at, std::string::npos);
    const std::string id = bytes.substr(at, bytes.find("\r\n", at) - at);
    say(two, ">3\r\n" + bulk("smessage") + bulk(channel("a")) + bulk("grant " + id + " 42"));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

TEST_F(ClusterNode, ReplicasAreAskedForAtTheOwnerOfTheLock) {
    start();
    acknowledged_acquire(first, "b");
    sent(one);
    confirm(one, channel("b"));
    say(one, list({"1", "7"}));
    EXPECT_EQ(seen.back(), "confirm at " + one.host);
    acknowledged_acquire(second, "a");
    sent(two);
    confirm(two, channel("a"));
    say(two, list({"1", "8"}));
    EXPECT_EQ(seen.back(), "confirm at " + two.host);
}

/// Of a client that must not poll.
class ClusterNodeThatPushes : public cluster_node_fixture {
protected:
    ClusterNodeThatPushes() : cluster_node_fixture(0, "?wake=push") {}
};

TEST_F(ClusterNodeThatPushes, WhoMayNotListenIsRefusedAndNobodyElse) {
    start();
    ask(first, "a");
    wait_in_queue(second, "b", one);
    say(two, "-NOPERM no permissions to access a channel\r\n");
    EXPECT_EQ(first.refusal_code, errc::no_permission);
    EXPECT_FALSE(second.refusal_code);
}

const std::string polls = bulk("-");

TEST_F(ClusterNode, WhoMayNotListenPollsAndNobodyElse) {
    start();
    ask(first, "a");
    wait_in_queue(second, "b", one);
    sent(two);
    say(two, "-NOPERM no permissions to access a channel\r\n");
    EXPECT_EQ(seen.back(), "polls");
    say(two, list({"2", "900", "other", "77", "0", "41"}));
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(two), HasSubstr(polls)) << "at once: it had told its channel";
    say(two, list({"1", "42"}));
    EXPECT_NE(first.held, nullptr);
    pass(10s);
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(one), AllOf(HasSubstr(channel("b")), Not(HasSubstr(polls))));
}

TEST_F(ClusterNode, WhoMayNotListenTriesAgainOverTheNextLink) {
    start();
    ask(first, "a");
    sent(two);
    say(two, "-NOPERM no permissions to access a channel\r\n");
    say(two, list({"2", "900", "other", "77", "0", "41"}));
    break_link(two, long_ago_s);
    EXPECT_THAT(sent(two), HasSubstr(encoded({"SSUBSCRIBE", channel("a")})));
}

class ClusterNodeThatPolls : public cluster_node_fixture {
protected:
    ClusterNodeThatPolls() : cluster_node_fixture(0, "?wake=poll") {}
};

TEST_F(ClusterNodeThatPolls, SubscribesToNothing) {
    start();
    ask(first, "a");
    EXPECT_THAT(sent(two), AllOf(HasSubstr(polls), Not(HasSubstr("SSUBSCRIBE"))));
}

// Otherwise it would wait for a link that nobody makes.
TEST_F(ClusterAmongSeveral, WhoWithdrewBeforeThereWasAMapIsAskedForAgainWhenThereIsOne) {
    withdraw_without_map();
    tell_first_map();
    ASSERT_TRUE(has_link(three));
    EXPECT_EQ(asked_of_single(), "nothing");
    come_up(three, {.uptime_s = long_ago_s});
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
    EXPECT_EQ(asked_of_single(), "mutex/acquire");
}

TEST_F(ClusterAmongSeveral, WhoWaitsForLinksWantsTheOneToTheNewOwnerWhenItsSlotMoves) {
    withdraw_without_map();
    tell_first_map();
    tell_map(map_of(one, four));
    EXPECT_TRUE(has_link(four));
}

TEST_F(ClusterAmongSeveral, NobodyIsDialledForALockThatIsNotWaitedForAnyMore) {
    withdraw_without_map();
    subject.cancel(first, errc::cancelled, now);
    tell_first_map();
    EXPECT_FALSE(has_link(three));
}

// Between one batch of MIGRATE and the next the keys of a lock may be at two places.
TEST_F(ClusterNode, ARenewalOfAReadWriteLockLivesThroughTheMomentInWhichItsKeysAreAtTwoMembers) {
    start();
    const acquire_terms terms{.keys = keys_for("a"),
                              .options = {.lease = 30s, .kind = lock_kind::read_write},
                              .want = access::shared,
                              .limit = {waiting::in_queue, now + 1h}};
    subject.acquire(first, terms, now);
    settle();
    confirm(two, channel("a"));
    say(two, list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    sent(two);
    testing::recorded_answer renewed;
    subject.renew(*first.held, renewed, now);
    settle();
    EXPECT_THAT(sent(two), HasSubstr(wire::find("rw/renew").sha1));
    say(two, try_again);
    const std::string alone = sent(two);
    EXPECT_THAT(alone, HasSubstr(wire::find("rw/renew_alone").sha1));
    say(two, try_again);
    EXPECT_FALSE(renewed.code) << "it is tried again";
    pass(10ms);
    EXPECT_EQ(sent(two), alone);
    say(two, list({"1", "r", "42"}));
    EXPECT_EQ(renewed.code, errc{});
}

// Sent to where the slot is moving to, again: the key may not be there yet.
TEST_F(ClusterNode, ARenewalThatFoundNothingWhereTheSlotIsMovingToIsAskedForOnceMore) {
    start();
    ask(first, "a");
    sent(two);
    confirm(two, channel("a"));
    say(two, list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    const auto life = std::make_shared<testing::recorded_life>();
    first.held->listen(life);
    for (const char* last_answer : {"1", "0"}) {
        tell_map(two_halves());
        subject.on_timer(now);
        settle();
        EXPECT_THAT(sent(two), HasSubstr("EVALSHA"));
        say(two, "-ASK 15495 one:7001\r\n");
        EXPECT_THAT(sent(one), HasSubstr("ASKING"));
        say(one, "+OK\r\n" + list({"0"}));
        EXPECT_FALSE(life->lost);
        EXPECT_THAT(sent(two), HasSubstr("EVALSHA")) << "by the map";
        say(two, list({last_answer}));
        EXPECT_EQ(life->lost.has_value(), std::string(last_answer) == "0");
    }
}

// Of a kept lock it goes alone, and that copy may be the one that came too late.
TEST_F(ClusterNode, ARenewalAloneOfAKeptLockIsAskedForOnceMore) {
    start();
    wait_in_queue(second, "a", two);  // the client listens there
    const acquire_terms terms{
        .keys = keys_for("a"), .options = {.lease = 30s, .kept = true}, .limit = {waiting::in_queue, now + 1h}};
    subject.acquire(first, terms, now);
    settle();
    sent(two);
    say(two, list({"1", "42", "0", "", "50", "0"}));
    ASSERT_NE(first.held, nullptr);
    ASSERT_TRUE(first.held->is_kept());
    subject.cancel(second, errc::cancelled, now);
    settle();
    sent(two);
    say(two, list({"-1", "30000", "other"}));
    const auto life = std::make_shared<testing::recorded_life>();
    first.held->listen(life);
    testing::recorded_answer renewed;
    subject.renew(*first.held, renewed, now);
    settle();
    EXPECT_THAT(sent(two), HasSubstr(wire::find("mutex/renew_block").sha1));
    say(two, try_again);
    EXPECT_THAT(sent(two), HasSubstr(wire::find("mutex/renew").sha1));
    say(two, "-ASK 15495 one:7001\r\n");
    EXPECT_THAT(sent(one), HasSubstr("SSUBSCRIBE"));
    say(one, "+OK\r\n");
    confirm(one, channel("a"));
    say(one, "+OK\r\n" + list({"0"}));
    EXPECT_FALSE(life->lost) << "the move was cancelled, and the key is back";
    EXPECT_THAT(sent(two), HasSubstr(wire::find("mutex/renew_block").sha1));
    say(two, list({"1", "", "", "", "60", "0"}));
    EXPECT_FALSE(life->lost);
    EXPECT_EQ(renewed.code, errc{});
}

}  // namespace
}  // namespace holdfast::engine::cluster_node_test
