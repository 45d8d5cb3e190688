// What attempts cost that are given up before a server has answered: the test counts every command that is sent.
#include <deque>

#include "unit/engine/quorum/quorum_engine_fixture.hpp"

namespace holdfast::engine::engine_pacing_test {
namespace {

using namespace testing;

const std::string in_queue = list({"2", "900", "other", "77", "0", "41"});
const std::string given_up = list({"0"});

class EnginePacing : public engine_fixture {
protected:
    recorded_request& attempt(milliseconds patience_for, const std::string& lock = "x") {
        recorded_request& request = requests.emplace_back();
        subject.acquire(
            request,
            {.keys = keys_for(lock), .options = {.lease = 30'000ms}, .limit = {waiting::in_queue, now + patience_for}},
            now);
        return request;
    }
    /// So many attempts, each with two milliseconds, one after the other. Returns how many commands they sent.
    std::size_t commands_of_attempts(std::size_t count) {
        std::size_t sent = 0;
        for (std::size_t i = 0; i < count; ++i) {
            recorded_request& request = attempt(2ms);
            sent += send().size();
            later(2ms);
            sent += send().size();
            EXPECT_EQ(request.refusal_code, errc::timed_out);
        }
        return sent;
    }
    /// One attempt that the server has not answered by its deadline: its acquire and its release are unanswered.
    void give_up_one() { ASSERT_EQ(commands_of_attempts(1), 2U); }
    /// What waits for room is asked for when its timer rings.
    std::vector<question> send_next() {
        subject.on_timer(now);
        return send();
    }

    std::deque<recorded_request> requests;
};

TEST_F(EnginePacing, AttemptsBesideASilentServerCostTwoCommandsInAll) {
    EXPECT_EQ(commands_of_attempts(1000), 2U);
    EXPECT_EQ(subject.holds(), 1U) << "the first, whose release is not answered";
}

// Whatever their number, they have no more than that under way when they are given up together.
TEST_F(EnginePacing, ContendersThatTryAgainAndAgainCostTwoCommandsEachOnce) {
    for (const std::size_t contenders : {16U, 32U, 64U}) {
        const std::string lock = "x" + std::to_string(contenders);
        std::size_t sent = 0;
        for (int round = 0; round < 100; ++round) {
            for (std::size_t i = 0; i < contenders; ++i) attempt(2ms, lock);
            sent += send().size();
            later(2ms);
            sent += send().size();
        }
        EXPECT_EQ(sent, 2 * contenders);
    }
}

TEST_F(EnginePacing, AsksAgainWhenTheServerHasAnsweredWhatWasGivenUp) {
    give_up_one();
    recorded_request& next = attempt(1s);
    receive(in_queue);
    EXPECT_TRUE(send_next().empty()) << "its release is not answered yet";
    receive(given_up);
    EXPECT_EQ(send_next().size(), 1U);
    receive(list({"1", "42"}));
    EXPECT_NE(next.held, nullptr);
}

TEST_F(EnginePacing, LetsOneMoreGoWhenAllThatMayGoWereAnsweredInTime) {
    give_up_one();
    for (int i = 0; i < 10; ++i) attempt(1s);
    receive(in_queue + given_up);
    EXPECT_EQ(send_next().size(), 1U);
    receive(in_queue);
    EXPECT_EQ(send_next().size(), 2U);
    receive(in_queue);
    EXPECT_EQ(send_next().size(), 1U) << "one of two";
    receive(in_queue);
    EXPECT_EQ(send_next().size(), 2U) << "two of two";
}

TEST_F(EnginePacing, HalvesWhatMayGoForEveryOneThatIsGivenUp) {
    give_up_one();
    for (int i = 0; i < 20; ++i) attempt(1s + i * 1ms);
    receive(in_queue + given_up);
    for (std::size_t answers = 1 + 2 + 3; answers > 0; --answers) {
        send_next();
        receive(in_queue);
    }
    send_next();  // the seventh to the tenth of those with the most time: four may be unanswered
    subject.cancel(requests.at(20 - 6), errc::cancelled, now);
    EXPECT_EQ(send_next().size(), 1U) << "its release";
    receive(in_queue + in_queue);
    EXPECT_TRUE(send_next().empty()) << "two may be unanswered, and three are";
    receive(in_queue);
    EXPECT_EQ(send_next().size(), 1U);
}

TEST_F(EnginePacing, TheOneWithTheMostTimeLeftGoesFirst) {
    give_up_one();
    recorded_request& impatient = attempt(100ms);
    recorded_request& patient = attempt(1s);
    recorded_request& hasty = attempt(50ms);
    receive(in_queue + given_up);
    ASSERT_EQ(send_next().size(), 1U);
    receive(list({"1", "42"}));
    EXPECT_NE(patient.held, nullptr);
    EXPECT_EQ(send_next().size(), 2U);
    EXPECT_EQ(impatient.held, nullptr);
    EXPECT_EQ(hasty.held, nullptr);
}

TEST_F(EnginePacing, HoldsNobodyBackWhoHasNoDeadline) {
    give_up_one();
    subject.acquire(first, {.keys = keys, .options = {.lease = 30'000ms}}, now);
    EXPECT_EQ(send().size(), 1U);
}

TEST_F(EnginePacing, HoldsNobodyBackWhoWantsAnotherLock) {
    give_up_one();
    attempt(1s, "y");
    EXPECT_EQ(send().size(), 1U);
}

TEST_F(EnginePacing, OneThatIsHeldBackMayBeGivenMoreTime) {
    give_up_one();
    recorded_request& next = attempt(100ms);
    subject.extend(next, now + 1s, now);
    later(100ms);
    EXPECT_FALSE(next.refusal_code);
    EXPECT_TRUE(send().empty());
    receive(in_queue + given_up);
    EXPECT_EQ(send_next().size(), 1U);
    later(900ms);
    EXPECT_EQ(next.refusal_code, errc::timed_out);
}

TEST_F(EnginePacing, OneThatIsHeldBackIsAskedForWhenItsDeadlineIsTakenAway) {
    give_up_one();
    recorded_request& next = attempt(100ms);
    subject.extend(next, never, now);
    EXPECT_EQ(send().size(), 1U);
    later(100ms);
    receive(in_queue + given_up + list({"1", "42"}));
    EXPECT_NE(next.held, nullptr);
}

TEST_F(EnginePacing, OneThatIsCancelledWhileHeldBackSendsNothing) {
    give_up_one();
    recorded_request& next = attempt(1s);
    subject.cancel(next, errc::cancelled, now);
    EXPECT_EQ(next.refusal_code, errc::cancelled);
    receive(in_queue + given_up);
    EXPECT_TRUE(send_next().empty());
    EXPECT_EQ(subject.holds(), 0U);
}

// The one that was about to go is cancelled.
TEST_F(EnginePacing, AnotherTakesTheRoomOfOneThatIsCancelled) {
    give_up_one();
    recorded_request& second = attempt(1s);
    recorded_request& next = attempt(2s);
    receive(in_queue + given_up);
    subject.cancel(next, errc::cancelled, now);
    EXPECT_EQ(send_next().size(), 1U);
    receive(list({"1", "42"}));
    EXPECT_NE(second.held, nullptr);
}

TEST_F(EnginePacing, HasNoLimitAnyMoreWhenNothingIsLeftOfIt) {
    give_up_one();
    receive(in_queue + given_up);
    for (int i = 0; i < 10; ++i) attempt(1s);
    EXPECT_EQ(send().size(), 10U);
}

// Two commands each, both answered: the lock is busy, not the server.
TEST_F(EnginePacing, OneThatWasAnsweredBeforeItsDeadlineSetsNoLimit) {
    attempt(2ms);
    ASSERT_EQ(send().size(), 1U);
    receive(in_queue);
    later(2ms);
    ASSERT_EQ(send().size(), 1U);
    attempt(1s);
    attempt(1s);
    EXPECT_EQ(send().size(), 2U);
}

// What waits for a link costs nothing, and is no reason to hold others back.
TEST_F(EnginePacing, OneThatWasNeverSentSetsNoLimit) {
    server.take_link_down(now);
    attempt(2ms);
    later(2ms);
    server.bring_link_up({}, now);
    attempt(1s);
    attempt(1s);
    EXPECT_EQ(send().size(), 2U);
}

// For a lease the engine listens whether a copy of the request gets something; others need not wait for that.
TEST_F(EnginePacing, GoesOnWhenTheReleaseIsAnsweredOnTheNextLink) {
    recorded_request& lost = attempt(10ms);
    ASSERT_EQ(send().size(), 1U);
    break_link();
    ASSERT_EQ(send().size(), 1U);
    later(10ms);
    EXPECT_EQ(lost.refusal_code, errc::timed_out);
    ASSERT_EQ(send().size(), 1U);
    attempt(1s);
    EXPECT_TRUE(send().empty());
    receive(in_queue + given_up);
    EXPECT_EQ(subject.holds(), 2U);
    EXPECT_EQ(send_next().size(), 1U);
}

TEST_F(EnginePacing, SaysThatTheServerCannotBeReachedIfThatIsWhy) {
    give_up_one();
    server.take_link_down(now);
    recorded_request& next = attempt(5ms);
    later(5ms);
    EXPECT_EQ(next.refusal_code, errc::connection_refused) << "the reason that the link has";
}

TEST_F(EnginePacing, SaysThatTheServerIsNotTrustedYetIfThatIsWhy) {
    give_up_one();
    server.mistrust("x", now + 1min);
    recorded_request& next = attempt(5ms);
    later(5ms);
    EXPECT_EQ(next.refusal_code, errc::recovering);
}

TEST_F(EnginePacing, OneThatDoesNotWaitHearsThatItsRequestTookTooLong) {
    give_up_one();
    subject.acquire(first, {.keys = keys, .options = {.lease = 30'000ms}, .limit = {waiting::not_at_all, now + 5ms}},
                    now);
    later(5ms);
    EXPECT_EQ(first.refusal_code, errc::request_timed_out);
}

class EngineQuorumPacing : public quorum_engine_fixture {
protected:
    recorded_request& attempt(milliseconds patience_for) {
        recorded_request& request = requests.emplace_back();
        subject.acquire(request,
                        {.keys = keys, .options = {.lease = 3000ms}, .limit = {waiting::in_queue, now + patience_for}},
                        now);
        return request;
    }
    std::size_t sent_by_all() {
        std::size_t sent = 0;
        for (played_server& each : servers) {
            for (const question& asked : each.send(now)) {
                if (asked.script == "mutex/acquire") ticket = asked.arguments.at(5);
                ++sent;
            }
        }
        return sent;
    }
    /// Two commands to each server, which answer none of them.
    void give_up_one() {
        attempt(2ms);
        ASSERT_EQ(sent_by_all(), 3U);
        later(2ms);
        ASSERT_EQ(sent_by_all(), 3U);
    }
    void answer_what_was_given_up(std::size_t server) { servers[server].receive(in_queue + given_up, now); }

    std::deque<recorded_request> requests;
};

TEST_F(EngineQuorumPacing, AttemptsBesideSilentServersCostTwoCommandsForEachServerInAll) {
    std::size_t sent = 0;
    for (int i = 0; i < 1000; ++i) {
        recorded_request& request = attempt(2ms);
        sent += sent_by_all();
        later(2ms);
        sent += sent_by_all();
        EXPECT_EQ(request.refusal_code, errc::no_quorum);
    }
    EXPECT_EQ(sent, 6U);
    EXPECT_EQ(requests.back().refusal_detail, "0 of 3 servers answered, earlier attempts are still unanswered");
}

// Otherwise one would have the first server's vote and another the second's.
TEST_F(EngineQuorumPacing, AsksAllServersAtTheSameTimeAsSoonAsAMajorityHasAnswered) {
    give_up_one();
    recorded_request& next = attempt(1s);
    answer_what_was_given_up(1);
    subject.on_timer(now);
    EXPECT_EQ(sent_by_all(), 0U);
    answer_what_was_given_up(2);
    subject.on_timer(now);
    EXPECT_EQ(sent_by_all(), 3U) << "also the one that is slow";
    grant(1, "1700000000000005");
    grant(2, "1700000000000005");
    EXPECT_NE(next.held, nullptr);
}

TEST_F(EngineQuorumPacing, OneServersSilenceHoldsNobodyBack) {
    for (int i = 0; i < 10; ++i) {
        attempt(2ms);
        ASSERT_EQ(sent_by_all(), 3U);
        queue(0);
        queue(1);
        later(2ms);
        ASSERT_EQ(sent_by_all(), 3U);
        servers[0].receive(given_up, now);
        servers[1].receive(given_up, now);
    }
}

}  // namespace
}  // namespace holdfast::engine::engine_pacing_test
