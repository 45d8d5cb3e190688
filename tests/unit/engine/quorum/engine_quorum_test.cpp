// The engine with three servers played by the test: how votes are counted, and what is asked when they are not enough.
// Longer stories are the simulator's.
#include "unit/engine/quorum/quorum_engine_fixture.hpp"

namespace holdfast::engine::engine_quorum_test {
namespace {

using namespace testing;

class EngineQuorum : public quorum_engine_fixture {};

// R40
TEST_F(EngineQuorum, IsHeldWhenAMajorityHasGranted) {
    begin();
    grant(0, proposal);
    EXPECT_EQ(first.held, nullptr);
    grant(2, proposal);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(std::to_string(first.held->token()), proposal);
}

// R40
TEST_F(EngineQuorum, ProposesOneTicketAndOneTokenFromTheServersClocks) {
    begin();
    EXPECT_EQ(ticket, std::to_string(clock.count()));
    EXPECT_EQ(proposal, std::to_string(clock.count()));
}

// R40: the majority-th longest, each counted from before its own request.
TEST_F(EngineQuorum, IsValidAsLongAsAMajorityIs) {
    begin();
    const instant sent = now;
    now += 100ms;
    grant(0, proposal);
    grant(1, proposal);
    hold& held = *first.held;
    EXPECT_EQ(held.valid_until(), sent + 3000ms - 32ms);
    recorded_answer renewed;
    now += 500ms;
    subject.renew(held, renewed, now);
    EXPECT_EQ(ask(0).script, "mutex/renew");
    answer(0, {"1"});
    EXPECT_EQ(held.valid_until(), sent + 3000ms - 32ms) << "one of two is not enough";
    EXPECT_FALSE(renewed.code);
    EXPECT_EQ(ask(1).script, "mutex/renew");
    answer(1, {"1"});
    EXPECT_EQ(held.valid_until(), now + 3000ms - 32ms);
    EXPECT_EQ(renewed.code, errc{});
}

// R45: design rule 4.7
TEST_F(EngineQuorum, WritesTheGreatestTokenToAMajorityBeforeItTells) {
    begin();
    grant(0, "1700000000000005");
    grant(1, "1700000000000009");
    EXPECT_EQ(first.held, nullptr);
    const question raise = ask(0);
    EXPECT_EQ(raise.script, "mutex/raise");
    EXPECT_EQ(raise.arguments.at(1), "1700000000000005");
    EXPECT_EQ(raise.arguments.at(2), "1700000000000009");
    EXPECT_TRUE(is_silent(1));
    answer(0, {"1"});
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 1700000000000009U);
}

// The answer to the raise ends the link, and with it the renewal behind it, before the raise is looked at.
TEST_F(EngineQuorum, RepeatsARaiseWithItsTokenAfterADemotedServerEndedTheLink) {
    begin();
    grant(0, "1700000000000005");
    grant(1, "1700000000000009");
    EXPECT_EQ(ask(0).script, "mutex/raise");
    grant(2, "1700000000000009");
    ASSERT_NE(first.held, nullptr);
    recorded_answer renewed;
    subject.renew(*first.held, renewed, now);
    EXPECT_EQ(ask(0).script, "mutex/renew");
    servers[0].end_distrusted_links();
    servers[0].receive("-READONLY You can't write against a read only replica.\r\n", now);
    servers[0].bring_link_up({.clock = clock}, now);
    later(200ms);
    std::vector<std::string> raised_to;
    for (const question& asked : servers[0].send(now)) {
        if (asked.script == "mutex/raise") raised_to.push_back(asked.arguments.at(2));
    }
    EXPECT_EQ(raised_to, std::vector<std::string>{"1700000000000009"});
}

// The client paused for longer than the lease. A vote that ran out is asked for anew, not counted as a node out of
// reach.
TEST_F(EngineQuorum, AsksAgainForANodeHoldThatRanOutBeforeItsTokenWasRaised) {
    acquire_terms unbounded = terms();
    unbounded.limit.deadline = never;
    subject.acquire(first, unbounded, now);
    for (std::size_t i = 0; i < servers.size(); ++i) ask(i);
    grant(0, "1700000000000005");
    grant(1, "1700000000000009");
    grant(2, "1700000000000007");
    now += 4s;
    for (const std::size_t i : {0U, 2U}) servers[i].fail_waiting(errc::request_timed_out, now);
    EXPECT_FALSE(first.refusal_code);
    for (const std::size_t i : {0U, 2U}) EXPECT_EQ(ask(i).script, "mutex/acquire");
}

TEST_F(EngineQuorum, TakesTheTokenThatAMajoritySharesEvenIfAnotherIsGreater) {
    begin();
    grant(0, "1700000000000005");
    grant(1, "1700000000000009");
    grant(2, "1700000000000005");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 1700000000000005U);
}

