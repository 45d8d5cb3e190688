// What happens to a member of a Cluster happens to the locks that it has, and whoever took over is not believed at
// once.
#include <gmock/gmock.h>

#include "engine/cluster_node.hpp"
#include "unit/cluster_driver.hpp"
#include "unit/engine_fixture.hpp"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using namespace redis::testing;
using ::testing::HasSubstr;
using testing::keys_for;
using testing::list;
using ::testing::Not;
using testing::recorded_request;

constexpr milliseconds mistrusted_for = 60s;
constexpr int long_ago_s = 1000;

redis::server_settings two_seeds() {
    return redis::parse_url("redis+cluster://one:7001,two:7002");
}

std::string map_of(const redis::network_place& lower, const redis::network_place& upper,
                   const std::vector<std::string>& others = {}) {
    std::vector<std::string> shards{shard_answer({{0, 8191}}, {redis::testing::node_answer(lower)}),
                                    shard_answer({{8192, 16383}}, {redis::testing::node_answer(upper)})};
    shards.insert(shards.end(), others.begin(), others.end());
    return shards_answer(shards);
}

class played_host final : public cluster_host {
public:
    played_host(played_members& members, const instant& clock, std::vector<std::string>& seen)
        : members_(members), clock_(clock), seen_(seen) {}

private:
    redis::session& open(const redis::server_settings& member, redis::session_listener& told) override {
        return members_.open(member, told);
    }
    void close(redis::session& link) override { members_.close(link); }
    instant now() const override { return clock_; }
    void on_member_up(const redis::network_place& which, const redis::server_facts&) override {
        seen_.push_back("up " + which.host);
    }
    void on_member_down(const failure&) override { seen_.emplace_back("down"); }
    void confirm(redis::command& request, const redis::network_place* at, redis::acknowledgement) override {
        redis::routing::set_waiting(request);
        seen_.push_back("confirm at " + (at == nullptr ? "nobody" : at->host));
    }
    bool withdraw_confirmation(redis::command& request) override {
        const bool is_it =
            request.life() == redis::command::state::waiting && !seen_.empty() && seen_.back().starts_with("confirm");
        if (is_it) redis::routing::set_idle(request);
        return is_it;
    }

    played_members& members_;
    const instant& clock_;
    std::vector<std::string>& seen_;
};

/// Member `one` has the lock b, `two` the lock a. The Cluster is the first of the nodes, the others are single servers.
class cluster_node_fixture : public played_cluster {
protected:
    explicit cluster_node_fixture(std::size_t single_servers) : singles(single_servers) {
        node.attach(subject.node(0));
        for (std::size_t i = 0; i < singles.size(); ++i) singles[i].belong_to(subject, i + 1);
    }

    redis::cluster_router& driven() override { return node.router(); }

    void start(const std::string& map = two_halves()) {
        driven().start(now);
        settle();
        come_up(one, {.uptime_s = long_ago_s});
        ASSERT_EQ(sent(one), shards_question);
        say(one, map);
        come_up(two, {.uptime_s = long_ago_s});
        sent(two);
    }
    /// Its link breaks, and there is another to the same run; the server is asked to drop the old one.
    void break_link(const redis::network_place& place, int uptime_s) {
        fail(place);
        pass(30ms);
        come_up(place, {.client_id = 8, .uptime_s = uptime_s});
        EXPECT_THAT(sent(place), HasSubstr("KILL"));
        say(place, ":1\r\n");
    }
    void ask(recorded_request& request, const std::string& name) {
        subject.acquire(request, {.keys = keys_for(name), .lease = 30s, .limit = {waiting::in_line, now + 1h}}, now);
        settle();
    }
    void acknowledged_acquire(recorded_request& request, const std::string& name) {
        subject.acquire(request,
                        {.keys = keys_for(name),
                         .lease = 30s,
                         .limit = {waiting::in_line, now + 1h},
                         .acknowledged_by = packed_acknowledgement({1, 100ms})},
                        now);
        settle();
    }
    std::string channel(const std::string& name) { return scripts::channel_of(*keys_for(name), subject.id().text()); }
    void wait_in_line(recorded_request& request, const std::string& name, const redis::network_place& at) {
        ask(request, name);
        sent(at);
        confirm(at, channel(name));
        say(at, list({"2", "900", "other", "77", "0", "41"}));
    }
    /// A fresh map, as soon as somebody is asked for one.
    void tell_map(const std::string& map) {
        pass(10s);
        say(asked_for_map(), map);
    }
    bool is_up(const std::string& name) { return node.link_is_up(*keys_for(name)); }
    /// For how long it is still mistrusted; zero or less: it is believed.
    std::chrono::nanoseconds mistrusted(const std::string& name) { return node.trusted_from(*keys_for(name)) - now; }

    std::vector<node_link> nodes() {
        std::vector<node_link> all{{&node, "redis+cluster://h", channels::one_per_tag}};
        for (auto& each : singles) all.push_back({&each, "redis://h"});
        return all;
    }

