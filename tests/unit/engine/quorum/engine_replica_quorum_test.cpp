// Votes that count only when the replicas of their server have them, where three servers vote.
#include "unit/engine/quorum/quorum_engine_fixture.hpp"

namespace holdfast::engine::engine_replica_quorum_test {
namespace {

using namespace testing;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EngineReplicaQuorum : public quorum_engine_fixture {
protected:
    /// The lock is asked for at all three servers.
    void begin(waiting wait = waiting::in_queue) {
        acquire_terms wanted = terms(wait);
        wanted.options.replicas = 1;
        wanted.options.replica_timeout_ms = 100;
        begin_with(wanted);
    }
    void begin_reading() {
        acquire_terms wanted = terms();
        wanted.options.kind = lock_kind::read_write;
        wanted.want = access::shared;
        wanted.options.replicas = 1;
        wanted.options.replica_timeout_ms = 100;
        begin_with(wanted);
    }
    void begin_with(const acquire_terms& wanted) {
        subject.acquire(first, wanted, now);
        for (std::size_t i = 0; i < servers.size(); ++i) {
            const question asked = ask(i);
            id = asked.arguments.at(0);
            proposal = asked.arguments.at(8);
        }
    }
    void grant_confirmed(std::size_t server, const std::string& token) {
        grant(server, token);
        acknowledge(server, 1);
    }
    void acknowledge(std::size_t server, int replicas) { servers.at(server).acknowledge(replicas, now); }
    void expect_undone(std::size_t server) {
        const question undo = ask(server);
        EXPECT_EQ(undo.script, "mutex/release");
        EXPECT_EQ(undo.arguments.at(1), "0") << "whatever grant it is";
    }
    hold& reading() {
        begin_reading();
        for (std::size_t i = 0; i < servers.size(); ++i) grant_confirmed(i, "42");
        return *first.held;
    }
    void ask_for_upgrade(hold& held) {
        subject.upgrade(held, upgrade, {}, now);
        for (std::size_t i = 0; i < servers.size(); ++i) EXPECT_EQ(ask(i).script, "rw/acquire");
    }

    recorded_request upgrade;
};

TEST_F(EngineReplicaQuorum, ANodeHoldCountsWhenItsServersReplicasHaveIt) {
    begin();
    grant_confirmed(0, proposal);
    grant(1, proposal);
    EXPECT_EQ(first.held, nullptr);
    acknowledge(1, 1);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineReplicaQuorum, AnUpgradeThatTooFewHaveDoesNotCountAndIsTakenBack) {
    ask_for_upgrade(reading());
    answer(0, {"1", "51"});
    acknowledge(0, 0);
    EXPECT_EQ(ask(0).script, "rw/cancel");
    answer(0, {"1", "b", "51"});
    const question undo = ask(0);
    EXPECT_EQ(undo.script, "rw/release");
    EXPECT_EQ(undo.arguments.at(3), "51");
    EXPECT_EQ(undo.arguments.at(4), "r") << "what is left to it";
    answer(1, {"1", "51"});
    acknowledge(1, 1);
    EXPECT_EQ(upgrade.held, nullptr) << "one of three";
    answer(2, {"1", "51"});
    acknowledge(2, 1);
    EXPECT_NE(upgrade.held, nullptr);
}

TEST_F(EngineReplicaQuorum, ARaisedTokenCountsWhenItIsConfirmed) {
    begin();
    grant_confirmed(0, "1700000000000005");
    grant_confirmed(1, "1700000000000009");
    EXPECT_EQ(ask(0).script, "mutex/raise");
    answer(0, {"1"});
    EXPECT_EQ(first.held, nullptr);
    const question asked = servers.at(0).confirmations.at(0).asked;
    EXPECT_EQ(asked.script, "mutex/confirm");
    EXPECT_EQ(asked.arguments.at(1), "1700000000000009") << "the greater one: who took over may lack it";
    acknowledge(0, 1);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 1700000000000009U);
}

// The server knows it by the greater token already, and would leave it alone if the other one was named.
TEST_F(EngineReplicaQuorum, AfterARaisedTokenThatTooFewHaveTheNodeHoldIsUndoneWhateverItsTokenIs) {
    begin();
    grant_confirmed(0, "1700000000000005");
    grant_confirmed(1, "1700000000000009");
    EXPECT_EQ(ask(0).script, "mutex/raise");
    answer(0, {"1"});
    acknowledge(0, 0);
    EXPECT_EQ(first.held, nullptr);
    expect_undone(0);
}

TEST_F(EngineReplicaQuorum, AServerWhoseReplicasWereLateOnceIsAskedAgain) {
    begin();
    grant(0, proposal);
    acknowledge(0, 0);
    expect_undone(0);
    answer(0, {"1", "0"});
    grant_confirmed(1, proposal);
    grant_confirmed(2, proposal);
    ASSERT_NE(first.held, nullptr);
    later(1000ms);  // a third of the lease
    EXPECT_EQ(ask(0).script, "mutex/acquire");
}

// Until when a server may remember an undone vote is no time until which anybody may believe in the next one.
TEST_F(EngineReplicaQuorum, ANodeHoldThatIsAskedForAgainIsBelievedNoLongerThanItsOwnGrant) {
    begin();
    grant(0, proposal);
    acknowledge(0, 0);
    expect_undone(0);
    answer(0, {"1", "0"});
    now += 5ms;
    servers[2].take_link_down(now);
    servers[2].bring_link_up({.clock = clock}, now);
    const question again = ask(0);
    EXPECT_EQ(again.script, "mutex/acquire");
    const instant sent = now;
    grant_confirmed(0, proposal);
    grant_confirmed(1, proposal);
    ASSERT_NE(first.held, nullptr);
    later(1000ms);
    EXPECT_EQ(ask(1).script, "mutex/renew");
    answer(1, {"1"});
    acknowledge(1, 1);
    EXPECT_EQ(first.held->valid_until(), sent + 3000ms - 32ms) << "the other vote was not renewed";
}

// A copy of the undo may be on its way, and would end what the server grants now.
TEST_F(EngineReplicaQuorum, AServerWhoseUndoWasNotAnsweredIsNotAskedAgain) {
    begin();
    grant(0, proposal);
    acknowledge(0, 0);
    expect_undone(0);
    servers[0].take_link_down(now);
    servers[0].bring_link_up({.clock = clock}, now);
    expect_undone(0);
    answer(0, {"0"});
    grant_confirmed(1, proposal);
    grant_confirmed(2, proposal);
    ASSERT_NE(first.held, nullptr);
    later(1000ms);
    EXPECT_TRUE(is_silent(0));
}

}  // namespace
}  // namespace holdfast::engine::engine_replica_quorum_test
