// Every command reaches the owner of its key, whatever members answer first.
#include <gmock/gmock.h>

#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::redis::cluster_router_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using life = command::state;

const std::string half_run =
    "-ERR Script attempted to access a non local key in a cluster node script: 1, on @x:1.\r\n";

class ClusterRouter : public testing::cluster_fixture {};

TEST_F(ClusterRouter, AsksASeedWhoOwnsWhatBeforeItSendsAnything) {
    recorded_command b = get("GET", key_b);
    router.start(now);
    submit(b);
    EXPECT_THAT(members.opened, ElementsAre("one", "two")) << "both seeds at once";
    come_up(one);
    EXPECT_EQ(sent(one), shards_question);
    EXPECT_EQ(b.life(), life::waiting);
    say(one, testing::two_halves());
    EXPECT_EQ(sent(one), encoded({"GET", key_b}));
    say(one, "+1\r\n");
    EXPECT_THAT(log, ElementsAre("up one: b c", "GET=1"));
    EXPECT_EQ(maps, 1);
    EXPECT_TRUE(router.is_up(slot_of(key_b)));
    EXPECT_FALSE(router.is_up(slot_of(key_a)));
}

TEST_F(ClusterRouter, ALinkIsMadeWhenSomethingIsForIt) {
    start(shards_answer(
        {shard_answer({{0, 8191}}, {node_answer(one)}), shard_answer({{8192, 16383}}, {node_answer(three)})}));
    recorded_command a = get("GET", key_a);
    recorded_command b = get("GET", key_b);
    EXPECT_FALSE(has_link(three));
    submit(a);
    EXPECT_TRUE(has_link(three));
    submit(b);
    EXPECT_EQ(sent(one), encoded({"GET", key_b})) << "does not wait for the other member";
    come_up(three);
    EXPECT_EQ(sent(three), encoded({"GET", key_a}));
    EXPECT_THAT(log, ElementsAre("up three: a"));
}

TEST_F(ClusterRouter, WhatHasNoKeyGoesToAnyPrimary) {
    start();
    recorded_command ping(log, "PING");
    submit(ping);
    EXPECT_EQ(sent(one), encoded({"PING"}));
}

TEST_F(ClusterRouter, WhatHasNoKeyDoesNotWaitForAPrimaryThatIsGone) {
    const server_address gone{"gone", 1};
    const server_address lost{"lost", 1};
    const server_address dead{"dead", 1};
    router.start(now);
    settle();
    come_up(one, {.role = "replica"});
    say(one,
        shards_answer({shard_answer({{0, 99}}, {node_answer(gone), node_answer(one, {.role = "replica"})}),
                       shard_answer({{100, 199}}, {node_answer(lost)}), shard_answer({{200, 299}}, {node_answer(dead)}),
                       shard_answer({{300, 399}}, {node_answer(three)})}));
    recorded_command ping(log, "PING");
    submit(ping);
    for (const server_address& address : {gone, lost, dead}) fail(address, errc::connection_refused);
    ASSERT_TRUE(has_link(three));
    come_up(three);
    EXPECT_THAT(sent(three), HasSubstr(encoded({"PING"})));
}

// An attempt to reach a primary that hangs ends by timeout. Its successor may be known long before.
TEST_F(ClusterRouter, WhileAPrimaryIsMissedOthersAreAskedAgainAndAgainWhoTakesOver) {
    start_with_both();
    fail(two);
    recorded_command a = get("GET", key_a);
    submit(a);
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(asked_for_map(), one);
        EXPECT_FALSE(is_asked_for_map()) << "one question at a time";
        say(one, testing::two_halves());
    }
    ASSERT_EQ(asked_for_map(), one);
    say(one, shards_answer(
                 {shard_answer({{0, 8191}}, {node_answer(one)}), shard_answer({{8192, 16383}}, {node_answer(three)})}));
    ASSERT_TRUE(has_link(three));
    come_up(three);
    EXPECT_THAT(sent(three), HasSubstr(encoded({"GET", key_a})));
    for (int i = 0; i < 3; ++i) pass(300ms);
    EXPECT_FALSE(is_asked_for_map()) << "nobody is missed any more";
}

TEST_F(ClusterRouter, WhatHasNoKeyOpensNoLinkWhereAnotherPrimaryIsUp) {
    start(
        shards_answer({shard_answer({{0, 8191}}, {node_answer(one)}), shard_answer({{8192, 16000}}, {node_answer(two)}),
                       shard_answer({{16001, 16383}}, {node_answer(three)})}));
    recorded_command a = get("GET", key_a);
    submit(a);
    come_up(two);
    recorded_command ping(log, "PING");
    router.submit(ping, now);
    fail(one);
    EXPECT_THAT(sent(two), HasSubstr(encoded({"PING"})));
    EXPECT_FALSE(has_link(three));
}

