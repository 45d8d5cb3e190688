// Commands that cannot be sent yet: their order, their end, and where they go when the map changes.
#include <gmock/gmock.h>

#include <set>

#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::redis::cluster_queue_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using life = command::state;

std::string one_and_its_replica() {
    return shards_answer({shard_answer({{0, 16383}}, {node_answer(one), node_answer(three, {.role = "replica"})})});
}

struct answers {
    std::string refusal;  // to the command
    std::string map;      // the answer to the question that follows
};

class ClusterQueue : public testing::cluster_fixture {
protected:
    /// `one` refuses the command that contains this word, each time.
    void refuse_until_deadline(const recorded_command& request, const std::string& word, const answers& said) {
        while (now < request.deadline()) {
            const std::string asked = sent(one);
            const auto step = asked.find(word);
            const auto map = asked.find(shards_question);
            if (map < step) say(one, said.map);
            if (step != asked.npos) say(one, said.refusal);
            if (map != asked.npos && map > step) say(one, said.map);
            pass(std::min<std::chrono::nanoseconds>(router.deadline() - now, request.deadline() - now));
        }
    }
};

TEST_F(ClusterQueue, CommandsOfSeveralKeysKeepTheirOrderWhileTheirSlotRests) {
    start_with_both();
    recorded_command first = two_keys("first", key_b);
    recorded_command second = two_keys("second", key_b);
    recorded_command third = two_keys("third", key_b);
    recorded_command elsewhere = two_keys("elsewhere", key_a);
    submit(first);
    submit(second);
    sent(one);
    say(one, try_again);
    submit(third);
    EXPECT_EQ(sent(one), "") << "it does not overtake";
    say(one, try_again);  // answers the second
    submit(elsewhere);
    EXPECT_EQ(sent(two), script_bytes("elsewhere", key_a)) << "another slot's does";
    pass(5ms);
    EXPECT_EQ(sent(one), script_bytes("first", key_b) + script_bytes("second", key_b) + script_bytes("third", key_b));
}

TEST_F(ClusterQueue, AskDoesNotLetACommandOfSeveralKeysOvertake) {
    start_with_both();
    recorded_command first = two_keys("first", key_b);
    recorded_command second = two_keys("second", key_b);
    submit(first);
    submit(second);
    sent(one);
    say(one, try_again + "-ASK 3300 two:7002\r\n");
    EXPECT_EQ(sent(two), "");
    pass(5ms);
    EXPECT_EQ(sent(one), script_bytes("first", key_b) + script_bytes("second", key_b));
}

TEST_F(ClusterQueue, ACommandOfOneKeyDoesNotWaitForThem) {
    start_with_both();
    recorded_command poll = two_keys("poll", key_b);
    recorded_command renewal = get("renew", key_b);
    submit(poll);
    sent(one);
    say(one, try_again);
    submit(renewal);
    EXPECT_EQ(sent(one), encoded({"renew", key_b}));
}

// Found by the simulator: polls were refused before it each time, so it never followed its ASK.
TEST_F(ClusterQueue, ARenewalOfSeveralKeysDoesNotWaitForThemEither) {
    start_with_both();
    recorded_command poll = two_keys("poll", key_b);
    recorded_command renewal = two_keys("renewal", key_b);
    renewal.pass_others();
    submit(poll);
    submit(renewal);
    sent(one);
    say(one, try_again + "-ASK 3300 two:7002\r\n");
    EXPECT_EQ(sent(two), encoded({"ASKING"}) + script_bytes("renewal", key_b));
    say(two, "+OK\r\n+renewed\r\n");
    submit(renewal);
    EXPECT_EQ(sent(one), script_bytes("renewal", key_b));
}

