// Which members of a Cluster are trusted: one that took over, or may have lost data, is not trusted at once.
#include "unit/engine/cluster_node_fixture.hpp"

namespace holdfast::engine::cluster_trust_test {
namespace {

using namespace std::chrono_literals;
using namespace redis::testing;
using testing::cluster_node_fixture;
using ::testing::HasSubstr;
using testing::keys_for;
using testing::list;
using testing::long_ago_s;
using testing::map_of;
using testing::mistrusted_for;
using ::testing::Not;
using testing::recorded_request;

class ClusterTrust : public cluster_node_fixture {
protected:
    ClusterTrust() : cluster_node_fixture(0) {}
};

TEST_F(ClusterTrust, OneThatRunsForLongIsBelievedAndOneThatJustStartedIsNot) {
    start();
    EXPECT_LE(mistrusted("a"), 0s);
    EXPECT_LE(mistrusted("b"), 0s);
    break_link(two, long_ago_s);
    EXPECT_LE(mistrusted("a"), 0s) << "only its link had broken";
    fail(two);
    pass(30ms);
    come_up(two, {.run_id = "another", .uptime_s = long_ago_s});
    EXPECT_EQ(mistrusted("a"), mistrusted_for) << "another run than before";
    EXPECT_LE(mistrusted("b"), 0s);
    ask(first, "a");
    EXPECT_THAT(sent(two), Not(HasSubstr("EVALSHA")));
    ask(second, "b");
    EXPECT_THAT(sent(one), HasSubstr("EVALSHA"));
}

// Some servers list no slots for a shard whose primary was replaced.
TEST_F(ClusterTrust, AReplicaThatTookOverIsMistrustedAlsoIfTheMapLeavesOutItsSlots) {
    const std::string without_a = shards_answer({shard_answer({{0, 8191}}, {redis::testing::node_answer(one)}),
                                                 shard_answer({}, {redis::testing::node_answer(three)})});
    start(map_of(one, two));
    ask(first, "a");
    sent(two);
    fail(two);
    tell_map(without_a);
    sent(one);
    say(one, "-MOVED 15495 three:7003\r\n");
    come_up(three, {.uptime_s = long_ago_s});
    tell_map(without_a);
    fail(one);
    EXPECT_GT(mistrusted("a"), 0s) << "it is asked, whoever owns the slot";
}

TEST_F(ClusterTrust, AReplicaThatTookOverIsMistrustedHoweverLongItRuns) {
    start(map_of(one, two));
    ask(first, "a");
    sent(two);
    fail(two);
    tell_map(map_of(one, three));
    come_up(three, {.uptime_s = long_ago_s});
    EXPECT_GT(mistrusted("a"), mistrusted_for - 1s);
    EXPECT_THAT(sent(three), Not(HasSubstr("EVALSHA"))) << "what was asked of the old one, too, has to wait";
    pass(mistrusted_for);
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

// Its cluster bus is cut off, but it answers clients with an old map.
TEST_F(ClusterTrust, AMemberThatHasNotHeardOfAFailoverDoesNotKeepTheNewPrimaryMistrusted) {
    const std::string old_map = map_of(one, two), new_map = map_of(one, three);
    start(old_map);
    fail(two);
    tell_map(new_map);
    ask(first, "a");
    come_up(three, {.uptime_s = long_ago_s});
    confirm(three, channel("a"));
    EXPECT_GT(mistrusted("a"), mistrusted_for - 1s);
    int old_maps = 0;
    for (int i = 0; i < 20; ++i) {
        if (!is_asked_for_map()) pass(10s);
        const redis::server_address asked = asked_for_map();
        if (asked == one) ++old_maps;
        say(asked, asked == one ? old_map : new_map);
        if (has_link(two)) fail(two);
        for (const auto& address : {one, three}) {
            if (sent(address).find("PING") != std::string::npos) say(address, "+PONG\r\n");
        }
    }
    EXPECT_GE(old_maps, 5);
    EXPECT_LE(mistrusted("a"), 0s);
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

TEST_F(ClusterTrust, APrimaryIsReplacedWhenItSaysSoItself) {
    start(map_of(one, two));
    for (int i = 0; i < 2; ++i) {
        pass(10s);
        const redis::server_address asked = asked_for_map();
        say(asked, map_of(one, asked == two ? three : two));
    }
    EXPECT_FALSE(is_up("a"));
    EXPECT_EQ(mistrusted("a"), mistrusted_for);
}

TEST_F(ClusterTrust, APrimaryIsReplacedWhenItsSuccessorServes) {
    start(map_of(one, two));
    for (int i = 0; i < 2 && !has_link(three); ++i) {
        pass(10s);
        const redis::server_address asked = asked_for_map();
        say(asked, map_of(one, asked == one ? three : two));
    }
    ASSERT_TRUE(has_link(three));
    EXPECT_TRUE(is_up("a")) << "it may be an old map";
    come_up(three, {.uptime_s = long_ago_s});
    say(asked_for_map(), map_of(one, three));
    EXPECT_GT(mistrusted("a"), mistrusted_for - 1s);
    ask(first, "a");
    pass(mistrusted_for);
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

TEST_F(ClusterTrust, APrimaryThatWasKnownWithoutSlotsIsBelievedWhenItGetsSome) {
    start(map_of(one, two, {shard_answer({}, {redis::testing::node_answer(three)})}));
    tell_map(map_of(one, three, {shard_answer({}, {redis::testing::node_answer(two)})}));
    ask(first, "a");
    come_up(three, {.uptime_s = long_ago_s});
    EXPECT_LE(mistrusted("a"), 0s);
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

TEST_F(ClusterTrust, AMemberThatMovedSaysOfIsMistrustedIfNoMapHadIt) {
    start();
    ask(first, "a");
    sent(two);
    confirm(two, channel("a"));
    say(two, "-MOVED 15495 four:7004\r\n");
    come_up(four, {.uptime_s = long_ago_s});
    EXPECT_GT(mistrusted("a"), mistrusted_for - 1s);
    EXPECT_THAT(sent(four), Not(HasSubstr("EVALSHA")));
}

// The facts of its greeting are old by then.
TEST_F(ClusterTrust, ALinkThatGetsASlotIsNotJudgedAnew) {
    start();
    break_link(one, 10);
    EXPECT_EQ(mistrusted("b"), 51010ms) << "it may have been up for no longer than 8.99 s";
    pass(60s);
    say(asked_for_map(), map_of(one, one));
    EXPECT_LE(mistrusted("a"), 0s);
}

// The user may not run INFO: its runs cannot be distinguished, and every link may be to a new one.
TEST_F(ClusterTrust, AMemberThatSaysNothingOfItselfIsJudgedAtEveryLinkAndNotAtEverySlot) {
    driven().start(now);
    settle();
    const fake_server_facts silent{.run_id = "", .uptime_s = -1};
    come_up(one, silent);
    say(one, two_halves());
    EXPECT_EQ(mistrusted("b"), mistrusted_for);
    pass(mistrusted_for);
    say(asked_for_map(), map_of(one, one));
    EXPECT_LE(mistrusted("a"), 0s) << "the slots have come by a link that is known";
    EXPECT_THAT(seen, ::testing::ElementsAre("up one"));
    fail(one);
    pass(30ms);
    come_up(one, silent);
    EXPECT_EQ(mistrusted("a"), mistrusted_for);
}

}  // namespace
}  // namespace holdfast::engine::cluster_trust_test
