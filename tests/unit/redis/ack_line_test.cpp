// Asking for replicas: one write and one WAIT for all who asked, and when the number says nothing.
#include "redis/session/ack_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/counted_command.hpp"
#include "unit/redis/session_driver.hpp"

namespace holdfast::redis::ack_line_test {
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

class AckLine : public ::testing::Test {
protected:
    void ask(recorded_command& request, acknowledgement wanted = {1, 100ms}, std::string_view run_id = "run-one") {
        subject.submit(request, {wanted, run_id});
    }
    /// What it has to say goes out.
    std::string sent() {
        subject.flush(link.now);
        return link.pump();
    }
    std::string burst(std::string_view replicas = "1", std::string_view within = "100") const {
        return encoded({"PUBLISH", "hf:ack:hf_c", "1"}) + encoded({"INFO", "replication"}) +
               encoded({"WAIT", replicas, within});
    }
    /// A server's answers to a burst, if it is the primary of some history.
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
    /// Whoever asks now is answered by a link that was made anew.
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

TEST_F(AckLine, SaysSomethingOfItsOwnBeforeItWaits) {
    link.greet();
    ask(first);
    EXPECT_EQ(sent(), burst());
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1"));
}

TEST_F(AckLine, OneBurstAnswersAllWhoAskedBeforeItAndTheNextThoseWhoCameMeanwhile) {
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

TEST_F(AckLine, WhoWantsAnotherNumberOrTimeIsAskedForInTurn) {
    link.greet();
    ask(first);
    ask(second, {2, 300ms});
    ask(third);
    EXPECT_EQ(sent(), burst());
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1", "third=1"));
    EXPECT_EQ(sent(), burst("2", "300"));
}

// A WAIT with nothing before it on its own link answers at once with whatever replicas there are.
TEST_F(AckLine, TheNumberCountsForNothingIfTheMessageWasRefused) {
    link.greet();
    ask(first);
    sent();
    answer_all("-NOPERM No permissions to access a channel\r\n", replication("master", "history-one"), ":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckLine, TheNumberCountsForNothingIfTheServerDoesNotSayWhatItIs) {
    link.greet();
    ask(first);
    sent();
    answer_all(said, "-NOPERM this user has no permissions to run the 'info' command\r\n", ":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckLine, ARefusedWaitIsToldByItsReason) {
    link.greet();
    ask(first);
    sent();
    answer("-NOPERM this user has no permissions to run the 'wait' command\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckLine, TheAnswerOfAnotherRunSaysNothingAndItsLinkIsMadeAnew) {
    link.greet({.run_id = "run-two"});
    ask(first);
    sent();
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

// It came up after a failover, and those who asked before are about the former server.
TEST_F(AckLine, ALinkToTheServerOfTheNewestQuestionIsKept) {
    link.greet({.run_id = "run-two"});
    ask(first);
    ask(second, {1, 100ms}, "run-two");
    sent();
    answer(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown", "second=1"));
    EXPECT_EQ(link.hang_ups, 0);
}

TEST_F(AckLine, AServerThatHasBecomeAReplicaSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer_all(said, replication("slave", "history-two"), "-ERR WAIT cannot be used with replica instances.\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

TEST_F(AckLine, AServerThatBecomesAReplicaMeanwhileSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer("-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

// The same process: it came back, without what was done before.
TEST_F(AckLine, AServerThatWasAReplicaSinceTheLastTimeSaysNothingOfWhatWasDoneBefore) {
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

// Its answer to WAIT is the first that shows it.
TEST_F(AckLine, AServerThatBecomesAReplicaBeforeItWaitsSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first);
    sent();
    answer("-ERR WAIT cannot be used with replica instances. Please also note that ...\r\n");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    expect_another_link();
}

TEST_F(AckLine, WhoAskedBeforeTheLossOfAHistoryWasKnownIsToldNothing) {
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

TEST_F(AckLine, ALineThatKnowsAnothersHistorySeesItsEndInItsFirstBurst) {
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

TEST_F(AckLine, AServerThatReplacedAnotherHasItsOwnHistory) {
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

TEST_F(AckLine, WithoutTheRightToKnowTheRunNobodyIsAsked) {
    link.greet();
    ask(first, {1, 100ms}, "");
    EXPECT_THAT(log, IsEmpty()) << "not while it is being asked for";
    EXPECT_THAT(sent(), IsEmpty());
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::no_permission)));
}

TEST_F(AckLine, ALinkThatBreaksLeavesTheOutcomeUnknownAndTheNextBurstIsWhole) {
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

TEST_F(AckLine, IfTheLinkCannotBeMadeThatIsTheReason) {
    ask(first);
    subject.flush(link.now);
    link.tick();
    link.fail();
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::unreachable)));
}

TEST_F(AckLine, WhoIsWithdrawnIsNotTold) {
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

TEST_F(AckLine, ABurstThatNobodyWantsAnyMoreIsNotSent) {
    ask(first);
    subject.flush(link.now);
    EXPECT_TRUE(subject.withdraw(first));
    EXPECT_THAT(link.greet(), IsEmpty());
    ask(second);
    EXPECT_EQ(sent(), burst());
}

TEST_F(AckLine, WhoIsToldMayAskAgainAndWithdrawOthers) {
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
}  // namespace holdfast::redis::ack_line_test