TEST_F(ClusterQueue, WhatRestsOrWaitsForALinkCanBeWithdrawn) {
    start();
    recorded_command rests = two_keys("rests", key_b);
    recorded_command unlinked = get("unlinked", key_a);
    recorded_command asks = get("asks", key_b);
    recorded_command handed = get("handed", key_b);
    submit(rests);
    say(one, try_again);
    submit(unlinked);
    submit(asks);
    say(one, "-ASK 3300 three:7003\r\n");
    router.submit(handed, now);  // in the queue of its session, not written
    sent(one);
    for (recorded_command* each : {&rests, &unlinked, &asks, &handed}) {
        ASSERT_EQ(each->life(), life::waiting);
        EXPECT_TRUE(router.withdraw(*each));
        EXPECT_EQ(each->life(), life::idle);
        EXPECT_FALSE(router.withdraw(*each)) << "once";
    }
    pass(1s);
    come_up(two);
    come_up(three);
    EXPECT_EQ(sent(one).find("rests"), std::string::npos);
    EXPECT_EQ(sent(two).find("unlinked"), std::string::npos);
    EXPECT_EQ(sent(three).find("asks"), std::string::npos);
    EXPECT_THAT(log, ElementsAre("up two: a"));
}

// The undo of its owner may have run: it must not run after that.
TEST_F(ClusterQueue, WhatIsAbandonedIsNotSentElsewhere) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    EXPECT_FALSE(router.withdraw(b));
    b.abandon();
    say(one, "-MOVED 3300 two:7002\r\n");
    EXPECT_EQ(sent(two), "");
    EXPECT_THAT(log, ElementsAre("GET=MOVED 3300 two:7002"));
    submit(b);
    say(one, "-MOVED 3300 two:7002\r\n");
    EXPECT_EQ(sent(two), encoded({"GET", key_b})) << "used anew it is as any other";
}

TEST_F(ClusterQueue, ADeadlineIsToldWithItsReason) {
    start();
    recorded_command moving = two_keys("moving", key_b);
    recorded_command unreachable = get("unreachable", key_a);
    unreachable.give_up_at(now + 3s);
    submit(unreachable);
    fail(two, errc::connection_refused);
    say(asked_for_map(), testing::two_halves());
    moving.give_up_at(unreachable.deadline());
    submit(moving);
    refuse_until_deadline(moving, "moving", {.refusal = try_again, .map = testing::two_halves()});
    EXPECT_EQ(moving.last.code, errc::moving);
    EXPECT_EQ(unreachable.last.code, errc::connection_refused);
}

TEST_F(ClusterQueue, ASlotThatNobodyOwnsIsToldAsSuch) {
    const std::string half_a_map = shards_answer({shard_answer({{0, 8191}}, {node_answer(one)})});
    start(half_a_map);
    recorded_command a = get("GET", key_a);
    a.give_up_at(now + 1s);
    submit(a);
    refuse_until_deadline(a, "GET", {.refusal = "-CLUSTERDOWN Hash slot not served\r\n", .map = half_a_map});
    EXPECT_EQ(a.last.code, errc::cluster_down);
    EXPECT_THAT(a.last.detail, HasSubstr("Hash slot not served"));
}

TEST_F(ClusterQueue, OneThatWaitsForTheFirstLinkIsToldAtItsDeadlineWhatEachSaid) {
    recorded_command b = get("GET", key_b);
    b.wait_for_first_link();
    b.give_up_at(now + 1s);
    router.start(now);
    submit(b);
    fail(one, errc::connection_refused);
    fail(two, errc::host_not_found);
    EXPECT_THAT(log, IsEmpty());
    now = b.deadline();
    router.on_timer(now);
    EXPECT_THAT(log, ElementsAre("GET!" + name_of(errc::host_not_found)));
    EXPECT_THAT(b.last.detail, HasSubstr("the test says so; the test says so"));
}

TEST_F(ClusterQueue, OneThatWaitsForTheFirstLinkIsToldAtOnceIfAllSeedsRefuseUsForGood) {
    recorded_command b = get("GET", key_b);
    b.wait_for_first_link();
    router.start(now);
    submit(b);
    fail(one, errc::wrong_password);
    EXPECT_THAT(log, IsEmpty());
    fail(two, errc::wrong_password);
    EXPECT_THAT(log, ElementsAre("GET!" + name_of(errc::wrong_password)));
}

TEST_F(ClusterQueue, IfNoSeedCanBeReachedItIsToldAtOnceWhatEachSaid) {
    recorded_command b = get("GET", key_b);
    router.start(now);
    submit(b);
    fail(one, errc::connection_refused);
    EXPECT_THAT(log, IsEmpty()) << "the other may be there";
    fail(two, errc::host_not_found);
    EXPECT_THAT(log, ElementsAre("GET!" + name_of(errc::host_not_found)));
    EXPECT_THAT(b.last.detail, HasSubstr("the test says so; the test says so"));
    submit(b);
    EXPECT_EQ(b.life(), life::waiting) << "they go on trying";
    come_up(two);
    say(two, all_at(two));
    EXPECT_EQ(sent(two), shards_question + encoded({"GET", key_b}));
}