TEST_F(ClusterRouter, MovedIsFollowedAndRemembered) {
    start_with_both();
    recorded_command first = get("GET", key_b);
    recorded_command second = get("SET", key_b);
    submit(first);
    sent(one);
    when_up = [&] { router.submit(second, now); };
    say(one, b_moved);
    EXPECT_THAT(log, ElementsAre("down!" + name_of(errc::moving) + ": b", "up two: b"))
        << "those who wait there ask anew";
    EXPECT_EQ(sent(two), encoded({"GET", key_b}) + encoded({"SET", key_b})) << "what was asked first goes first";
    EXPECT_EQ(first.life(), life::written);
    asked_for_map();  // the rest of the map may be wrong, too
}

TEST_F(ClusterRouter, MovedToAMemberThatNobodyKnewOpensALinkThere) {
    start();
    recorded_command b = get("GET", key_b);
    submit(b);
    say(one, "-MOVED 3300 three:7003\r\n");
    ASSERT_TRUE(has_link(three));
    EXPECT_FALSE(router.is_up(slot_of(key_b)));
    come_up(three);
    EXPECT_EQ(sent(three), encoded({"GET", key_b}));
    EXPECT_THAT(log, ElementsAre("down!" + name_of(errc::moving) + ": b", "up three: b"));
}

// A one-key script that is sent there by habit would run beside the key that is still at the source.
TEST_F(ClusterRouter, AskIsFollowedOnceAndNotRemembered) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, b_asks);
    EXPECT_EQ(sent(two), asking + encoded({"GET", key_b}));
    say(two, "+OK\r\n+1\r\n");
    EXPECT_TRUE(b.was_redirected());
    EXPECT_THAT(log, ElementsAre("GET=1")) << "the slot has not moved";
    submit(b);
    EXPECT_EQ(sent(one), encoded({"GET", key_b}));
    say(one, "+2\r\n");
    EXPECT_FALSE(b.was_redirected());
}

TEST_F(ClusterRouter, AskToAMemberWithoutALinkWaitsForThatLink) {
    start();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, "-ASK 3300 three:7003\r\n");
    come_up(three);
    EXPECT_EQ(sent(three), asking + encoded({"GET", key_b}));
}

// The key may be back at the source.
TEST_F(ClusterRouter, AskIsNotFollowedWhenItIsOld) {
    start();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, "-ASK 3300 three:7003\r\n");
    pass(200ms);
    sent(one);
    come_up(three);
    EXPECT_EQ(sent(three).find("GET"), std::string::npos);
    EXPECT_THAT(sent(one), HasSubstr(encoded({"GET", key_b})));
}

TEST_F(ClusterRouter, AskIsNotFollowedWhenTheSlotHasAnotherOwner) {
    start_with_both();
    recorded_command by_moved = get("GET", key_b);
    recorded_command other = get("SET", key_b);
    recorded_command by_map = get("GET", testing::key_c);
    submit(by_moved);
    submit(other);
    submit(by_map);
    sent(one);
    say(one, "-ASK 3300 three:7003\r\n");
    say(one, b_moved);
    EXPECT_EQ(sent(two), encoded({"SET", key_b}) + encoded({"GET", key_b}));
    say(two, "+1\r\n+2\r\n");
    say(one, "-ASK 7365 three:7003\r\n");
    say(asked_for_map(), shards_answer({shard_answer({{0, 16383}}, {node_answer(two)})}));
    EXPECT_EQ(sent(two), encoded({"GET", testing::key_c}));
}

TEST_F(ClusterRouter, AskToAMemberThatCannotBeReachedGoesBackToTheOwner) {
    start();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, "-ASK 3300 three:7003\r\n");
    fail(three, errc::connection_refused);
    pass(10ms);
    EXPECT_THAT(sent(one), HasSubstr(encoded({"GET", key_b})));
    EXPECT_THAT(log, IsEmpty());
}

TEST_F(ClusterRouter, AMoveThatIsOverWhenAskIsFollowedIsAskedAtTheOwner) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    say(one, b_asks);
    sent(two);
    say(two, "+OK\r\n-MOVED 3300 one:7001\r\n");
    EXPECT_EQ(sent(one), encoded({"GET", key_b}));
    EXPECT_THAT(log, IsEmpty());
}

