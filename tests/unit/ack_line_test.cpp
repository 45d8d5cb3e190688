// Asking for replicas: one write and one WAIT for all who asked, and when the number says nothing.
#include "redis/ack_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/session_driver.hpp"

namespace holdfast::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::encoded;
using testing::event_log;
using testing::fake_server_facts;
using ::testing::IsEmpty;
using testing::name_of;
using testing::recorded_command;
using testing::session_driver;

/// Logs the number that it is answered with.
class counted final : public recorded_command {
public:
    counted(event_log& log, const std::string& name) : recorded_command(log, name), log_(log), name_(name) {}
    void on_reply(const reply_view& reply, instant now) override {
        log_.push_back(name_ + "=" + std::to_string(reply.to_integer().value_or(-1)));
        if (afterwards) afterwards(now);
    }

private:
    event_log& log_;
    const std::string name_;
};

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
    ack_line subject{link.subject, "hf_c"};
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

/// On a link to a member of a Cluster.
class AckLineOfMember : public ::testing::Test {
protected:
    /// It asks whether its lock, which has the same name, is held.
    void ask(recorded_command& request, const std::string& lock, acknowledgement wanted = {1, 100ms}) {
        request.script_payload(confirm, 2) = "$1\r\n1\r\n" + testing::bulk(lock);
        subject.submit(request, {.wanted = wanted, .run_id = {}});
    }
    std::string sent() {
        subject.flush(link.now);
        return link.pump();
    }
    static std::string look(const std::string& lock) { return encoded({"EVAL", "return 1", "1", lock}); }
    static std::string info_and_wait() { return encoded({"INFO", "replication"}) + encoded({"WAIT", "1", "100"}); }
    void answer_rest(const std::string& to_wait, const std::string& history = "history-one",
                     const std::string& role = "master") {
        link.receive(testing::bulk("# Replication\r\nrole:" + role + "\r\nmaster_replid:" + history + "\r\n"));
        link.receive(to_wait);
    }

    const script confirm{"confirm", "0123456789012345678901234567890123456789", "return 1"};
    event_log log;
    session_driver link;
    ack_line subject{link.subject};
    counted first{log, "first"};
    counted second{log, "second"};
    counted third{log, "third"};
};

TEST_F(AckLineOfMember, LooksForEveryGrantAndWaitsOnceForAll) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    EXPECT_EQ(sent(), look("a") + look("b") + info_and_wait())
        << "with the text: what is put back because nobody knows the script would run behind the WAIT";
    link.receive(":1\r\n:1\r\n");
    EXPECT_THAT(log, IsEmpty());
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1", "second=1"));
}

TEST_F(AckLineOfMember, TheNumberCountsForNobodyWhoseGrantIsGoneOrElsewhere) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    ask(third, "c");
    sent();
    link.receive(":0\r\n-MOVED 100 127.0.0.1:7001\r\n:1\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::moving), "second!" + name_of(errc::moving), "third=1"));
    EXPECT_EQ(link.hang_ups, 0);
}

TEST_F(AckLineOfMember, ASlotThatIsMovingSaysNothing) {
    for (const std::string refusal : {"-ASK 100 127.0.0.1:7001\r\n", "-TRYAGAIN Multiple keys request\r\n"}) {
        log.clear();
        if (!link.subject.up()) link.greet();
        ask(first, "a");
        sent();
        link.receive(refusal);
        answer_rest(":1\r\n");
        EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::moving)));
    }
}

TEST_F(AckLineOfMember, AClusterThatIsDownSaysSo) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive("-CLUSTERDOWN Hash slot not served\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::cluster_down)));
}

TEST_F(AckLineOfMember, AnyRunIsBelievedThatHasTheGrant) {
    link.greet({.run_id = "run-two"});
    ask(first, "a");
    sent();
    link.receive(":1\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1"));
}

TEST_F(AckLineOfMember, AMemberThatWasAReplicaSinceTheLastTimeSaysNothing) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive(":1\r\n");
    answer_rest(":1\r\n");
    ask(second, "b");
    sent();
    link.receive(":1\r\n");
    answer_rest(":1\r\n", "history-two");
    EXPECT_THAT(log, ElementsAre("first=1", "second!outcome_unknown"));
}

TEST_F(AckLineOfMember, AMemberThatHasBecomeAReplicaSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive("-MOVED 100 127.0.0.1:7001\r\n");
    answer_rest("-ERR WAIT cannot be used with replica instances.\r\n", "history-two", "slave");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    EXPECT_EQ(link.hang_ups, 1);
}

TEST_F(AckLineOfMember, ALinkThatBreaksLeavesTheOutcomeUnknown) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive(":1\r\n");
    link.fail();
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
}

TEST_F(AckLineOfMember, ABurstThatNobodyWantsAnyMoreIsNotSent) {
    ask(first, "a");
    ask(second, "b");
    subject.flush(link.now);
    EXPECT_TRUE(subject.withdraw(first));
    EXPECT_TRUE(subject.withdraw(second));
    EXPECT_THAT(link.greet(), IsEmpty());
    ask(third, "c");
    EXPECT_EQ(sent(), look("c") + info_and_wait());
}

TEST_F(AckLineOfMember, WhoIsWithdrawnIsNotTold) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    sent();
    EXPECT_TRUE(subject.withdraw(first));
    link.receive(":1\r\n:1\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("second=1"));
}

TEST_F(AckLineOfMember, WhenItIsGivenUpAllAreToldAndWhatIsStillAnsweredGoesNowhere) {
    link.greet();
    ask(first, "a");
    sent();
    ask(second, "b");
    subject.give_up({errc::outcome_unknown, "gone"}, link.now);
    EXPECT_THAT(log, ::testing::UnorderedElementsAre("first!outcome_unknown", "second!outcome_unknown"));
    link.receive(":1\r\n");
    answer_rest(":1\r\n");
    EXPECT_EQ(log.size(), 2U);
}

}  // namespace
}  // namespace holdfast::redis
