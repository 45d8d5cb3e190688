// The life of a connection, in virtual time, with a server made of strings.
#include "redis/session/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::session_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::encoded;
using testing::fake_server_facts;
using testing::greeting_answers;
using ::testing::HasSubstr;
using testing::hello_answer;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::recorded_command;
using testing::session_driver;

const std::string first_burst = encoded({"HELLO", "3"}) + encoded({"CLIENT", "INFO"}) + encoded({"INFO", "server"});

TEST(Session, GreetsBeforeAnybodyElseMaySpeak) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    EXPECT_EQ(link.connect(), first_burst);
    EXPECT_FALSE(link.subject.up());
    EXPECT_EQ(link.receive(greeting_answers({})), encoded({"ping"}));
    EXPECT_TRUE(link.subject.up());
    link.receive("+PONG\r\n");
    EXPECT_THAT(link.log, ElementsAre("up", "ping=PONG"));
    EXPECT_EQ(link.subject.facts().run_id, "run-one");
    EXPECT_EQ(link.subject.facts().client_address, "127.0.0.1:5000");
    EXPECT_EQ(link.subject.facts().client_id, 7);
}

TEST(Session, SelectsItsDatabaseInTheSameBurst) {
    session_driver link("redis://h/3");
    EXPECT_EQ(link.connect(), encoded({"HELLO", "3"}) + encoded({"SELECT", "3"}) + encoded({"CLIENT", "INFO"}) +
                                  encoded({"INFO", "server"}));
    link.receive(hello_answer({}) + "+OK\r\n");
    EXPECT_FALSE(link.subject.up());
    link.receive("-NOPERM\r\n-NOPERM\r\n");
    EXPECT_TRUE(link.subject.up()) << "only HELLO and SELECT must succeed";
    EXPECT_EQ(link.subject.facts().run_id, "");
}

TEST(Session, ADatabaseThatDoesNotExistIsToldAtOnce) {
    session_driver link("redis://h/99");
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive(hello_answer({}) + "-ERR DB index is out of range\r\n");
    EXPECT_EQ(ping.last.code, errc::no_such_database);
    EXPECT_EQ(link.hang_ups, 1);
}

TEST(Session, EndsItsPreviousLinkWhereTheServerIsStillTheSame) {
    session_driver link;
    link.greet({.client_id = 7, .address = "1.2.3.4:5"});
    link.fail();
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    EXPECT_EQ(link.greet({.client_id = 8, .address = "1.2.3.4:6"}),
              encoded({"CLIENT", "KILL", "ID", "7", "ADDR", "1.2.3.4:5"}))
        << "and nothing else before that is answered";
    EXPECT_EQ(link.receive("-ERR No such client\r\n"), encoded({"ping"})) << "whatever the answer";
}

TEST(Session, KillsNobodyOnAServerThatWasRestarted) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.greet({.client_id = 7, .run_id = "run-one"});
    link.fail();
    link.submit(ping);
    EXPECT_EQ(link.greet({.client_id = 8, .run_id = "run-two"}), encoded({"ping"}));
}

TEST(Session, KillsNobodyIfItIsNotSureWhichLinkWasItsOwn) {
    for (const fake_server_facts& unsure : {fake_server_facts{.address = ""}, fake_server_facts{.run_id = ""}}) {
        session_driver link;
        link.greet(unsure);
        link.fail();
        EXPECT_EQ(link.greet({.client_id = 8, .run_id = unsure.run_id}), "");
        EXPECT_TRUE(link.subject.up());
    }
}

TEST(Session, SubscriptionsAreInPlaceBeforeWhatWaited) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.subject.subscribe("b");
    link.subject.subscribe("a");
    link.submit(ping);
    EXPECT_EQ(link.greet(), encoded({"SUBSCRIBE", "a"}) + encoded({"SUBSCRIBE", "b"}));
    EXPECT_EQ(link.receive(">3\r\n+subscribe\r\n+a\r\n:1\r\n"), "");
    EXPECT_EQ(link.receive(">3\r\n+subscribe\r\n+b\r\n:2\r\n"), encoded({"ping"}));
}