TEST_F(ClusterRouter, TryAgainRestsAndThenAsksTheOwner) {
    start_with_both();
    recorded_command b = two_keys("b", key_b);
    submit(b);
    std::chrono::nanoseconds longest{0};
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(sent(one), script_bytes("b", key_b));
        say(one, try_again);
        EXPECT_EQ(sent(one), "") << "not at once";
        const std::chrono::nanoseconds rest = router.deadline() - now;
        EXPECT_GE(rest, std::min<std::chrono::nanoseconds>(longest / 2, 100ms));
        EXPECT_LE(rest, 200ms);
        longest = std::max(longest, rest);
        pass(rest);
    }
    EXPECT_GE(longest, 100ms) << "the rests grow";
    EXPECT_THAT(log, IsEmpty());
}

// A renewal does not wait as long as polls that were refused again and again.
TEST_F(ClusterRouter, AnOvertakingCommandRestsForItselfAlone) {
    start_with_both();
    recorded_command poll = two_keys("poll", key_b);
    submit(poll);
    for (int i = 0; i < 8; ++i) {
        sent(one);
        say(one, try_again);
        if (i < 7) pass(router.deadline() - now);
    }
    recorded_command renewal = two_keys("renewal", key_b);
    renewal.pass_others();
    submit(renewal);
    EXPECT_EQ(sent(one), script_bytes("renewal", key_b));
    say(one, try_again);
    EXPECT_EQ(sent(one), "") << "not at once";
    pass(router.deadline() - now);
    EXPECT_EQ(sent(one), script_bytes("renewal", key_b)) << "and without the poll, which rests on";
    say(one, try_again);
    const std::chrono::nanoseconds rest = router.deadline() - now;
    EXPECT_LE(rest, 10ms) << "its second";
    pass(200ms);
    EXPECT_EQ(sent(one), script_bytes("poll", key_b) + script_bytes("renewal", key_b));
}

TEST_F(ClusterRouter, TryAgainGoesToAnOwnerThatAsksForIt) {
    start_with_both();
    recorded_command b = two_keys("b", key_b);
    b.tell_if_moving();
    submit(b);
    say(one, try_again);
    EXPECT_THAT(log, ElementsAre(HasSubstr("b=TRYAGAIN")));
}

TEST_F(ClusterRouter, AClusterThatIsDownIsAskedAgainAndForItsMap) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    now += 1s;
    say(one, "-CLUSTERDOWN The cluster is down\r\n");
    EXPECT_TRUE(is_asked_for_map());
    asked_for_map();
    EXPECT_EQ(sent(one), "");
    pass(5ms);
    EXPECT_EQ(sent(one), encoded({"GET", key_b}));
}

// Some servers list no slots for a shard whose primary was replaced.
TEST_F(ClusterRouter, SlotsThatTheMapLeavesOutGoToTheSuccessorAndStayWithIt) {
    const std::string map = shards_answer({shard_answer({}, {node_answer(one, {.health = "fail"}), node_answer(three)}),
                                           shard_answer({{8192, 16383}}, {node_answer(two)})});
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    fail(one);
    say(asked_for_map(), map);
    recorded_command again = get("GET", key_b);
    submit(again);
    ASSERT_TRUE(has_link(three));
    come_up(three);
    EXPECT_EQ(sent(three), encoded({"GET", key_b}));
    EXPECT_TRUE(router.is_up(slot_of(key_b)));
}

// A client that starts after the failover.
TEST_F(ClusterRouter, WhatIsNobodysByTheMapIsAskedOfAnyPrimaryAndThenKnown) {
    const std::string map = shards_answer({shard_answer({}, {node_answer(one, {.health = "fail"}), node_answer(three)}),
                                           shard_answer({{8192, 16383}}, {node_answer(two)})});
    router.start(now);
    settle();
    come_up(two);
    sent(two);
    say(two, map);
    recorded_command b = get("GET", key_b);
    submit(b);
    EXPECT_EQ(sent(two), encoded({"GET", key_b}));
    say(two, "-MOVED 3300 three:7003\r\n");
    come_up(three);
    EXPECT_EQ(sent(three), encoded({"GET", key_b}));
    say(asked_for_map(), map);
    EXPECT_TRUE(router.is_up(slot_of(key_b)));
}

