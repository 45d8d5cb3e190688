// Asking for replicas: one write and one WAIT for all requests, and when the number does not count.
#include "redis/session/ack_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/counted_command.hpp"
#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::ack_queue_test {
namespace {

using namespace std::chrono_literals;
using testing::counted;
using ::testing::ElementsAre;
using testing::encoded;
using testing::event_log;
using testing::fake_server_facts;
using ::testing::IsEmpty;
using testing::name_of;
using testing::recorded_command;
using testing::session_driver;

class AckQueue : public ::testing::Test {
protected:
    void ask(recorded_command& request, acknowledgement wanted = {1, 100ms}, std::string_view run_id = "run-one") {
        subject.submit(request, {wanted, run_id});
    }
    /// Sends its output.
    std::string sent() {
        subject.flush(link.now);
        return link.pump();
    }
    std::string burst(std::string_view replicas = "1", std::string_view within = "100") const {
        return encoded({"PUBLISH", "hf:ack:hf_c", "1"}) + encoded({"INFO", "replication"}) +
               encoded({"WAIT", replicas, within});
    }
    /// The answers of a primary to a burst.
    void answer(const std::string& counted, const std::string& history = "history-one") {
        answer_all(said, replication("master", history), counted);
    }
    void answer_all(const std::string& to_message, const std::string& to_info, const std::string& to_wait) {
        link.receive(to_message);
        link.receive(to_info);
        link.receive(to_wait);
    }
    static std::string replication(const std::string& role, const std::string& history) {
        return testing::bulk("# Replication\r\nrole:" + role + "\r\nconnected_slaves:1\r\nmaster_replid:" + history +
                             "\r\nmaster_replid2:0000\r\n");
    }
    /// The next request is answered on a new link.
    void expect_another_link() {
        EXPECT_EQ(link.hang_ups, 1);
        ask(second);
        EXPECT_THAT(sent(), IsEmpty());
        EXPECT_EQ(link.greet(), burst());
        answer(":1\r\n");
        EXPECT_EQ(log.back(), "second=1");
    }

    const std::string said = ":0\r\n";

