// Sharded channels follow their slots.
#include <gmock/gmock.h>

#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::redis::cluster_channels_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string forbidden = "-NOPERM this user has no permissions to access one of the channels\r\n";
const std::string down_b = "down!" + name_of(errc::moving) + ": b";

class ClusterChannels : public testing::cluster_fixture {
protected:
    /// After a member of a later version has given this answer to CLUSTER SHARDS.
    void expect_listened_to_after(const std::string& answer) {
        start_with_both();
        listen();
        fail(one);
        sent(one);
        come_up(one, {.version = "8.0.2"});
        EXPECT_EQ(sent(one), shards_question);
        say(one, answer);
        EXPECT_THAT(sent(one), HasSubstr(subscribe_b));
    }

    /// The time until the channel is asked for again.
    std::chrono::milliseconds rest_after_refusal() {
        sent(one);
        say(one, "-CLUSTERDOWN Hash slot not served\r\n");
        for (std::chrono::milliseconds rest{0}; rest < 1s; rest += 1ms) {
            if (sent(one).find(subscribe_b) != std::string::npos) return rest;
            pass(1ms);
        }
        return 1s;
    }
};

TEST_F(ClusterChannels, AreAskedForAtTheOwnerBeforeTheQuestionThatNamesThem) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    router.subscribe(b_channel, now);
    router.submit(b, now);
    settle();
    EXPECT_EQ(sent(one), subscribe_b + encoded({"GET", key_b}));
    confirm(one, b_channel);
    say(one, "+1\r\n" + b_message("hello"));
    EXPECT_THAT(log, ElementsAre("GET=1", "push " + b_channel + " hello"));
}

TEST_F(ClusterChannels, AreAskedForWhenTheLinkComesUpBeforeWhatWaited) {
    recorded_command b = get("GET", key_b);
    router.start(now);
    router.subscribe(b_channel, now);
    submit(b);
    come_up(one);
    say(one, testing::two_halves());
    EXPECT_EQ(sent(one), shards_question + subscribe_b + encoded({"GET", key_b}));
    confirm(one, b_channel);
    say(one, "+1\r\n");
    fail(one);
    log.clear();
    come_up(one);
    EXPECT_THAT(sent(one), HasSubstr(subscribe_b)) << "on every later link, too";
    EXPECT_THAT(log, ElementsAre("up one: b c"));
}

TEST_F(ClusterChannels, FollowTheirSlot) {
    listen_at_one();
    recorded_command b = get("GET", key_b);
    submit(b);
    say(one, b_moved);
    EXPECT_EQ(sent(two), subscribe_b + encoded({"GET", key_b}));
    EXPECT_THAT(log, ElementsAre(down_b, "up two: b"));
    confirm(two, b_channel);
    say(two, b_message("new"));
    say(one, b_message("old"));
    EXPECT_EQ(log.back(), "push " + b_channel + " new") << "the former owner's word counts no more";
}

TEST_F(ClusterChannels, AreHeardWhereThePresentOwnerHasConfirmedThem) {
    start_with_both();
    EXPECT_FALSE(router.hears(b_channel));
    router.subscribe(b_channel, now);
    settle();
    sent(one);
    EXPECT_FALSE(router.hears(b_channel)) << "asked for";
    confirm(one, b_channel);
    EXPECT_TRUE(router.hears(b_channel));
    router.unsubscribe(b_channel, now);
    EXPECT_TRUE(router.hears(b_channel)) << "for a while";
    router.subscribe(b_channel, now);
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, b_moved);
    EXPECT_FALSE(router.hears(b_channel)) << "the slot has another owner";
    sent(two);
    confirm(two, b_channel);
    EXPECT_TRUE(router.hears(b_channel));
}

TEST_F(ClusterChannels, FollowTheMap) {
    listen_at_one();
    fail(one);
    say(asked_for_map(), shards_answer({shard_answer({{0, 16383}}, {node_answer(two)})}));
    EXPECT_EQ(sent(two), subscribe_b);
}

// Often the first sign of a move: all waiters have to ask.
TEST_F(ClusterChannels, AnUnaskedEndMeansToSubscribeAgainAndToAsk) {
    listen_at_one();
    recorded_command poll = get("poll", key_b);
    when_up = [&] {
        if (poll.life() == command::state::idle) router.submit(poll, now);
    };
    say(one, ended());
    EXPECT_THAT(log, ElementsAre(down_b, "up one: b"));
    EXPECT_EQ(sent(one), subscribe_b + encoded({"poll", key_b}));
    log.clear();
    say(one, b_moved + b_moved);  // to the subscription, and to the poll
    EXPECT_THAT(log, ElementsAre(down_b, "up two: b"));
    EXPECT_EQ(sent(two), subscribe_b + encoded({"poll", key_b}));
    asked_for_map();
}