TEST(Session, ASubscriptionAskedForWhileTheLinkSettlesIsMadeBeforeWhatWaited) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.greet({.client_id = 7, .address = "1.2.3.4:5"});
    link.fail();
    link.submit(ping);
    link.greet({.client_id = 8, .address = "1.2.3.4:6"});  // sends CLIENT KILL
    link.subject.subscribe("a");
    EXPECT_EQ(link.pump(), encoded({"SUBSCRIBE", "a"}));
    EXPECT_EQ(link.receive(":1\r\n"), "") << "not up before it listens";
    EXPECT_EQ(link.receive(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), encoded({"ping"}));
}

TEST(Session, SubscriptionsAreRestoredOnTheNextLink) {
    session_driver link;
    link.greet();
    link.subject.subscribe("a");
    EXPECT_EQ(link.pump(), encoded({"SUBSCRIBE", "a"}));
    link.subject.subscribe("a");
    EXPECT_EQ(link.pump(), "") << "once is enough";
    link.receive(">3\r\n+subscribe\r\n+a\r\n:1\r\n>3\r\n+message\r\n+a\r\n+hello\r\n");
    EXPECT_THAT(link.log, ElementsAre("up", "push: hello"));
    link.fail();
    EXPECT_EQ(link.greet({.client_id = 8, .run_id = "two"}), encoded({"SUBSCRIBE", "a"}));
}

TEST(Session, ItHearsAChannelOnceTheServerHasConfirmedItOnThisLink) {
    const std::string confirmed = ">3\r\n+subscribe\r\n+a\r\n:1\r\n";
    session_driver link;
    EXPECT_FALSE(link.subject.hears("a"));
    link.greet();
    link.subject.subscribe("a");
    link.pump();
    EXPECT_FALSE(link.subject.hears("a")) << "asked for";
    link.receive(confirmed);
    EXPECT_TRUE(link.subject.hears("a"));
    EXPECT_FALSE(link.subject.hears("b"));
    link.fail();
    EXPECT_FALSE(link.subject.hears("a")) << "without a link";
    link.greet({.client_id = 8, .run_id = "two"});
    EXPECT_FALSE(link.subject.hears("a"));
    link.receive(confirmed);
    EXPECT_TRUE(link.subject.hears("a"));
}

TEST(Session, AConnectionThatIsNotMadeInTimeIsGivenUp) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.tick();
    ASSERT_EQ(link.connects, 1);
    EXPECT_EQ(link.subject.deadline(), link.now + 2s);
    link.sleep_until_due();
    EXPECT_THAT(link.log, ElementsAre("ping!unreachable"));
    EXPECT_EQ(link.hang_ups, 1);
}

TEST(Session, AGreetingThatIsNotAnsweredInTimeIsATimeout) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive("%4\r\n");
    link.sleep_until_due();
    EXPECT_THAT(link.log, ElementsAre("ping!request_timed_out"));
}

// Connect and request timeout are equal by default, so both are often due at the same instant.
TEST(Session, TheReasonOfASlowGreetingIsToldEvenIfTheCallersDeadlineCameWithIt) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    ping.give_up_at(link.now + 2s);
    link.submit(ping);
    link.connect();
    link.now += 3s;
    link.tick();
    EXPECT_THAT(link.log, ElementsAre("ping!request_timed_out"));
}

TEST(Session, AServerThatLeavesTheTlsHandshakeUnansweredSpeaksPlainText) {
    session_driver link("rediss://h");
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.tick();
    link.subject.reached();
    link.sleep_until_due();
    EXPECT_EQ(ping.last.code, errc::tls_unexpected);
}

TEST(Session, ATlsAlertInPlainTextMeansTheServerWantsTls) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive("\x15\x03\x03");
    EXPECT_EQ(ping.last.code, errc::tls_expected);
}

TEST(Session, APlainLinkClosedBeforeAWordMeansTheServerWantsTls) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.fail(errc::unreachable);
    EXPECT_EQ(ping.last.code, errc::tls_expected);
}