// A vote stops counting when it is offered to whoever is first.
TEST_F(EngineQuorum, GivesANodeHoldUpByItsTokenWhenThereIsNoMajority) {
    begin();
    grant(0, "1700000000000005");
    queue(1);
    queue(2);
    later(10ms);
    const question yielded = ask(0);
    EXPECT_EQ(yielded.script, "mutex/acquire");
    EXPECT_EQ(yielded.arguments.at(0), id);
    EXPECT_EQ(yielded.arguments.at(5), ticket) << "its place is kept";
    EXPECT_EQ(yielded.arguments.at(9), "1700000000000005");
    servers[1].push("grant " + id + " 1700000000000007", now);
    EXPECT_EQ(first.held, nullptr) << "one vote only: the other was offered";
    grant(0, "1700000000000008");
    EXPECT_EQ(ask(1).script, "mutex/raise");
    answer(1, {"1"});
    ASSERT_NE(first.held, nullptr);
}

TEST_F(EngineQuorum, KeepsItsNodeHoldsWhileAnswersAreDueThatMayMakeAMajority) {
    begin();
    grant(0, proposal);
    later(30ms);
    EXPECT_TRUE(is_silent(0));
    grant(1, proposal);
    EXPECT_NE(first.held, nullptr);
}

// R41
TEST_F(EngineQuorum, ARefusedAttemptIsUndoneAlsoWhereNobodyAnswered) {
    begin(waiting::not_at_all);
    grant(0, proposal);
    answer(1, {"0", "900", "other"});
    EXPECT_FALSE(first.refusal_code);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::no_quorum);
    const question undo = ask(0);
    EXPECT_EQ(undo.script, "mutex/release");
    EXPECT_EQ(ask(2).script, "mutex/release");
    EXPECT_TRUE(is_silent(1)) << "that one said no, and has nothing to undo";
}

TEST_F(EngineQuorum, IsBusyAsSoonAsAMajorityHasRefused) {
    begin(waiting::not_at_all);
    answer(1, {"0", "900", "other"});
    answer(2, {"0", "900", "other"});
    EXPECT_EQ(first.refusal_code, errc::busy);
}

TEST_F(EngineQuorum, ServersThatCannotBeReachedAreMissedForTheQuorum) {
    for (const errc silence :
         {errc::unreachable, errc::host_not_found, errc::no_primary, errc::moving, errc::cluster_down}) {
        recorded_request request;
        subject.acquire(request, terms(waiting::not_at_all), now);
        for (played_server& each : servers) each.fail_waiting(silence, now);
        EXPECT_EQ(request.refusal_code, errc::no_quorum);
    }
}

TEST_F(EngineQuorum, WaitsOutItsTimeInTheQueueAndSaysSo) {
    begin();
    queue(0);
    queue(1);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::timed_out);
}

TEST_F(EngineQuorum, WaitsForServersWhoseTroubleMayPass) {
    begin();
    queue(0);
    for (std::size_t i = 1; i < 3; ++i) servers[i].receive(no_replicas, now);
    EXPECT_EQ(first.refusal_code, std::nullopt);
    later(100ms);
    for (std::size_t i = 1; i < 3; ++i) {
        const question asked = ask(i);
        EXPECT_EQ(asked.arguments.at(5), ticket);
        grant(i, asked.arguments.at(8));
    }
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineQuorum, SaysWhichTroubleKeptItFromAMajority) {
    begin();
    for (std::size_t i = 0; i < 2; ++i) servers[i].receive(no_replicas, now);
    queue(2);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::misconfigured);
}

TEST_F(EngineQuorum, AHoldDoesNotPesterAServerInTroubleForOneNodeHoldMore) {
    begin();
    grant(0, proposal);
    grant(1, proposal);
    ASSERT_NE(first.held, nullptr);
    servers[2].receive(no_replicas, now);
    later(100ms);
    EXPECT_TRUE(is_silent(2));
}

// R41, R42
TEST_F(EngineQuorum, WithdrawsWhenNoMajorityCanBeReachedAndComesBackInItsPositionByAnotherId) {
    begin();
    grant(0, proposal);
    servers[1].take_link_down(now);
    servers[2].take_link_down(now);
    later(10ms);
    const question undo = ask(0);
    EXPECT_EQ(undo.script, "mutex/release");
    EXPECT_EQ(undo.arguments.at(0), id);
    answer(0, {"1", "0"});
    EXPECT_FALSE(first.refusal_code);
    EXPECT_TRUE(is_silent(0));
    servers[1].bring_link_up({.clock = clock}, now);
    const question again = ask(0);
    EXPECT_EQ(again.script, "mutex/acquire");
    EXPECT_NE(again.arguments.at(0), id);
    EXPECT_EQ(again.arguments.at(5), ticket);
}

// Some of the servers may be Clusters, whose links are for some locks only.
TEST_F(EngineQuorum, WithdrawsOnlyWhereThatLockCannotReachAMajority) {
    begin();
    grant(0, proposal);
    recorded_request second;
    acquire_terms another = terms();
    another.keys = keys_for("y");
    subject.acquire(second, another, now);
    for (played_server& each : servers) each.send(now);
    grant(0, proposal);
    for (std::size_t i = 1; i < 3; ++i) servers[i].lose_part("x", now);
    later(10ms);
    EXPECT_EQ(ask(0).arguments.at(0), id) << "the lock that is cut off is given back, the other one kept";
    answer(0, {"1", "0"});
    for (std::size_t i = 1; i < 3; ++i) servers[i].lose_part("y", now);
    servers[1].regain_part("y", now);
    EXPECT_TRUE(is_silent(0)) << "news of another lock";
    servers[1].regain_part("x", now);
    const question again = ask(0);
    EXPECT_EQ(again.script, "mutex/acquire");
    EXPECT_EQ(again.arguments.at(5), ticket);
}

