// Grants and renewals that count only when replicas have them.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_replica_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EngineReplica : public engine_fixture {
protected:
    acquire_terms terms(waiting wait = waiting::in_queue) const {
        return {.keys = keys,
                .options = {.lease = 3000ms, .replica_timeout_ms = 100, .replicas = 2},
                .owner = owner_id{7},
                .limit = {wait, now + 10s}};
    }
    /// Granted by the server, with token 42, and not acknowledged by anybody yet.
    void grant(waiting wait = waiting::in_queue) {
        subject.acquire(first, terms(wait), now);
        id = send_one().arguments.at(0);
        receive(list({"1", "42"}));
    }
    hold& acquired() {
        grant();
        server.acknowledge(2, now);
        first.held->listen(life);
        return *first.held;
    }
    /// The renewal that is due, as the server answers it.
    void renew() {
        later(1000ms);
        EXPECT_EQ(send_one().script, "mutex/renew");
        receive(list({"1"}));
    }
    void expect_undone() {
        const question undo = send_one();
        EXPECT_EQ(undo.script, "mutex/release");
        EXPECT_EQ(undo.arguments.at(0), id);
        EXPECT_EQ(undo.arguments.at(1), "0") << "any grant of this id";
    }

    std::string id;
    std::shared_ptr<recorded_life> life = std::make_shared<recorded_life>();
};

TEST_F(EngineReplica, AGrantCountsWhenEnoughReplicasHaveIt) {
    grant();
    EXPECT_EQ(first.held, nullptr);
    ASSERT_THAT(server.confirmations, SizeIs(1));
    EXPECT_EQ(server.confirmations[0].lock, "hf:{x}");
    EXPECT_EQ(server.confirmations[0].asked.script, "mutex/confirm");
    EXPECT_THAT(server.confirmations[0].asked.arguments, ElementsAre(id, "42"));
    EXPECT_EQ(server.confirmations[0].wanted, (redis::acknowledgement{2, 100ms}));
    server.acknowledge(2, now);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

TEST_F(EngineReplica, ValidityIsCountedFromTheRequestHoweverLongTheReplicasTake) {
    subject.acquire(first, terms(), now);
    send();
    const instant sent = now;
    now += 50ms;
    receive(list({"1", "42"}));
    later(80ms);
    server.acknowledge(3, now);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->valid_until(), sent + 3000ms - 32ms);
}

TEST_F(EngineReplica, AGrantThatTooFewHaveIsUndoneAndReported) {
    for (const waiting wait : {waiting::in_queue, waiting::not_at_all}) {
        first = {};
        grant(wait);
        server.acknowledge(1, now);
        EXPECT_EQ(first.refusal_code, errc::not_replicated);
        EXPECT_EQ(first.held, nullptr);
        expect_undone();
        receive(list({"1", "0"}));
    }
}