// A proxy closes, too, while the server behind it is starting.
TEST(Session, ACommandThatWaitsForTheFirstLinkOutlastsASilentClose) {
    session_driver link;
    recorded_command waits(link.log, "waits");
    waits.wait_for_first_link();
    link.submit(waits);
    link.connect();
    link.fail(errc::unreachable);
    EXPECT_EQ(link.subject.why_not_up().code, errc::tls_expected) << "what to say if nothing better comes";
    link.greet();
    EXPECT_EQ(waits.life(), redis::command::state::written);
}

TEST(Session, AServerThatHasSpokenOnceIsNotTakenForATlsServer) {
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.greet();
    link.fail();
    ping.give_up_at(link.now + 1s);
    link.connect();
    link.submit(ping);
    link.fail(errc::unreachable);
    while (link.log.back() != "ping!unreachable" && link.now < instant(1100s)) link.sleep_until_due();
    EXPECT_EQ(ping.last.code, errc::unreachable);
}

struct refusal_case {
    std::string answer;
    errc expected;
};

TEST(Session, ARefusedGreetingIsToldByItsReason) {
    const std::vector<refusal_case> cases{
        {"-WRONGPASS invalid username-password pair or user is disabled.\r\n", errc::wrong_password},
        {"-NOAUTH HELLO must be called with the client already authenticated\r\n", errc::auth_required},
        {"-NOPERM this user has no permissions to run the 'hello' command\r\n", errc::no_permission},
        {"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n", errc::too_old},
        {"-NOPROTO unsupported protocol version\r\n", errc::too_old},
        {"*2\r\n+version\r\n+7.0.0\r\n", errc::too_old},
        {hello_answer({.version = "6.0.16"}), errc::too_old},
        {hello_answer({.version = "5.0.7"}), errc::too_old},
        {hello_answer({.role = "replica"}), errc::read_only},
        {"-LOADING Redis is loading the dataset in memory\r\n", errc::loading},
        {"+OK\r\n", errc::too_old},
        {"what is this?\r\n", errc::protocol_error},
        {"$99999999999\r\n", errc::reply_too_large},
    };
    for (const refusal_case& each : cases) {
        session_driver link("redis://:hunter2@db.example?resp=3");
        recorded_command ping(link.log, "ping");
        link.submit(ping);
        link.connect();
        link.receive(each.answer);
        EXPECT_EQ(ping.last.code, each.expected) << each.answer;
        EXPECT_THAT(ping.last.detail, HasSubstr("redis://db.example:6379")) << each.answer;
        EXPECT_THAT(ping.last.detail, Not(HasSubstr("hunter2")));
        EXPECT_EQ(link.hang_ups, 1) << each.answer;
        EXPECT_THAT(link.log, Not(::testing::Contains("up")));
    }
}

TEST(Session, TheOldestVersionSpokenToIs62) {
    session_driver link;
    link.greet({.version = "6.2.0"});
    EXPECT_TRUE(link.subject.up());
}

TEST(Session, TheFirstAttemptsFailureIsToldAtOnceLaterOnesWait) {
    session_driver link;
    recorded_command first(link.log, "first");
    link.submit(first);
    link.tick();
    link.fail(errc::connection_refused);
    EXPECT_EQ(first.last.code, errc::connection_refused);

    link.greet();
    link.fail();
    link.log.clear();
    recorded_command later(link.log, "later");
    later.give_up_at(link.now + 1s);
    link.submit(later);
    for (int i = 0; i < 3; ++i) {
        link.sleep_until_due();
        if (link.connects > 2 && later.life() == command::state::waiting) link.fail(errc::connection_refused);
    }
    EXPECT_THAT(link.log, IsEmpty()) << "the server may come back before the deadline";
    const instant deadline = later.deadline();
    while (link.now < deadline) link.sleep_until_due();
    EXPECT_EQ(link.now, deadline);
    EXPECT_EQ(later.last.code, errc::connection_refused) << "the reason, not just the time";
}