TEST_F(EngineQuorum, WithdrawnItStillEndsAtItsDeadline) {
    begin();
    grant(0, proposal);
    servers[1].take_link_down(now);
    servers[2].take_link_down(now);
    later(10ms);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::no_quorum);
}

// R43, R44
TEST_F(EngineQuorum, OneLostNodeHoldIsToldToTheHookAndASecondToTheHolder) {
    begin();
    for (std::size_t i = 0; i < 3; ++i) grant(i, proposal);
    hold& held = *first.held;
    const auto life = std::make_shared<recorded_life>();
    held.listen(life);
    later(1s);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i).script, "mutex/renew");
    answer(0, {"0"});
    EXPECT_THAT(observing.fewer, ::testing::ElementsAre(2U));
    EXPECT_FALSE(life->lost);
    answer(1, {"0"});
    EXPECT_EQ(life->lost, errc::not_held);
}

TEST_F(EngineQuorum, ARecallByOneServerIsOneByAllAndTheReleaseGoesToAll) {
    begin();
    for (std::size_t i = 0; i < 3; ++i) grant(i, proposal);
    hold& held = *first.held;
    const auto life = std::make_shared<recorded_life>();
    held.listen(life);
    servers[1].push("recall " + id + " " + proposal, now);
    EXPECT_EQ(life->lost, errc::lost);
    later(1s);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(servers[i].send(now), ::testing::IsEmpty());
    subject.release(held, access::exclusive, nullptr, now, now);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i).script, "mutex/release");
}

TEST_F(EngineQuorum, ServersThatAreMistrustedAreNamedWithTheTimeUntilAMajorityVotes) {
    servers[0].mistrust("x", now + 8s);
    servers[2].mistrust("x", now + 5s);
    EXPECT_EQ(subject.recovery_of(*keys, now).enough_in, 5s) << "with the one that votes, the next one is enough";
    subject.acquire(first, terms(), now);
    EXPECT_EQ(ask(1).script, "mutex/acquire");
    answer(1, {"1", "1700000000000001"});
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::recovering);
    EXPECT_EQ(first.why.recovers_in, 3s);
    EXPECT_EQ(first.why.detail, "redis://a grants in 6s, redis://c grants in 3s");
    servers[2].mistrust("x", now);
    EXPECT_EQ(subject.recovery_of(*keys, now).enough_in, 0s);
}

TEST_F(EngineQuorum, AServerOutOfReachIsNotCountedAmongThoseThatVoteSoon) {
    servers[0].take_link_down(now);
    servers[2].mistrust("x", now + 5s);
    EXPECT_EQ(subject.recovery_of(*keys, now).enough_in, 5s) << "b votes, c will, and a may be gone for good";
    subject.acquire(first, terms(), now);
    EXPECT_EQ(ask(1).script, "mutex/acquire");
    answer(1, {"1", "1700000000000001"});
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::recovering);
    EXPECT_EQ(first.why.recovers_in, 3s);
    servers[1].take_link_down(now);
    EXPECT_EQ(subject.recovery_of(*keys, now).enough_in, 0s) << "that c votes would not be enough";
}

// R43
TEST_F(EngineQuorum, AServerThatForgotTheHoldIsAskedAgainByTheSameId) {
    begin();
    for (std::size_t i = 0; i < 3; ++i) grant(i, proposal);
    later(1s);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i).script, "mutex/renew");
    answer(0, {"0"});
    answer(1, {"1"});
    answer(2, {"1"});
    later(1s);
    const question heal = ask(0);
    EXPECT_EQ(heal.script, "mutex/acquire");
    EXPECT_EQ(heal.arguments.at(0), id);
    EXPECT_EQ(heal.arguments.at(4), "") << "it does not wait in the queue there";
    grant(0, "1700000002000000");
    EXPECT_THAT(observing.more, ::testing::ElementsAre(3U));
    EXPECT_EQ(std::to_string(first.held->token()), proposal) << "the token that was told stays";
}

TEST_F(EngineQuorum, ReleasesEverywhereAndIsAnsweredByAMajority) {
    begin();
    for (std::size_t i = 0; i < 3; ++i) grant(i, proposal);
    recorded_answer released;
    subject.release(*first.held, access::exclusive, &released, now + 2s, now);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i).script, "mutex/release");
    answer(0, {"1", "0"});
    EXPECT_FALSE(released.code);
    answer(1, {"1", "0"});
    EXPECT_EQ(released.code, errc{});
    EXPECT_EQ(subject.holds(), 1U) << "one server has not answered yet";
    answer(2, {"1", "0"});
    EXPECT_EQ(subject.holds(), 0U);
}

}  // namespace
}  // namespace holdfast::engine::engine_quorum_test