TEST_F(ClusterRouter, AMemberThatIsNoPrimaryAnyMoreIsLeftAndNothingIsLost) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    recorded_command later = get("SET", key_b);
    submit(b);
    submit(later);
    sent(one);
    say(one, "-READONLY You can't write against a read only replica.\r\n");
    EXPECT_THAT(log, ElementsAre("SET!outcome_unknown", "down!" + name_of(errc::read_only) + ": b c"));
    EXPECT_EQ(b.life(), life::waiting);
    come_up(one, {.role = "replica"});
    say(asked_for_map(),
        shards_answer({shard_answer({{0, 16383}}, {node_answer(two), node_answer(one, {.role = "replica"})})}));
    EXPECT_EQ(sent(one), "") << "a replica gets nothing";
    EXPECT_EQ(sent(two), encoded({"GET", key_b}));
}

TEST_F(ClusterRouter, AScriptThatWasStoppedHalfWayIsUnknown) {
    start();
    recorded_command b = two_keys("b", key_b);
    submit(b);
    say(one, half_run);
    EXPECT_THAT(log, ElementsAre("b!outcome_unknown"));
    EXPECT_THAT(b.last.detail, HasSubstr("non local key"));
}

// Only the rest of the slot slows them down: the link is up.
TEST_F(ClusterRouter, ScriptsThatAreStoppedAgainAndAgainAreRepeatedAfterRests) {
    start_with_both();
    recorded_command b = two_keys("b", key_b);
    b.afterwards = [&](instant) { router.submit(b, now); };
    submit(b);
    std::chrono::nanoseconds longest{0};
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(sent(one), script_bytes("b", key_b));
        say(one, half_run);
        EXPECT_EQ(sent(one), "") << "not at once";
        const std::chrono::nanoseconds rest = router.deadline() - now;
        longest = std::max(longest, rest);
        pass(rest);
    }
    EXPECT_GE(longest, 100ms) << "the rests grow";
    EXPECT_LE(longest, 200ms);
    say(one, ":1\r\n");
    sent(one);
    pass(2s);
    say(one, half_run);
    EXPECT_LE(router.deadline() - now, 5ms) << "that was long ago";
}

TEST_F(ClusterRouter, OtherErrorsAreForTheOwner) {
    start();
    recorded_command b = get("GET", key_b);
    submit(b);
    say(one, "-OOM no\r\n");
    EXPECT_THAT(log, ElementsAre("GET=OOM no"));
}

TEST_F(ClusterRouter, RedirectsInACircleAreFollowedWithABound) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    int followed = 0;
    for (bool is_in_flight = true; is_in_flight;) {
        is_in_flight = false;
        for (const server_address& address : {one, two}) {
            const std::string asked = sent(address);
            std::string answers;
            if (asked.find(encoded({"GET", key_b})) != std::string::npos) {
                answers = address == one ? b_moved : "-MOVED 3300 one:7001\r\n";
                ASSERT_LT(++followed, 10);
                is_in_flight = true;
            }
            if (asked.find(shards_question) != std::string::npos) answers += "-LOADING it is\r\n";
            if (!answers.empty()) say(address, answers);
        }
    }
    EXPECT_EQ(followed, 6) << "the first, and five redirects";
    pass(10ms);
    EXPECT_THAT(sent(one) + sent(two), HasSubstr(encoded({"GET", key_b}))) << "after a rest it goes on";
}

TEST_F(ClusterRouter, ManyRedirectsAskForTheMapOnce) {
    start_with_both();
    std::vector<std::unique_ptr<recorded_command>> many;
    std::string moved;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(std::make_unique<recorded_command>(log, "GET"));
        many.back()->set_payload(encoded({"GET", key_b}));
        router.submit(*many.back(), now);
        moved += b_moved;
    }
    settle();
    sent(one);
    now += 1s;
    say(one, moved);
    std::string gets;
    for (int i = 0; i < 1000; ++i) gets += encoded({"GET", key_b});
    asked_for_map();
    EXPECT_FALSE(is_asked_for_map());
    EXPECT_EQ(sent(two), gets);
    EXPECT_THAT(log, ElementsAre("down!" + name_of(errc::moving) + ": b", "up two: b")) << "told once";
}

TEST_F(ClusterRouter, ALateRefusalOfAFormerOwnerDoesNotPutTheMapBack) {
    start_with_both();
    recorded_command first = get("GET", key_b);
    recorded_command late = get("SET", key_b);
    submit(first);
    submit(late);
    say(one, b_moved);
    sent(two);
    say(one, "-MOVED 3300 three:7003\r\n");
    EXPECT_FALSE(has_link(three));
    EXPECT_EQ(sent(two), encoded({"SET", key_b}));
}

}  // namespace
}  // namespace holdfast::redis::cluster_router_test
