// A link that speaks RESP2, because the URL says so or the server refuses HELLO 3; and the second one, which only
// listens. In virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit/redis/session_driver.hpp"

namespace holdfast::redis::session_resp2_test {
namespace {

using namespace std::chrono_literals;
using testing::bulk;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::HasSubstr;
using testing::recorded_command;
using testing::session_driver;

const std::string unknown_hello = "-ERR unknown command 'HELLO', with args beginning with: '3' \r\n";
const std::string who_am_i = encoded({"CLIENT", "INFO"}) + encoded({"INFO", "server"});
const std::string questions = who_am_i + encoded({"INFO", "replication"});

std::string server_info(const std::string& version, const std::string& mode) {
    return bulk("# Server\r\nredis_version:" + version + "\r\nredis_mode:" + mode + "\r\nrun_id:run-one\r\n");
}
const std::string client_info = bulk("id=7 addr=127.0.0.1:5000 laddr=127.0.0.1:1\n");
const std::string primary = bulk("# Replication\r\nrole:master\r\n");
const std::string answers = client_info + server_info("7.0.15", "standalone") + primary;
/// Message, confirmation or answer to PING, as a link that listens by RESP2 gets them.
std::string told(const std::string& kind, const std::string& channel, const std::string& last) {
    return "*3\r\n" + bulk(kind) + bulk(channel) + last;
}
const std::string confirmed = told("subscribe", "news", ":1\r\n");

TEST(SessionResp2, TheUrlMayAskForItAtOnce) {
    session_driver link("redis://ann:pw@h/3?resp=2&client_name=me");
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    EXPECT_EQ(link.connect(), encoded({"AUTH", "ann", "pw"}) + encoded({"CLIENT", "SETNAME", "me"}) +
                                  encoded({"SELECT", "3"}) + questions);
    EXPECT_EQ(link.receive("+OK\r\n+OK\r\n+OK\r\n" + answers), encoded({"ping"}));
    link.receive("+PONG\r\n");
    EXPECT_THAT(link.log, ElementsAre("up", "ping=PONG"));
    const server_facts& facts = link.subject.facts();
    EXPECT_EQ(facts.resp, 2U);
    EXPECT_EQ(facts.version, "7.0.15");
    EXPECT_EQ(facts.mode, "standalone");
    EXPECT_EQ(facts.role, "master");
    EXPECT_EQ(facts.client_id, 7);
    EXPECT_EQ(facts.run_id, "run-one");
}

TEST(SessionResp2, ARefusedHelloLeadsToItOnTheSameLink) {
    for (const std::string& refusal :
         {unknown_hello, std::string("-NOPROTO unsupported protocol version\r\n"),
          std::string("-NOPERM this user has no permissions to run the 'hello' command\r\n"),
          std::string("-ERR unsupported command\r\n"), std::string("-unsupported command 'HELLO'\r\n"),
          std::string("-ERR command 'HELLO' is not allowed\r\n"),
          std::string("-ERR handle request, command HELLO not support\r\n"), std::string("-ERR invalid request\r\n"),
          std::string("-NOAUTH Authentication required.\r\n")}) {
        session_driver link("redis://:pw@h/3");
        link.connect();
        // What follows HELLO in its burst fails for want of a login, and counts for nothing.
        const std::string noauth = "-NOAUTH Authentication required.\r\n";
        EXPECT_EQ(link.receive(refusal + noauth + noauth),
                  encoded({"AUTH", "default", "pw"}) + encoded({"SELECT", "3"}) + questions)
            << refusal;
        EXPECT_EQ(link.receive(noauth + "+OK\r\n+OK\r\n" + answers), "");
        EXPECT_TRUE(link.subject.up()) << refusal;
        EXPECT_EQ(link.subject.facts().resp, 2U);
        EXPECT_EQ(link.hang_ups, 0);
    }
}

TEST(SessionResp2, AnErrorThatSaysSomethingElseIsNoRefusalOfHello) {
    for (const std::string& error :
         {std::string("-WRONGPASS invalid username-password pair\r\n"), std::string("-LOADING Redis is loading\r\n"),
          std::string("-ERR max number of clients reached\r\n"),
          std::string("-MASTERDOWN Link with MASTER is down\r\n")}) {
        session_driver link("redis://:pw@h");
        link.connect();
        EXPECT_EQ(link.receive(error), "") << error;
        EXPECT_EQ(link.hang_ups, 1) << error;
    }
    session_driver link;  // NOAUTH without a login asks for one
    link.connect();
    link.receive("-NOAUTH Authentication required.\r\n");
    EXPECT_EQ(link.hang_ups, 1);
}

TEST(SessionResp2, EachLinkAsksForRESP3First) {
    session_driver link;
    link.connect();
    link.receive(unknown_hello + client_info + server_info("7.0.15", "standalone") + answers);
    ASSERT_EQ(link.subject.facts().resp, 2U);
    link.fail();
    link.greet();
    EXPECT_TRUE(link.subject.up());
    EXPECT_EQ(link.subject.facts().resp, 3U);
}

TEST(SessionResp2, TheUrlMayRuleItOut) {
    session_driver link("redis://h?resp=3");
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive(unknown_hello);
    EXPECT_EQ(ping.last.code, errc::too_old);
    EXPECT_THAT(ping.last.detail, HasSubstr("resp=2"));
}

TEST(SessionResp2, WhatTheServerMustBeIsReadFromInfo) {
    const struct {
        std::string url;
        std::string info;
        errc expected;
    } cases[] = {
        {"redis://h?resp=2", client_info + server_info("6.0.16", "standalone") + primary, errc::too_old},
        {"redis://h?resp=2", client_info + server_info("7.0.15", "cluster") + primary, errc::bad_topology},
        {"redis://h?resp=2", client_info + server_info("7.0.15", "standalone") + bulk("role:slave\r\n"),
         errc::read_only},
        {"redis://ann:pw@h?resp=2", "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
         errc::wrong_password},
        {"redis://h/99?resp=2", "-ERR DB index is out of range\r\n", errc::no_such_database},
    };
    for (const auto& each : cases) {
        session_driver link(each.url);
        recorded_command ping(link.log, "ping");
        link.submit(ping);
        link.connect();
        link.receive(each.info);
        EXPECT_EQ(ping.last.code, each.expected) << each.info;
    }
}

// Valkey writes server_mode, and redis_mode only when it was told to be like Redis.
TEST(SessionResp2, TheModeOfValkeyIsRead) {
    const std::string info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:cluster\r\n";
    session_driver link("redis://h?resp=2");
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.connect();
    link.receive(client_info + bulk(info) + primary);
    EXPECT_EQ(link.subject.facts().mode, "cluster");
    EXPECT_EQ(ping.last.code, errc::bad_topology);
}

TEST(SessionResp2, WhatTheServerDoesNotTellIsNoReasonToRefuseIt) {
    session_driver link("redis://h?resp=2");
    link.connect();
    const std::string refused = "-NOPERM this user has no permissions\r\n";
    link.receive(refused + refused + refused);
    EXPECT_TRUE(link.subject.up());
}

// A subscription would make every other command of the link an error.
TEST(SessionResp2, TheLinkOfTheRequestsNeverSubscribes) {
    session_driver link("redis://h?resp=2");
    link.subject.subscribe("news");
    link.connect();
    EXPECT_EQ(link.receive(answers), "");
    EXPECT_TRUE(link.subject.up());
    link.subject.subscribe("more");
    EXPECT_EQ(link.pump(), "");
    EXPECT_FALSE(link.subject.hears("news"));
}

TEST(SessionResp2, AnArrayIsNoPushOnTheLinkOfTheRequests) {
    session_driver link("redis://h?resp=2");
    recorded_command get(link.log, "get");
    link.submit(get);
    link.connect();
    link.receive(answers);
    link.receive(told("message", "news", bulk("hello")));
    EXPECT_THAT(link.log, ElementsAre("up", "get=[3]"));
}

class SessionResp2Listening : public ::testing::Test {
protected:
    testing::event_log log;
    testing::recorded_session_events events{log};
    session_driver link{parse_url("redis://ann:pw@h/3?health_interval=1h").for_wakes(), events};