TEST(Session, OneThatWaitsForTheFirstLinkIsToldTheReasonAtItsDeadline) {
    session_driver link;
    recorded_command waits(link.log, "waits");
    waits.wait_for_first_link();
    waits.give_up_at(link.now + 1s);
    link.submit(waits);
    link.tick();
    const instant deadline = waits.deadline();
    while (link.now < deadline) {
        EXPECT_THAT(link.log, IsEmpty());
        if (link.connecting) link.fail(errc::connection_refused);
        link.sleep_until_due();
    }
    EXPECT_EQ(link.now, deadline);
    EXPECT_EQ(waits.last.code, errc::connection_refused);
    EXPECT_GT(link.connects, 2);
}

TEST(Session, OneThatWaitsForTheFirstLinkGoesOutOnIt) {
    session_driver link;
    recorded_command waits(link.log, "waits");
    waits.set_payload(encoded({"GET", "waits"}));
    waits.wait_for_first_link();
    recorded_command tries(link.log, "tries");
    link.submit(waits);
    link.submit(tries);
    link.tick();
    link.fail(errc::connection_refused);
    EXPECT_THAT(link.log, ElementsAre("tries!" + testing::name_of(errc::connection_refused)));
    EXPECT_EQ(link.greet(), encoded({"GET", "waits"}));
}

TEST(Session, OneThatWaitsForTheFirstLinkIsToldAtOnceWhatNoRetryCures) {
    session_driver link;
    recorded_command waits(link.log, "waits");
    waits.wait_for_first_link();
    link.submit(waits);
    link.connect();
    link.receive("-WRONGPASS no\r\n");
    EXPECT_EQ(waits.last.code, errc::wrong_password);
}

TEST(Session, AFailureThatNoRetryCuresIsToldAtOnceEvenLater) {
    session_driver link;
    link.greet();
    link.fail();
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive("-WRONGPASS no\r\n");
    EXPECT_EQ(ping.last.code, errc::wrong_password);
}

TEST(Session, ARequestThatIsNotAnsweredInTimeEndsTheLink) {
    session_driver link;
    link.greet();
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    EXPECT_EQ(link.subject.deadline(), link.now + 2s);
    link.sleep_until_due();
    EXPECT_THAT(link.log, ElementsAre("up", "ping!outcome_unknown", "down!request_timed_out"));
    EXPECT_EQ(link.hang_ups, 1);
    EXPECT_FALSE(link.subject.linked());
}

TEST(Session, AnIdleLinkIsAskedForASignOfLife) {
    session_driver link;
    link.greet();
    EXPECT_EQ(link.subject.deadline(), link.now + 5s);
    EXPECT_EQ(link.sleep_until_due(), encoded({"PING"}));
    link.receive("+PONG\r\n");
    link.now += 4s;
    EXPECT_EQ(link.tick(), "") << "heard of it just now";
    EXPECT_EQ(link.sleep_until_due(), encoded({"PING"}));
    link.sleep_until_due();
    EXPECT_THAT(link.log, ElementsAre("up", "down!request_timed_out"));
}

TEST(Session, RestsLongerAfterEveryFailureUpToALimitWithSomeChance) {
    session_driver link("redis://h?backoff_min=100ms&backoff_max=1s");
    link.tick();
    std::vector<std::chrono::nanoseconds> rests;
    for (int i = 0; i < 12; ++i) {
        link.fail(errc::connection_refused);
        const instant before = link.now;
        link.sleep_until_due();
        ASSERT_EQ(link.connects, i + 2);
        rests.push_back(link.now - before);
    }
    std::chrono::nanoseconds whole = 100ms;
    for (const auto rest : rests) {
        EXPECT_GE(rest, whole / 2);
        EXPECT_LE(rest, whole);
        whole = std::min<std::chrono::nanoseconds>(whole * 2, 1000ms);
    }
    EXPECT_NE(rests[10], rests[11]) << "chance spreads the clients of a restarted server";
}

TEST(Session, ASuccessMakesTheNextRestShortAgain) {
    session_driver link("redis://h?backoff_min=100ms&backoff_max=10s");
    link.tick();
    for (int i = 0; i < 6; ++i) {
        link.fail(errc::connection_refused);
        link.sleep_until_due();
    }
    link.subject.connected(link.now);
    link.pump();
    link.receive(greeting_answers({}));
    link.fail();
    EXPECT_LE(link.subject.deadline() - link.now, 100ms);
}