TEST_F(ClusterChannels, AreReasonEnoughToMakeALink) {
    start();
    listen();
    confirm(one, b_channel);
    say(one, ended());
    say(one, "-MOVED 3300 three:7003\r\n");
    ASSERT_TRUE(has_link(three));
    come_up(three);
    EXPECT_EQ(sent(three), subscribe_b);
    EXPECT_EQ(log.back(), "up three: b");
}

TEST_F(ClusterChannels, AnEndAtAFormerOwnerIsNoNews) {
    listen_at_one();
    recorded_command b = get("GET", key_b);
    submit(b);
    say(one, b_moved);
    log.clear();
    say(one, ended());
    EXPECT_THAT(log, IsEmpty());
}

// The target of the move must find the client listening.
TEST_F(ClusterChannels, AreAskedForWhereASlotIsMovingTo) {
    listen_at_one();
    recorded_command first = get("GET", key_b);
    recorded_command second = get("SET", key_b);
    submit(first);
    submit(second);
    sent(one);
    say(one, "-ASK 3300 two:7002\r\n-ASK 3300 two:7002\r\n");
    EXPECT_EQ(sent(two), asking + subscribe_b + asking + encoded({"GET", key_b}) + asking + encoded({"SET", key_b}))
        << "once";
    say(two, "+OK\r\n");
    confirm(two, b_channel);
    say(two, "+OK\r\n+1\r\n+OK\r\n+2\r\n" + b_message("there"));
    say(one, b_message("here"));
    EXPECT_THAT(log, ElementsAre("GET=1", "SET=2", "push " + b_channel + " there", "push " + b_channel + " here"));
}

TEST_F(ClusterChannels, AreKeptForAWhileWhenNobodyWantsThem) {
    listen_at_one();
    router.unsubscribe(b_channel, now);
    settle();
    EXPECT_EQ(sent(one), "");
    listen();
    EXPECT_EQ(sent(one), "") << "it is still on";
    say(one, b_message("again"));
    EXPECT_THAT(log, ElementsAre("push " + b_channel + " again"));
}

TEST_F(ClusterChannels, TheOldestOfManyIdleOnesIsLeft) {
    listen_at_one();
    router.unsubscribe(b_channel, now);
    for (int i = 0; i < 256; ++i) {
        const std::string other = "wake:{b}:" + std::to_string(i);
        router.subscribe(other, now);
        router.unsubscribe(other, now);
    }
    settle();
    EXPECT_THAT(sent(one), HasSubstr(encoded({"SUNSUBSCRIBE", b_channel}) + encoded({"PING", b_channel})));
    for (int i = 0; i < 256; ++i) confirm(one, "wake:{b}:" + std::to_string(i));
    log.clear();
    say(one, ended() + bulk(b_channel));
    EXPECT_THAT(log, IsEmpty()) << "that was asked for";
    listen();
    EXPECT_EQ(sent(one), subscribe_b);
}

TEST_F(ClusterChannels, TheEndOfOneThatWasLeftIsNotTheEndOfTheNext) {
    listen_at_one();
    router.unsubscribe(b_channel, now);
    for (int i = 0; i < 256; ++i) {
        const std::string other = "wake:{b}:" + std::to_string(i);
        router.subscribe(other, now);
        router.unsubscribe(other, now);
    }
    listen();
    for (int i = 0; i < 256; ++i) confirm(one, "wake:{b}:" + std::to_string(i));
    sent(one);
    say(one, ended() + bulk(b_channel));
    confirm(one, b_channel);
    EXPECT_THAT(log, IsEmpty());
    EXPECT_EQ(sent(one), "");
    say(one, b_message("hello"));
    EXPECT_THAT(log, ElementsAre("push " + b_channel + " hello"));
}

// A member that has become a replica still takes subscriptions.
TEST_F(ClusterChannels, DoNotKeepALinkWhereTheyAreNotHeard) {
    listen_at_one();
    say(one, ended());
    confirm(one, b_channel);
    say(asked_for_map(),
        shards_answer({shard_answer({{0, 16383}}, {node_answer(two), node_answer(one, {.role = "replica"})})}));
    EXPECT_EQ(sent(two), subscribe_b);
    EXPECT_THAT(members.closed, ElementsAre("one"));
}

