// The engine against a server played by the test: when it believes, and when it must not. Longer stories are the
// simulator's.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_test {
namespace {

using namespace testing;

class Engine : public engine_fixture {
protected:
    acquire_terms terms() const { return {.keys = keys, .options = {.lease = 1000ms}, .owner = owner_id{7}}; }
    hold& acquired() {
        subject.acquire(first, terms(), now);
        send();
        receive(list({"1", "42"}));
        return *first.held;
    }
};

TEST_F(Engine, CountsValidityFromBeforeTheRequestWasWritten) {
    subject.acquire(first, terms(), now);
    send();
    const instant sent = now;
    now += 300ms;
    receive(list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->valid_until(), sent + 1000ms - 12ms) << "lease less lease/100 + 2 ms";
}

// What is pending about a hold uses memory of an earlier one.
TEST_F(Engine, AnswersAreNotMixedWithThoseAboutAnEarlierHold) {
    recorded_answer done;
    subject.renew(acquired(), done, now);
    send();
    receive(list({"1"}));
    EXPECT_EQ(done.code, errc{});
    subject.release(*first.held, access::exclusive, &done, now + 2s, now);
    send();
    receive(list({"1", "0"}));
    for (const errc expected : {errc::held_by_other, errc::not_held}) {
        const bool stolen = expected == errc::held_by_other;
        recorded_answer released;
        subject.release(acquired(), access::exclusive, &released, now + 2s, now);
        send();
        receive(stolen ? list({"-1", "900", "another program"}) : list({"0"}));
        EXPECT_EQ(released.code, expected);
    }
}

TEST_F(Engine, DoesNotReEnterAHoldThatRanOutBeforeItsTimerRang) {
    acquired();
    now += 5000ms;  // the machine slept; no timer has rung yet
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.held, nullptr);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, IsNotRevivedByALateAnswerToARenewal) {
    const hold& held = acquired();
    later(400ms);
    send();
    now += 5000ms;
    const instant before = held.valid_until();
    receive(list({"1"}));
    EXPECT_EQ(held.valid_until(), before);
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, RefusesATokenThatNoScriptOfOursGives) {
    subject.acquire(first, terms(), now);
    send();
    receive(list({"1", "9007199254740992"}));
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(first.refusal_code, errc::protocol_error);
}

TEST_F(Engine, BelievesAPushOnlyAboveTheFenceOfItsLastAnsweredPoll) {
    subject.acquire(first, terms(), now);
    const std::string id = send_one().arguments.at(0);
    receive(list({"2", "900", "other", "50", "0", "41"}));
    push("grant " + id + " 41");
    EXPECT_EQ(first.held, nullptr) << "a grant that was over before the poll";
    push("grant " + id + " 42");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

// As after a failover, when the replicas have not found the new primary yet.
TEST_F(Engine, AWaiterKeepsItsPositionWhileTheServerIsInTroubleThatMayPass) {
    subject.acquire(first, terms(), now);
    const std::string id = send_one().arguments.at(0);
    receive(list({"2", "900", "other", "77", "0", "41"}));
    break_link();
    for (const std::string& trouble :
         {no_replicas, std::string("-LOADING Redis is loading\r\n"), std::string("-OOM full\r\n"),
          std::string("-BUSY a script\r\n"), std::string("-READONLY a replica\r\n"),
          std::string("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"),
          std::string("-CLUSTERDOWN The cluster is down\r\n")}) {
        const question asked = send_one();
        EXPECT_EQ(asked.arguments.at(0), id);
        EXPECT_EQ(asked.arguments.at(5), "77") << "its ticket";
        receive(trouble);
        EXPECT_EQ(first.refusal_code, std::nullopt) << trouble;
        later(99ms);
        EXPECT_TRUE(send().empty());
        later(1ms);
    }
    send_one();
    receive(list({"1", "42"}));
    EXPECT_NE(first.held, nullptr);
}

TEST_F(Engine, WhoDoesNotWaitIsToldOfTheServersTroubleAtOnce) {
    acquire_terms at_once = terms();
    at_once.limit = {waiting::not_at_all, now + 2s};
    subject.acquire(first, at_once, now);
    send();
    receive(no_replicas);
    EXPECT_EQ(first.refusal_code, errc::misconfigured);
}

TEST_F(Engine, TroubleThatDoesNotPassIsToldAtTheDeadlineAndLeavesNothingBehind) {
    acquire_terms patient = terms();
    patient.limit = {waiting::in_queue, now + 150ms};
    subject.acquire(first, patient, now);
    send();
    receive(no_replicas);
    later(100ms);
    send_one();
    receive(no_replicas);
    later(50ms);
    EXPECT_EQ(first.refusal_code, errc::misconfigured);
    EXPECT_TRUE(send().empty()) << "the script never ran: there is nothing to undo";
}

TEST_F(Engine, TroubleThatPassedIsNotTheReasonToTell) {
    acquire_terms patient = terms();
    patient.limit = {waiting::in_queue, now + 150ms};
    subject.acquire(first, patient, now);
    send();
    receive(no_replicas);
    later(100ms);
    send_one();
    receive(list({"2", "900", "other", "77", "0", "41"}));
    later(50ms);
    EXPECT_EQ(first.refusal_code, errc::timed_out);
}

// A program that tells nobody when it releases is looked at soon, then more and more rarely, and soon again when the
// holder is another one.
TEST_F(Engine, LooksAtAHolderOfAnotherProgramAtAGrowingPace) {
    subject.acquire(first, terms(), now);
    send();
    const auto next_look = [&](const char* holder) {
        receive(list({"2", "-1", holder, "77", "0", "41"}));
        const instant asked = now;
        while (send().empty()) later(1ms);
        return now - asked;
    };
    const auto soon = next_look("stranger");
    EXPECT_GE(soon, 5ms);
    EXPECT_LE(soon, 10ms);
    auto last = soon;
    for (int i = 0; i < 8; ++i) last = next_look("stranger");
    EXPECT_GE(last, 125ms);
    EXPECT_LE(last, 250ms);
    EXPECT_LE(next_look("another"), 10ms);
}

// Only a reason to make a new link, and to ask there.
TEST_F(Engine, AServerThatWasDemotedUnderAWaiterIsAskedAgainOnTheNextLink) {
    server.end_distrusted_links();
    subject.acquire(first, terms(), now);
    send();
    receive("-READONLY a replica\r\n");
    EXPECT_EQ(first.refusal_code, std::nullopt);
    server.bring_link_up({}, now);
    later(100ms);
    send_one();
    receive(list({"1", "42"}));
    EXPECT_NE(first.held, nullptr);
}

}  // namespace
}  // namespace holdfast::engine::engine_test