    std::vector<testing::played_server> singles;
    std::vector<std::string> seen;
    played_host host{members, now, seen};
    cluster_node node{two_seeds(), host, mistrusted_for, 42};
    testing::counting_random random;
    testing::silent_observer nobody;
    engine subject{{.max_depth = 10}, nodes(), random, nobody};
    recorded_request first;
    recorded_request second;
};

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
    wait_in_line(first, "a", two);
    wait_in_line(second, "b", one);
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

TEST_F(ClusterNode, WhoMayNotListenIsRefusedAndNobodyElse) {
    start();
    ask(first, "a");
    wait_in_line(second, "b", one);
    say(two, "-NOPERM no permissions to access a channel\r\n");
    EXPECT_EQ(first.refusal_code, errc::no_permission);
    EXPECT_FALSE(second.refusal_code);
}

TEST_F(ClusterNode, OneThatRunsForLongIsBelievedAndOneThatJustStartedIsNot) {
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

// Some servers name no slots for a shard whose primary was replaced.
TEST_F(ClusterNode, AReplicaThatTookOverIsMistrustedAlsoIfTheMapLeavesOutItsSlots) {
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

TEST_F(ClusterNode, AReplicaThatTookOverIsMistrustedHoweverLongItRuns) {
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

// Its bus is cut off, but it answers us: for ever what was so before.
TEST_F(ClusterNode, AMemberThatHasNotHeardOfAFailoverDoesNotKeepTheNewPrimaryMistrusted) {
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
        const redis::network_place asked = asked_for_map();
        if (asked == one) ++old_maps;
        say(asked, asked == one ? old_map : new_map);
        if (has_link(two)) fail(two);
        for (const auto& place : {one, three}) {
            if (sent(place).find("PING") != std::string::npos) say(place, "+PONG\r\n");
        }
    }
    EXPECT_GE(old_maps, 5);
    EXPECT_LE(mistrusted("a"), 0s);
    subject.on_timer(now);
    settle();
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

TEST_F(ClusterNode, APrimaryThatWasReplacedIsSoWhenItSaysItItself) {
    start(map_of(one, two));
    for (int i = 0; i < 2; ++i) {
        pass(10s);
        const redis::network_place asked = asked_for_map();
        say(asked, map_of(one, asked == two ? three : two));
    }
    EXPECT_FALSE(is_up("a"));
    EXPECT_EQ(mistrusted("a"), mistrusted_for);
}

TEST_F(ClusterNode, APrimaryThatWasReplacedIsSoWhenWhoeverReplacedItServes) {
    start(map_of(one, two));
    for (int i = 0; i < 2 && !has_link(three); ++i) {
        pass(10s);
        const redis::network_place asked = asked_for_map();
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

TEST_F(ClusterNode, APrimaryThatWasKnownWithoutSlotsIsBelievedWhenItGetsSome) {
    start(map_of(one, two, {shard_answer({}, {redis::testing::node_answer(three)})}));
    tell_map(map_of(one, three, {shard_answer({}, {redis::testing::node_answer(two)})}));
    ask(first, "a");
    come_up(three, {.uptime_s = long_ago_s});
    EXPECT_LE(mistrusted("a"), 0s);
    EXPECT_THAT(sent(three), HasSubstr("EVALSHA"));
}

TEST_F(ClusterNode, AMemberThatMovedSaysOfIsMistrustedIfNoMapHadIt) {
    start();
    ask(first, "a");
    sent(two);
    confirm(two, channel("a"));
    say(two, "-MOVED 15495 four:7004\r\n");
    come_up(four, {.uptime_s = long_ago_s});
    EXPECT_GT(mistrusted("a"), mistrusted_for - 1s);
    EXPECT_THAT(sent(four), Not(HasSubstr("EVALSHA")));
}

// What its first greeting said is old by then.
TEST_F(ClusterNode, ALinkThatGetsASlotIsNotJudgedAnew) {
    start();
    break_link(one, 10);
    EXPECT_EQ(mistrusted("b"), 50s);
    pass(60s);
    say(asked_for_map(), map_of(one, one));
    EXPECT_LE(mistrusted("a"), 0s);
}

// We may not ask for INFO there: nothing tells its runs apart, and every link may be to a new one.
TEST_F(ClusterNode, AMemberThatSaysNothingOfItselfIsJudgedAtEveryLinkAndNotAtEverySlot) {
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
TEST_F(ClusterNode, ARenewalOfAReadWriteLockLivesThroughTheMomentInWhichItsKeysAreAtTwoPlaces) {
    const std::string try_again = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
    start();
    const acquire_terms terms{.keys = keys_for("a"),
                              .kind = lock_kind::read_write,
                              .want = access::shared,
                              .lease = 30s,
                              .limit = {waiting::in_line, now + 1h}};
    subject.acquire(first, terms, now);
    settle();
    confirm(two, channel("a"));
    say(two, list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    sent(two);
    testing::recorded_answer renewed;
    subject.renew(*first.held, renewed, now);
    settle();
    EXPECT_THAT(sent(two), HasSubstr(scripts::find("rw/renew").sha1));
    say(two, try_again);
    const std::string alone = sent(two);
    EXPECT_THAT(alone, HasSubstr(scripts::find("rw/renew_alone").sha1));
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

}  // namespace
}  // namespace holdfast::engine