    void come_up() {
        link.subject.subscribe("news");
        link.connect();
        link.receive("+OK\r\n" + client_info + server_info("7.0.15", "standalone"));
        link.receive(confirmed);
        ASSERT_TRUE(link.subject.up());
    }
};

TEST_F(SessionResp2Listening, LogsInAndSubscribesAndNothingElse) {
    link.subject.subscribe("news");
    EXPECT_EQ(link.connect(), encoded({"AUTH", "ann", "pw"}) + who_am_i);
    EXPECT_EQ(link.receive("+OK\r\n" + client_info + server_info("7.0.15", "standalone")),
              encoded({"SUBSCRIBE", "news"}));
    EXPECT_FALSE(link.subject.hears("news"));
    link.receive(confirmed);
    EXPECT_TRUE(link.subject.hears("news"));
}

TEST_F(SessionResp2Listening, MessagesAreArrays) {
    come_up();
    link.receive(told("message", "news", bulk("one")) + told("message", "news", bulk("")) +
                 told("message", "news", bulk("two")));
    EXPECT_THAT(log, ElementsAre("up", "push: one", "push: ", "push: two"));
}

TEST_F(SessionResp2Listening, AMessageMayComeBeforeTheLastSubscriptionIsConfirmed) {
    link.subject.subscribe("news");
    link.subject.subscribe("weather");
    link.connect();
    link.receive("+OK\r\n" + client_info + server_info("7.0.15", "standalone"));
    link.receive(confirmed + told("message", "news", bulk("one")) + told("subscribe", "weather", ":2\r\n"));
    EXPECT_TRUE(link.subject.up());
    EXPECT_THAT(log, ElementsAre("push: one", "up"));
}

TEST_F(SessionResp2Listening, ASignOfLifeIsAnsweredByAnArrayBetweenMessages) {
    come_up();
    EXPECT_EQ(link.sleep_until_due(), encoded({"PING"}));
    link.receive(told("message", "news", bulk("one")) + "*2\r\n" + bulk("pong") + bulk(""));
    EXPECT_TRUE(link.subject.up());
    EXPECT_EQ(link.subject.deadline() - link.now, 1h) << "it was answered";
    EXPECT_THAT(log, Contains("push: one"));
}

TEST_F(SessionResp2Listening, ARefusedSubscriptionIsTold) {
    link.subject.subscribe("news");
    link.connect();
    link.receive("+OK\r\n" + client_info + server_info("7.0.15", "standalone"));
    link.receive("-ERR unknown command 'SUBSCRIBE', with args beginning with: 'news' \r\n");
    EXPECT_THAT(log, ElementsAre("refused!" + testing::name_of(errc::unsupported), "up"));
    EXPECT_FALSE(link.subject.hears("news"));
}

struct silent_source final : login_source {
    void ask(const std::string&, std::weak_ptr<login_receiver>) override {}
    void warn(std::string) override {}
};

// Such a link takes no AUTH.
TEST(SessionResp2Login, ALinkThatListensIsMadeAnewBeforeTheCredentialsExpire) {
    testing::event_log log;
    testing::recorded_session_events events{log};
    server_settings settings = parse_url("redis://h?health_interval=1h").for_wakes();
    settings.logins = std::make_shared<silent_source>();
    session_driver link{settings, events};
    link.subject.subscribe("news");
    link.tick();
    ASSERT_TRUE(link.subject.take_login_wish());
    link.subject.log_in_with({"ann", secret("one"), 10s}, link.now);
    link.pump();
    EXPECT_EQ(link.connect(), encoded({"AUTH", "ann", "one"}) + who_am_i);
    link.receive("+OK\r\n" + client_info + server_info("7.0.15", "standalone"));
    link.receive(confirmed);
    ASSERT_TRUE(link.subject.up());
    const instant since = link.now;
    while (link.subject.up()) link.sleep_until_due();
    EXPECT_GE(link.now - since, 6s);
    EXPECT_LE(link.now - since, 8s);
    link.tick();
    ASSERT_TRUE(link.subject.take_login_wish()) << "at once";
    link.subject.log_in_with({"ann", secret("two"), 10s}, link.now);
    link.pump();
    EXPECT_EQ(link.connect(), encoded({"AUTH", "ann", "two"}) + who_am_i);
}

}  // namespace
}  // namespace holdfast::redis::session_resp2_test