TEST(Session, ACallerCutsTheRestShortButNotBelowTheShortest) {
    session_driver link("redis://h?backoff_min=100ms&backoff_max=60s");
    link.tick();
    for (int i = 0; i < 8; ++i) {
        link.fail(errc::connection_refused);
        if (i < 7) link.sleep_until_due();
    }
    ASSERT_GT(link.subject.deadline() - link.now, 1s);
    const int before = link.connects;
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    EXPECT_EQ(link.subject.deadline() - link.now, 100ms);
    link.now += 100ms;
    link.tick();
    EXPECT_EQ(link.connects, before + 1);
}

// Regression: the commands of the greeting were destroyed during the callbacks of a lost link.
TEST(Session, ACommandRepeatedWhileItsLinkIsLostDisturbsNobody) {
    session_driver link;
    link.greet();
    link.now += 10s;  // long after the last attempt: the repeat may connect at once
    recorded_command repeated(link.log, "repeated");
    repeated.afterwards = [&](instant now) {
        if (repeated.last.code == errc::outcome_unknown) link.subject.submit(repeated, now);
    };
    link.subject.submit(repeated, link.now);
    link.pump();
    link.subject.subscribe("a");
    link.pump();  // written after it
    link.fail();
    EXPECT_EQ(repeated.life(), command::state::waiting);
    EXPECT_EQ(link.greet({.run_id = "two"}), encoded({"SUBSCRIBE", "a"}));
    EXPECT_EQ(link.receive(">3\r\n+subscribe\r\n+a\r\n:1\r\n"), encoded({"repeated"}));
}

TEST(Session, ASubscriptionThatWillNeverBeAllowedIsToldAndTheLinkGoesOn) {
    const std::string no = "-NOPERM this user has no permissions to access one of the channels\r\n";
    session_driver link;
    recorded_command ping(link.log, "ping");
    link.subject.subscribe("a");
    link.submit(ping);
    EXPECT_EQ(link.greet(), encoded({"SUBSCRIBE", "a"}));
    EXPECT_EQ(link.receive(no), encoded({"ping"}));
    link.subject.subscribe("a");
    EXPECT_EQ(link.pump(), encoded({"SUBSCRIBE", "a"})) << "the right may have been given meanwhile";
    link.receive("+PONG\r\n" + no);
    const std::string refused = "refused!" + testing::name_of(errc::no_permission);
    EXPECT_THAT(link.log, ElementsAre(refused, "up", "ping=PONG", refused));
    link.fail();
    link.greet({.run_id = "two"});
    EXPECT_TRUE(link.subject.up()) << "not asked for again by itself";
}

TEST(Session, ASubscriptionRefusedForAWhileIsTriedAgainOnTheNextLink) {
    session_driver link;
    link.subject.subscribe("a");
    link.greet();
    link.receive("-BUSY Redis is busy running a script.\r\n");
    EXPECT_FALSE(link.subject.linked());
    EXPECT_EQ(link.greet({.run_id = "two"}), encoded({"SUBSCRIBE", "a"}));
}

TEST(Session, ALinkThatIsDistrustedIsMadeAnew) {
    session_driver link;
    link.greet();
    link.subject.distrust({errc::read_only, "a replica now"}, link.now);
    link.pump();
    EXPECT_EQ(link.hang_ups, 1);
    EXPECT_FALSE(link.subject.linked());
    link.greet({.run_id = "two"});
    EXPECT_THAT(link.log, ::testing::Contains("up").Times(2));
}

TEST(Session, ClosingEndsEverythingForGood) {
    session_driver link;
    recorded_command written(link.log, "written");
    recorded_command late(link.log, "late");
    link.greet();
    link.submit(written);
    link.subject.close(link.now);
    link.pump();
    EXPECT_EQ(link.subject.deadline(), never);
    link.submit(late);
    EXPECT_THAT(link.log, ElementsAre("up", "written!outcome_unknown", "down!client_closed", "late!client_closed"));
    EXPECT_EQ(link.connects, 1);
    EXPECT_EQ(link.hang_ups, 1);
}

}  // namespace
}  // namespace holdfast::redis::session_test