TEST_F(EngineReplica, APushedGrantIsConfirmedToo) {
    subject.acquire(first, terms(), now);
    id = send_one().arguments.at(0);
    receive(list({"2", "900", "other", "77", "0", "41"}));
    push("grant " + id + " 42");
    EXPECT_EQ(first.held, nullptr);
    EXPECT_TRUE(send().empty());
    server.acknowledge(2, now);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

// What the poll proves is newer, and its answer comes next.
TEST_F(EngineReplica, AGrantThatIsPushedDuringAPollIsConfirmedByThePollsAnswer) {
    subject.acquire(first, terms(), now);
    id = send_one().arguments.at(0);
    receive(list({"2", "900", "other", "77", "0", "41"}));
    later(1000ms);
    send_one();
    push("grant " + id + " 42");
    EXPECT_THAT(server.confirmations, IsEmpty());
    receive(list({"1", "42"}));
    server.acknowledge(2, now);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineReplica, ARenewalExtendsValidityOnlyWhenItIsConfirmed) {
    const hold& held = acquired();
    const instant before = held.valid_until();
    renew();
    EXPECT_THAT(server.confirmations.at(0).asked.arguments, ElementsAre(id)) << "by the lock's own key";
    const instant renewed_at = now;
    EXPECT_EQ(held.valid_until(), before);
    later(60ms);
    server.acknowledge(2, now);
    EXPECT_EQ(held.valid_until(), renewed_at + 3000ms - 32ms);
}

// A member of a Cluster that took over was behind: it has the hold, with the lease that it had before.
TEST_F(EngineReplica, ARenewalIsBelievedForWhatIsLeftWhereItIsNow) {
    const hold& held = acquired();
    const instant before = held.valid_until();
    renew();
    later(60ms);
    server.show(1940ms, now);
    server.acknowledge(2, now);
    EXPECT_EQ(held.valid_until(), before);
    later(0ms);
    EXPECT_EQ(send_one().script, "mutex/renew") << "at once: little is left";
    receive(list({"1"}));
    server.show(5000ms, now);
    server.acknowledge(2, now);
    EXPECT_EQ(held.valid_until(), now + 3000ms - 32ms) << "no longer than was asked for";
}

TEST_F(EngineReplica, AGrantOfWhichLittleIsLeftIsAskedForAgain) {
    grant();
    server.show(20ms, now);
    server.acknowledge(2, now);
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(send_one().script, "mutex/acquire");
    receive(list({"1", "42"}));
    server.show(3000ms, now);
    server.acknowledge(2, now);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineReplica, ARenewalThatTooFewHaveIsNotCountedAndTriedAgain) {
    const hold& held = acquired();
    const instant before = held.valid_until();
    renew();
    server.acknowledge(0, now);
    EXPECT_EQ(held.valid_until(), before);
    EXPECT_TRUE(send().empty());
    later(300ms);
    EXPECT_EQ(send_one().script, "mutex/renew");
    receive(list({"1"}));
    server.acknowledge(2, now);
    EXPECT_EQ(held.valid_until(), now + 3000ms - 32ms);
}

// The confirmation's link broke, or led to a server that was replaced: the next one has not got the renewal.
TEST_F(EngineReplica, ARenewalOfWhichNobodyKnowsIsSentAgainAtOnce) {
    acquired();
    renew();
    server.fail_confirmation(errc::outcome_unknown, now);
    later(0ms);
    EXPECT_EQ(send_one().script, "mutex/renew");
}

// Nothing slows it down but we: the link is up.
TEST_F(EngineReplica, ARenewalOfWhichNobodyKnowsAgainIsSentAgainAfterAWhile) {
    acquired();
    renew();
    server.fail_confirmation(errc::outcome_unknown, now);
    later(0ms);
    EXPECT_EQ(send_one().script, "mutex/renew");
    receive(list({"1"}));
    server.fail_confirmation(errc::outcome_unknown, now);
    later(0ms);
    EXPECT_TRUE(send().empty());
    later(150ms);
    EXPECT_EQ(send_one().script, "mutex/renew");
}

TEST_F(EngineReplica, WhoHoldsWithFewerReplicasThanItWantsIsNotLetIn) {
    acquire_terms plain = terms();
    plain.options.replicas = 0;
    subject.acquire(first, plain, now);
    send();
    receive(list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.refusal_code, errc::not_replicated);
    recorded_request plainly;
    subject.acquire(plainly, plain, now);
    EXPECT_EQ(plainly.held, first.held);
}

TEST_F(EngineReplica, AHoldWhoseRenewalsAreNotConfirmedIsLostWhenItsValidityEnds) {
    acquired();
    renew();
    later(2000ms);
    EXPECT_EQ(life->lost, errc::lost);
    EXPECT_THAT(server.confirmations, IsEmpty()) << "nobody waits for it any more";
}

TEST_F(EngineReplica, AnExplicitRenewalTellsThatTooFewHaveIt) {
    hold& held = acquired();
    recorded_answer answer;
    subject.renew(held, answer, now);
    send();
    receive(list({"1"}));
    EXPECT_EQ(answer.code, std::nullopt);
    server.acknowledge(1, now);
    EXPECT_EQ(answer.code, errc::not_replicated);
}

TEST_F(EngineReplica, WhereNobodyKnowsHowManyHaveItTheServerIsAskedAgainAndConfirmedAnew) {
    for (const errc unknown : {errc::outcome_unknown, errc::misconfigured, errc::unreachable}) {
        first = {};
        grant();
        server.fail_confirmation(unknown, now);
        EXPECT_EQ(first.refusal_code, std::nullopt);
        later(100ms);
        EXPECT_EQ(send_one().arguments.at(0), id);
        receive(list({"1", "42"}));
        EXPECT_EQ(first.held, nullptr);
        server.acknowledge(2, now);
        ASSERT_NE(first.held, nullptr);
        subject.release(*first.held, access::exclusive, nullptr, now, now);
        send();
        receive(list({"1", "0"}));
    }
}

// Meanwhile the lock is nobody's.
TEST_F(EngineReplica, WhereNobodyKnowsForALeaseHowManyHaveItTheGrantIsUndoneAndTheReasonTold) {
    grant();
    for (int i = 0; i < 30 && !first.refusal_code; ++i) {
        server.fail_confirmation(errc::out_of_memory, now);
        later(100ms);
        EXPECT_EQ(send_one().script, "mutex/acquire");
        receive(list({"1", "42"}));
    }
    EXPECT_EQ(first.refusal_code, std::nullopt);
    server.fail_confirmation(errc::out_of_memory, now);
    EXPECT_EQ(first.refusal_code, errc::out_of_memory);
    expect_undone();
}

// Its caller waits for a link until its deadline, so a link that breaks at the end is not the reason.
TEST_F(EngineReplica, WhereNobodyCanBeAskedForALeaseTooFewReplicasAreTheReason) {
    grant();
    for (int i = 0; i < 30 && !first.refusal_code; ++i) {
        server.fail_confirmation(errc::unreachable, now);
        later(100ms);
        EXPECT_EQ(send_one().script, "mutex/acquire");
        receive(list({"1", "42"}));
    }
    EXPECT_EQ(first.refusal_code, std::nullopt);
    server.fail_confirmation(errc::unreachable, now);
    EXPECT_EQ(first.refusal_code, errc::not_replicated);
    expect_undone();
}

TEST_F(EngineReplica, AWaiterQueuedMeanwhileHasItsTimeAnew) {
    grant();
    server.fail_confirmation(errc::out_of_memory, now);
    later(2900ms);
    send_one();
    receive(list({"2", "900", "other", "77", "0", "42"}));
    push("grant " + id + " 43");
    later(200ms);
    server.fail_confirmation(errc::out_of_memory, now);
    EXPECT_EQ(first.refusal_code, std::nullopt);
}

TEST_F(EngineReplica, AGrantThatAnOperatorEndsWhileItIsConfirmedIsNotBelieved) {
    grant();
    push("revoked " + id + " 42");
    EXPECT_THAT(server.confirmations, IsEmpty());
    EXPECT_EQ(send_one().arguments.at(0), id) << "it asks where it stands";
    receive(list({"2", "900", "other", "77", "0", "43"}));
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(first.refusal_code, std::nullopt);
}

TEST_F(EngineReplica, ARevocationOfAnotherGrantLeavesTheConfirmationAlone) {
    grant();
    push("revoked " + id + " 41");
    EXPECT_THAT(server.confirmations, SizeIs(1));
    EXPECT_TRUE(send().empty());
}

TEST_F(EngineReplica, IfReplicasCannotBeAskedForThatIsTheReasonAndTheGrantIsUndone) {
    grant();
    server.fail_confirmation(errc::no_permission, now);
    EXPECT_EQ(first.refusal_code, errc::no_permission);
    expect_undone();
}

TEST_F(EngineReplica, AConfirmationThatDoesNotComeEndsTheAttempt) {
    grant();
    later(2000ms);  // the request timeout
    EXPECT_EQ(first.refusal_code, errc::not_replicated);
    EXPECT_THAT(server.confirmations, IsEmpty());
    expect_undone();
}

TEST_F(EngineReplica, AtTheDeadlineMissingReplicasAreTheReason) {
    acquire_terms hurried = terms();
    hurried.limit.deadline = now + 200ms;
    subject.acquire(first, hurried, now);
    id = send_one().arguments.at(0);
    receive(list({"1", "42"}));
    later(200ms);
    EXPECT_EQ(first.refusal_code, errc::not_replicated);
    expect_undone();
}

TEST_F(EngineReplica, WhoCancelsWhileItIsBeingConfirmedGivesItBack) {
    grant();
    subject.cancel(first, errc::cancelled, now);
    EXPECT_THAT(server.confirmations, IsEmpty());
    expect_undone();
}

TEST_F(EngineReplica, AReleaseWaitsForNoReplicas) {
    hold& held = acquired();
    renew();
    recorded_answer answer;
    subject.release(held, access::exclusive, &answer, now + 1s, now);
    EXPECT_THAT(server.confirmations, IsEmpty());
    send();
    receive(list({"1", "0"}));
    EXPECT_EQ(answer.code, errc{});
    EXPECT_THAT(server.confirmations, IsEmpty());
}

TEST_F(EngineReplica, WhatWasGrantedBeforeAServerThatIsMistrustedIsNotBelieved) {
    grant();
    server.take_link_down(now);
    server.mistrust("x", now + 500ms);
    server.bring_link_up({}, now);
    EXPECT_THAT(server.confirmations, IsEmpty());
    later(499ms);
    EXPECT_TRUE(send().empty());
    later(1ms);
    EXPECT_EQ(send_one().arguments.at(0), id);
}

}  // namespace
}  // namespace holdfast::engine::engine_replica_test
