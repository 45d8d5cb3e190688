// Asking members of a Cluster for replicas: a script checks each grant first, and the number counts only if it exists.
#include "redis/session/ack_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/counted_command.hpp"
#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::ack_queue_member_test {
namespace {

using namespace std::chrono_literals;
using testing::counted;
using ::testing::ElementsAre;
using testing::encoded;
using testing::event_log;
using ::testing::IsEmpty;
using testing::name_of;
using testing::recorded_command;
using testing::session_driver;

/// On a link to a member of a Cluster.
class AckQueueOfMember : public ::testing::Test {
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
    std::string by_name(const std::string& lock) const { return encoded({"EVALSHA", confirm.sha1, "1", lock}); }
    static std::string info_and_wait() { return encoded({"INFO", "replication"}) + encoded({"WAIT", "1", "100"}); }
    void answer_rest(const std::string& to_wait, const std::string& history = "history-one",
                     const std::string& role = "master") {
        link.receive(testing::bulk("# Replication\r\nrole:" + role + "\r\nmaster_replid:" + history + "\r\n"));
        link.receive(to_wait);
    }

    const script confirm{"confirm", "0123456789012345678901234567890123456789", "return 1"};
    event_log log;
    session_driver link;
    ack_queue subject{link.subject};
    counted first{log, "first"};
    counted second{log, "second"};
    counted third{log, "third"};
};

TEST_F(AckQueueOfMember, LooksForEveryGrantAndWaitsOnceForAll) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    EXPECT_EQ(sent(), look("a") + by_name("b") + info_and_wait()) << "with the text: the server may not know it";
    link.receive(":1\r\n:1\r\n");
    EXPECT_THAT(log, IsEmpty());
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1", "second=1"));
}

TEST_F(AckQueueOfMember, TheNumberCountsForNobodyWhoseGrantIsGoneOrElsewhere) {
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

TEST_F(AckQueueOfMember, ASlotThatIsMovingSaysNothing) {
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

TEST_F(AckQueueOfMember, AScriptThatWasStoppedSaysNothing) {
    for (const std::string stopped :
         {"-ERR Script attempted to access a non local key in a cluster node script: 1, on @user_script:1.\r\n",
          "-ERR Script attempted to execute a write command while the cluster is down and readonly\r\n"}) {
        log.clear();
        if (!link.subject.up()) link.greet();
        ask(first, "a");
        sent();
        link.receive(stopped);
        answer_rest(":1\r\n");
        EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::moving)));
    }
}

// A repeated script would run behind the WAIT.
TEST_F(AckQueueOfMember, OfAScriptThatWasForgottenJustThenNothingIsKnown) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    sent();
    link.receive(":1000\r\n-NOSCRIPT No matching script.\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1", "second!outcome_unknown"));
    EXPECT_EQ(sent(), "");
}

TEST_F(AckQueueOfMember, AClusterThatIsDownSaysSo) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive("-CLUSTERDOWN Hash slot not served\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first!" + name_of(errc::cluster_down)));
}

TEST_F(AckQueueOfMember, AnyRunIsBelievedThatHasTheGrant) {
    link.greet({.run_id = "run-two"});
    ask(first, "a");
    sent();
    link.receive(":1\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1"));
}

TEST_F(AckQueueOfMember, AMemberThatWasAReplicaSinceTheLastTimeSaysNothing) {
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

TEST_F(AckQueueOfMember, AMemberThatHasBecomeAReplicaSaysNothingAndItsLinkIsMadeAnew) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive("-MOVED 100 127.0.0.1:7001\r\n");
    answer_rest("-ERR WAIT cannot be used with replica instances.\r\n", "history-two", "slave");
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
    EXPECT_EQ(link.hang_ups, 1);
}

TEST_F(AckQueueOfMember, ALinkThatBreaksLeavesTheOutcomeUnknown) {
    link.greet();
    ask(first, "a");
    sent();
    link.receive(":1\r\n");
    link.fail();
    EXPECT_THAT(log, ElementsAre("first!outcome_unknown"));
}

TEST_F(AckQueueOfMember, ABurstThatNobodyWantsAnyMoreIsNotSent) {
    ask(first, "a");
    ask(second, "b");
    subject.flush(link.now);
    EXPECT_TRUE(subject.withdraw(first));
    EXPECT_TRUE(subject.withdraw(second));
    EXPECT_THAT(link.greet(), IsEmpty());
    ask(third, "c");
    EXPECT_EQ(sent(), look("c") + info_and_wait());
}

TEST_F(AckQueueOfMember, AWithdrawnRequestIsNotAnswered) {
    link.greet();
    ask(first, "a");
    ask(second, "b");
    sent();
    EXPECT_TRUE(subject.withdraw(first));
    link.receive(":1\r\n:1\r\n");
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("second=1"));
}

TEST_F(AckQueueOfMember, WhenItIsGivenUpAllAreToldAndWhatIsStillAnsweredGoesNowhere) {
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

// The present owner may have replaced the one that granted, and may have been behind.
TEST_F(AckQueueOfMember, TheTimeLeftOfTheLeaseIsShownBeforeTheNumber) {
    link.greet();
    ask(first, "a");
    const instant asked_at = link.now;
    sent();
    link.now += 5ms;
    link.receive(":1234\r\n");
    EXPECT_EQ(first.shown_left, 0ms);
    answer_rest(":1\r\n");
    EXPECT_THAT(log, ElementsAre("first=1"));
    EXPECT_EQ(first.shown_left, 1234ms);
    EXPECT_EQ(first.shown_at, asked_at);
}

TEST_F(AckQueueOfMember, ATimeBeyondAllNumbersIsCutShort) {
    link.greet();
    for (const std::string said : {":9223372036854775807\r\n", ":-9223372036854775808\r\n", "+soon\r\n"}) {
        ask(first, "a");
        sent();
        link.receive(said);
        answer_rest(":1\r\n");
    }
    EXPECT_THAT(log, ElementsAre("first=1", "first!" + name_of(errc::moving), "first!" + name_of(errc::moving)));
    EXPECT_GT(first.shown_at + first.shown_left, link.now + 24h);
}

}  // namespace
}  // namespace holdfast::redis::ack_queue_member_test