TEST_F(ClusterChannels, OneThatIsForbiddenIsToldAndForgotten) {
    start_with_both();
    listen();
    sent(one);
    say(one, forbidden);
    EXPECT_THAT(log, ElementsAre("refused " + b_channel + "!" + name_of(errc::no_permission)));
    listen();
    EXPECT_EQ(sent(one), subscribe_b) << "the right may have been given meanwhile";
}

// Each member has its own ACL: the new owner may forbid what the old one has not answered yet.
TEST_F(ClusterChannels, OneThatIsForbiddenHereMayStillBeOnItsWayElsewhere) {
    start_with_both();
    listen();
    pass(10s);
    ASSERT_EQ(asked_for_map(), two);
    say(two, shards_answer({shard_answer({{0, 16383}}, {node_answer(two)})}));
    ASSERT_EQ(sent(two), subscribe_b) << "both are asked, and neither has answered";
    log.clear();
    say(two, forbidden);
    EXPECT_THAT(log, ElementsAre("refused " + b_channel + "!" + name_of(errc::no_permission)));
    listen();
    EXPECT_EQ(sent(two), subscribe_b);
    say(one, forbidden);  // answers the abandoned subscription
    EXPECT_EQ(log.size(), 1U);
    confirm(two, b_channel);
    say(two, b_message("hello"));
    EXPECT_EQ(log.back(), "push " + b_channel + " hello");
}

TEST_F(ClusterChannels, OneThatIsRefusedForAWhileIsAskedForAgain) {
    start_with_both();
    listen();
    sent(one);
    say(one, "-CLUSTERDOWN Hash slot not served\r\n");
    EXPECT_THAT(log, IsEmpty());
    EXPECT_EQ(sent(one), "");
    pass(5ms);
    EXPECT_EQ(sent(one), subscribe_b);
}

TEST_F(ClusterChannels, TheLongerTheyAreRefusedTheLongerTheyRest) {
    start_with_both();
    pass(10s);
    ASSERT_EQ(asked_for_map(), two);  // which does not answer
    listen();
    std::chrono::milliseconds longest{0};
    for (int i = 0; i < 10; ++i) longest = std::max(longest, rest_after_refusal());
    EXPECT_GE(longest, 100ms);
    EXPECT_LE(longest, 200ms);
    confirm(one, b_channel);
    say(one, ended());
    EXPECT_LE(rest_after_refusal(), 5ms) << "once it was on all is forgotten";
}

// The tool that moves slots tells one member after the other, and may die in between.
TEST_F(ClusterChannels, ThatAreSentInACircleRest) {
    start_with_both();
    listen();
    int followed = 0;
    for (bool is_in_flight = true; is_in_flight;) {
        is_in_flight = false;
        for (const server_address& address : {one, two}) {
            if (sent(address).find(subscribe_b) == std::string::npos) continue;
            ASSERT_LT(++followed, 10);
            is_in_flight = true;
            say(address, address == one ? b_moved : "-MOVED 3300 one:7001\r\n");
        }
    }
    EXPECT_EQ(followed, 6) << "the first, and five redirects";
    pass(5ms);
    EXPECT_THAT(sent(one) + sent(two), HasSubstr(subscribe_b)) << "after a rest it goes on";
}

// SPUBLISH of a script crashes a member that is in no shard: see slot_map.hpp.
TEST_F(ClusterChannels, AreNotListenedToAtAMemberThatIsInNoShard) {
    start_with_both();
    fail(one);
    sent(one);
    come_up(one, {.version = "8.0.2"});
    EXPECT_EQ(sent(one), shards_question) << "before it takes anything else";
    say(one, shards_answer({shard_answer({{8192, 16383}}, {node_answer(two)})}));
    listen();
    recorded_command b = get("GET", key_b);
    submit(b);
    EXPECT_EQ(sent(one), encoded({"GET", key_b})) << "all else goes on";
    say(one, "+1\r\n");
    EXPECT_EQ(log.back(), "GET=1");
}

TEST_F(ClusterChannels, AreListenedToWhenTheMemberHasStartedAgain) {
    expect_listened_to_after(two_halves());
}

TEST_F(ClusterChannels, AreListenedToAtAMemberThatDoesNotTell) {
    expect_listened_to_after("-NOPERM this user has no permissions to run the 'cluster|shards' command\r\n");
}

}  // namespace
}  // namespace holdfast::redis::cluster_channels_test