TEST_F(ClusterQueue, AMapThatIsRefusedForGoodIsToldAtOnce) {
    recorded_command b = get("GET", key_b);
    router.start(now);
    submit(b);
    come_up(one);
    say(one, "-NOPERM this user has no permissions to run the 'cluster|shards' command\r\n");
    EXPECT_EQ(b.last.code, errc::no_permission);
}

TEST_F(ClusterQueue, AMemberThatRefusesUsForGoodIsToldToThoseWhoNeedIt) {
    start();
    recorded_command a = get("GET", key_a);
    recorded_command b = get("SET", key_b);
    submit(a);
    submit(b);
    fail(two, errc::wrong_password);
    EXPECT_THAT(log, ElementsAre("GET!" + name_of(errc::wrong_password)));
    EXPECT_EQ(b.life(), life::written);
}

TEST_F(ClusterQueue, WhatALostLinkDidNotTakeGoesToTheNextOwner) {
    start_with_both();
    recorded_command written = get("written", key_b);
    recorded_command unwritten = get("unwritten", key_b);
    submit(written);
    router.submit(unwritten, now);
    fail(one);
    EXPECT_THAT(log, ElementsAre("written!outcome_unknown", "down!unreachable: b c"));
    EXPECT_EQ(unwritten.life(), life::waiting);
    sent(two);
    say(asked_for_map(), all_at(two));
    EXPECT_EQ(sent(two), encoded({"unwritten", key_b}));
    EXPECT_THAT(log, ElementsAre("written!outcome_unknown", "down!unreachable: b c", "up two: b c"));
    EXPECT_THAT(members.closed, ElementsAre("one")) << "nobody needs it any more";
}

TEST_F(ClusterQueue, TheLossOfOneLinkIsNothingToTheOthers) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    fail(two);
    EXPECT_THAT(log, ElementsAre("down!unreachable: a"));
    EXPECT_EQ(b.life(), life::written);
    EXPECT_TRUE(router.is_up(slot_of(key_b)));
}

TEST_F(ClusterQueue, AMapThatCoversNothingIsThrownAway) {
    start_with_both();
    fail(one);
    const server_address asked = asked_for_map();
    say(asked, shards_answer({shard_answer({}, {node_answer(two)})}));
    EXPECT_EQ(*router.map()->owner(slot_of(key_b)), one);
    asked_for_map();
}

TEST_F(ClusterQueue, TheMapIsReadAgainEveryTenSecondsWhileThereIsALink) {
    start();
    pass(9s);
    EXPECT_FALSE(is_asked_for_map());
    pass(1s);
    ASSERT_TRUE(is_asked_for_map());
    EXPECT_EQ(asked_for_map(), one);
    say(one, testing::two_halves());
    EXPECT_THAT(log, IsEmpty()) << "nothing has changed";
}

TEST_F(ClusterQueue, WithoutALinkMembersAndSeedsAreDialledThreeAtATime) {
    const auto replica = [](const server_address& address) { return node_answer(address, {.role = "replica"}); };
    start(shards_answer({shard_answer(
        {{0, 16383}}, {node_answer(one), replica(three), replica(four), replica({"five", 1}), replica({"six", 1})})}));
    recorded_command b = get("GET", key_b);
    members.opened.clear();
    submit(b);
    fail(one);
    pass(1s);
    EXPECT_LE(members.opened.size(), 3U);
    ASSERT_TRUE(has_link(three));
    come_up(three, {.role = "replica"});
    EXPECT_EQ(asked_for_map(), three) << "a replica knows as well";
    say(three, all_at(four));
    come_up(four);
    EXPECT_EQ(*router.map()->owner(slot_of(key_b)), four);
}