    event_log log;
    session_driver link;
    ack_queue subject{link.subject, "hf:ack:hf_c"};
    counted first{log, "first"};
    counted second{log, "second"};
    counted third{log, "third"};
};

TEST_F(AckQueue, SaysSomethingOfItsOwnBeforeItWaits) {
    link.greet();
    ask(first);
    EXPECT_EQ(sent(), burst());
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1"));
}

TEST_F(AckQueue, OneBurstAnswersAllWhoAskedBeforeItAndTheNextThoseWhoCameMeanwhile) {
    link.greet();
    ask(first);
    ask(second);
    EXPECT_EQ(sent(), burst());
    ask(third);
    EXPECT_THAT(sent(), IsEmpty()) << "what the third is about may be newer than the write";
    answer(":2\r\n");
    EXPECT_THAT(log, ElementsAre("first=2", "second=2"));
    EXPECT_EQ(sent(), burst());
    answer(":0\r\n");
    EXPECT_THAT(log, ElementsAre("first=2", "second=2", "third=0"));
}

TEST_F(AckQueue, RequestsForAnotherNumberOrTimeTakeTurns) {
    link.greet();
    ask(first);
    ask(second, {2, 300ms});
    ask(third);
    EXPECT_EQ(sent(), burst());
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1", "third=1"));
    EXPECT_EQ(sent(), burst("2", "300"));
}

// Without an earlier write on its own link WAIT answers at once with the number of connected replicas.
TEST_F(AckQueue, TheNumberCountsForNothingIfTheMessageWasRefused) {
    link.greet();
    ask(first);
    sent();
    answer_all("-NOPERM No permissions to access a channel\r\n", replication("master", "history-one"), ":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckQueue, TheNumberCountsForNothingIfTheServerDoesNotSayWhatItIs) {
    link.greet();
    ask(first);
    sent();
    answer_all(said, "-NOPERM this user has no permissions to run the 'info' command\r\n", ":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckQueue, ARefusedWaitIsToldByItsReason) {
    link.greet();
    ask(first);
    sent();
    answer("-NOPERM this user has no permissions to run the 'wait' command\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckQueue, TheAnswerOfAnotherRunSaysNothingAndItsLinkIsMadeAnew) {
    link.greet({.run_id = "run-two"});
    ask(first);
    sent();
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

// The link came up after a failover. Earlier requests mean the former server.
TEST_F(AckQueue, ALinkToTheServerOfTheNewestQuestionIsKept) {
    link.greet({.run_id = "run-two"});
    ask(first);
    ask(second, {1, 100ms}, "run-two");
    sent();
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown", "second=1"));
    EXPECT_EQ(link.hang_ups, 0);
}

TEST_F(AckQueue, AServerThatHasBecomeAReplicaSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer_all(said, replication("slave", "history-two"), "-ERR WAIT cannot be used with replica instances.\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

TEST_F(AckQueue, AServerThatBecomesAReplicaMeanwhileSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer("-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

// The same process came back without its earlier writes.
TEST_F(AckQueue, AServerThatWasAReplicaSinceTheLastTimeSaysNothingOfWhatWasDoneBefore) {
    link.greet();
    ask(first);
    sent();
    answer(":1\r\n");
    ask(second);
    sent();
    answer(":1\r\n", "history-two");
    EXPECT_THAT(log, ElementsAre("first=1", "second!outcome_unknown"));
    ask(third);
    sent();
    answer(":1\r\n", "history-two");
    EXPECT_EQ(log.back(), "third=1") << "asked after that";
}

// Its answer to WAIT is the first sign.
TEST_F(AckQueue, AServerThatBecomesAReplicaBeforeItWaitsSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer("-ERR WAIT cannot be used with replica instances. Please also note that ...\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

TEST_F(AckQueue, RequestsBeforeTheLossOfAHistoryWasKnownEndAsUnknown) {
    link.greet();
    ask(first);
    sent();
    answer(":1\r\n");
    EXPECT_EQ(subject.lost_histories(), 0U);
    ask(second);
    sent();
    ask(third);
    answer(":1\r\n", "history-two");
    EXPECT_THAT(log, ElementsAre("first=1", "second!outcome_unknown", "third!outcome_unknown"));
    EXPECT_EQ(subject.lost_histories(), 1U) << "others may be told of it";
    EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(AckQueue, AQueueThatKnowsAnothersHistorySeesItsEndInItsFirstBurst) {
    link.greet();
    ask(first);
    sent();
    answer(":1\r\n");
    session_driver other_link;
    ack_queue other{other_link.subject, "hf:ack:hf_c"};
    other.know_history_of(subject);
    other_link.greet();
    other.submit(second, {.wanted = {1, 100ms}, .run_id = other_link.subject.facts().run_id});
    other.flush(other_link.now);
    other_link.pump();
    for (const std::string& each : {said, replication("master", "history-two"), std::string(":1\r\n")})
        other_link.receive(each);
    EXPECT_THAT(log, ElementsAre("first=1", "second!outcome_unknown"));
}

TEST_F(AckQueue, AServerThatReplacedAnotherHasItsOwnHistory) {
    link.greet();
    ask(first);
    sent();
    answer(":1\r\n");
    link.fail();
    ask(second, {1, 100ms}, "run-two");
    sent();
    link.greet({.run_id = "run-two"});
    answer(":1\r\n", "history-two");
    EXPECT_THAT(log, ElementsAre("first=1", "second=1"));
}

TEST_F(AckQueue, WithoutTheRightToKnowTheRunNobodyIsAsked) {
    link.greet();
    ask(first, {1, 100ms}, "");
    EXPECT_THAT(log, IsEmpty()) << "not while it is being asked for";
    EXPECT_THAT(sent(), IsEmpty());
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckQueue, ALinkThatBreaksLeavesTheOutcomeUnknownAndTheNextBurstIsWhole) {
    link.greet();
    ask(first);
    sent();
    link.receive(said);
    link.fail();
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    ask(second);
    EXPECT_THAT(sent(), IsEmpty());
    EXPECT_EQ(link.greet(), burst());
}

TEST_F(AckQueue, IfTheLinkCannotBeMadeThatIsTheReason) {
    ask(first);
    subject.flush(link.now);
    link.tick();
    link.fail();
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::unreachable)));
}

TEST_F(AckQueue, AWithdrawnRequestIsNotAnswered) {
    link.greet();
    ask(first);
    ask(second);
    sent();
    ask(third);
    EXPECT_TRUE(subject.withdraw(first));
    EXPECT_TRUE(subject.withdraw(third));
    EXPECT_EQ(first.life(), command::state::idle);
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("second=1"));
    EXPECT_FALSE(subject.withdraw(second));
    EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(AckQueue, ABurstThatNobodyWantsAnyMoreIsNotSent) {
    ask(first);
    subject.flush(link.now);
    EXPECT_TRUE(subject.withdraw(first));
    EXPECT_THAT(link.greet(), IsEmpty());
    ask(second);
    EXPECT_EQ(sent(), burst());
}

TEST_F(AckQueue, ACallbackMayAskAgainAndWithdrawOthers) {
    link.greet();
    first.afterwards = [&](instant) {
        first.afterwards = nullptr;
        subject.withdraw(second);
        ask(first);
    };
    ask(first);
    ask(second);
    sent();
    answer(":0\r\n");
    EXPECT_THAT(log, ElementsAre("first=0"));
    EXPECT_EQ(sent(), burst());
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=0", "first=1"));
}

}  // namespace
}  // namespace holdfast::redis::ack_queue_test