TEST_F(ClusterQueue, AnUnreachableMemberIsNotTriedForEver) {
    std::vector<server_address> replicas;
    std::vector<std::string> nodes{node_answer(one)};
    for (std::uint16_t i = 0; i < 20; ++i) {
        replicas.push_back({"replica", static_cast<std::uint16_t>(8000 + i)});
        nodes.push_back(node_answer(replicas.back(), {.role = "replica"}));
    }
    start(shards_answer({shard_answer({{0, 16383}}, nodes)}));
    fail(one);
    std::set<server_address> tried;
    for (int i = 0; i < 200; ++i) {
        pass(100ms);
        EXPECT_LE(members.links.size(), 4U) << "three, and the owner";
        for (const server_address& each : replicas) {
            if (!has_link(each)) continue;
            tried.insert(each);
            fail(each, errc::connection_refused);
        }
    }
    EXPECT_EQ(tried.size(), replicas.size()) << "all have their turn";
    ASSERT_TRUE(has_link(one));
    come_up(one);
    asked_for_map();
}

TEST_F(ClusterQueue, RedirectsToEverMoreAddressesDoNotKeepAllLinks) {
    start_with_both();
    pass(10s);
    ASSERT_EQ(asked_for_map(), two);  // which does not answer
    recorded_command b = get("GET", key_b);
    submit(b);
    sent(one);
    for (std::uint16_t i = 0; i < 40; ++i) {
        const server_address next{"next", static_cast<std::uint16_t>(8000 + i)};
        say(one, "-ASK 3300 " + to_text(next) + "\r\n");
        ASSERT_TRUE(has_link(next));
        come_up(next);
        say(next, "+OK\r\n-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
        for (int k = 0; k < 300 && sent(one).find(encoded({"GET", key_b})) == std::string::npos; ++k) pass(1ms);
        EXPECT_LE(members.links.size(), 20U);
    }
}

// A promoted replica keeps its links, whose facts still say replica.
TEST_F(ClusterQueue, APromotedReplicaIsGreetedAnewAndServes) {
    const std::string before = one_and_its_replica();
    start(before);
    fail(one);
    pass(1s);
    come_up(three, {.role = "replica"});
    ASSERT_EQ(asked_for_map(), three);
    say(three, before);
    recorded_command b = get("GET", key_b);
    submit(b);
    fail(one);
    ASSERT_EQ(asked_for_map(), three);
    sent(three);
    log.clear();
    say(three, all_at(three));
    ASSERT_FALSE(link(three).subject.up());
    come_up(three);
    EXPECT_THAT(sent(three), HasSubstr(encoded({"GET", key_b})));
    EXPECT_THAT(log, ElementsAre("up three: a b c"));
}

TEST_F(ClusterQueue, MovedToAPromotedReplicaGreetsItAnew) {
    start(one_and_its_replica());
    fail(one);
    pass(1s);
    come_up(three, {.role = "replica"});
    come_up(one);
    recorded_command b = get("GET", key_b);
    submit(b);
    say(one, "-MOVED 3300 three:7003\r\n");
    EXPECT_FALSE(link(three).subject.up());
    come_up(three);
    EXPECT_THAT(sent(three), HasSubstr(encoded({"GET", key_b})));
}

TEST_F(ClusterQueue, AskToAMemberThatWasAReplicaRests) {
    start(one_and_its_replica());
    fail(one);
    pass(1s);
    come_up(three, {.role = "replica"});
    come_up(one);
    recorded_command b = get("GET", key_b);
    submit(b);
    ASSERT_THAT(sent(one), HasSubstr(encoded({"GET", key_b})));
    say(one, "-ASK 3300 three:7003\r\n");
    EXPECT_EQ(sent(one), "");
    pass(5ms);
    EXPECT_EQ(sent(one), encoded({"GET", key_b}));
}

TEST_F(ClusterQueue, ClosingEndsEverythingAndTellsNothingLater) {
    start();
    recorded_command written = get("written", key_b);
    recorded_command waits = get("waits", key_a);
    submit(written);
    submit(waits);
    router.close(now);
    EXPECT_THAT(log, ElementsAre("written!outcome_unknown", "down!client_closed: b c", "waits!client_closed"));
    EXPECT_THAT(members.links, IsEmpty());
    EXPECT_EQ(router.deadline(), never);
    router.submit(waits, now);
    EXPECT_EQ(log.back(), "waits!client_closed");
}

}  // namespace
}  // namespace holdfast::redis::cluster_queue_test
