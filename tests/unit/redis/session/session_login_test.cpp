// User and password that change while a session lives, in virtual time. R59
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::session_login_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name_of;
using ::testing::Not;
using testing::recorded_command;

// The driver answers itself; this only records warnings.
struct recorded_source final : login_source {
    void ask(const std::string&, std::weak_ptr<login_receiver>) override {}
    void warn(std::string text) override { warnings.push_back(std::move(text)); }
    testing::event_log warnings;
};

class SessionLogin : public ::testing::Test {
protected:
    static server_settings settings(const std::shared_ptr<recorded_source>& source) {
        server_settings made = parse_url("redis://h?backoff_min=100ms&backoff_max=1s&health_interval=1h");
        made.logins = source;
        return made;
    }
    static std::string hello(const std::string& user, const std::string& password) {
        return encoded({"HELLO", "3", "AUTH", user, password}) + encoded({"CLIENT", "INFO"}) +
               encoded({"INFO", "server"});
    }

    // Until the session asks for user and password.
    bool is_asked() {
        for (int i = 0; i < 4; ++i) {
            if (link.subject.take_login_wish()) return true;
            if (link.subject.deadline() != never) link.sleep_until_due();
        }
        return false;
    }
    void give(login given) { link.subject.log_in_with(std::move(given), link.now); }
    // Asks, and gets that answer; returns the greeting.
    std::string connect_with(login given) {
        EXPECT_TRUE(is_asked());
        EXPECT_FALSE(link.connecting) << "not before the answer is there";
        give(std::move(given));
        link.pump();
        return link.connect();
    }
    void come_up(login given) {
        connect_with(std::move(given));
        link.receive(testing::greeting_answers({}));
        ASSERT_TRUE(link.subject.up());
        EXPECT_FALSE(link.subject.take_login_wish());
    }

    testing::event_log log;
    testing::recorded_session_events events{log};
    std::shared_ptr<recorded_source> source = std::make_shared<recorded_source>();
    testing::session_driver link{settings(source), events};
};

const std::string wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

TEST_F(SessionLogin, AsksBeforeEachConnection) {
    EXPECT_EQ(connect_with({"ann", secret("one")}), hello("ann", "one"));
    link.receive(testing::greeting_answers({}));
    link.fail();
    EXPECT_EQ(connect_with({"", secret("two")}), hello("default", "two"));
}

TEST_F(SessionLogin, LogsInAnewBeforeTheCredentialsExpire) {
    come_up({"ann", secret("one"), 10s});
    const instant since = link.now;
    ASSERT_TRUE(is_asked());
    EXPECT_GE(link.now - since, 6s);
    EXPECT_LE(link.now - since, 8s);
    link.now += 1h;
    EXPECT_FALSE(link.subject.take_login_wish()) << "one question at a time, however long it takes";
    give({"ann", secret("two"), 10s});
    EXPECT_EQ(link.pump(), encoded({"AUTH", "ann", "two"}));
    link.receive("+OK\r\n");
    EXPECT_TRUE(link.subject.up());
    EXPECT_TRUE(is_asked()) << "and again";
    EXPECT_THAT(source->warnings, IsEmpty());
    EXPECT_THAT(log, ElementsAre("up")) << "nobody else noticed";
}

TEST_F(SessionLogin, TheSameCredentialsAgainAreNotSent) {
    come_up({"ann", secret("one"), 10s});
    ASSERT_TRUE(is_asked());
    give({"ann", secret("one"), 10s});
    EXPECT_EQ(link.pump(), "");
    EXPECT_TRUE(is_asked());
}

TEST_F(SessionLogin, ARefusedLoginLeavesTheLinkAndIsRepeated) {
    come_up({"ann", secret("one"), 10s});
    recorded_command held(log, "held");
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(is_asked());
        if (i == 0) link.submit(held);
        give({"ann", secret("hunter2")});
        EXPECT_EQ(link.pump(), encoded({"AUTH", "ann", "hunter2"}));
        if (i == 0) link.receive("+done\r\n");
        link.receive(wrong);
        EXPECT_TRUE(link.subject.up());
    }
    ASSERT_EQ(source->warnings.size(), 3U) << "operators are told";
    EXPECT_THAT(source->warnings.front(), HasSubstr("WRONGPASS"));
    EXPECT_THAT(source->warnings.front(), HasSubstr("tried again in 100 ms"));
    EXPECT_THAT(source->warnings.back(), HasSubstr("tried again in 400 ms"));
    EXPECT_THAT(log, ElementsAre("up", "held=done"));
    ASSERT_TRUE(is_asked());
    give({"ann", secret("hunter2")});
    link.pump();
    link.receive("+OK\r\n");
    EXPECT_EQ(link.subject.deadline() - link.now, 1h) << "only a sign of life is due now";
}

TEST_F(SessionLogin, ARefusedGreetingIsRepeatedWithNewCredentials) {
    recorded_command patient(log, "patient");
    patient.wait_for_first_link();
    link.submit(patient);
    connect_with({"ann", secret("one")});
    link.receive(wrong);
    EXPECT_THAT(log, IsEmpty()) << "the server may know the new password already";
    come_up({"ann", secret("two")});
    link.receive("+done\r\n");
    EXPECT_THAT(log, ElementsAre("up", "patient=done"));
}

TEST_F(SessionLogin, TheSameRefusedTwiceIsFinalBeforeTheFirstLink) {
    recorded_command patient(log, "patient");
    patient.wait_for_first_link();
    link.submit(patient);
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(log, IsEmpty());
        connect_with({"ann", secret("one")});
        link.receive(wrong);
    }
    EXPECT_THAT(log, ElementsAre("patient!" + name_of(errc::wrong_password)));
}

TEST_F(SessionLogin, AfterTheFirstLinkNobodyFailsBecauseOfAPasswordThatChanges) {
    come_up({"ann", secret("one")});
    link.fail();
    recorded_command waits(log, "waits");
    waits.give_up_at(link.now + 1h);
    link.submit(waits);
    for (int i = 0; i < 5; ++i) {
        connect_with({"ann", secret("one")});
        link.receive(wrong);
    }
    EXPECT_THAT(log, ElementsAre("up", "down!unreachable"));
    EXPECT_EQ(link.subject.why_not_up().code, errc::wrong_password) << "told as what it is, at its deadline";
    come_up({"ann", secret("two")});
    EXPECT_EQ(link.receive("+done\r\n"), "");
    EXPECT_EQ(log.back(), "waits=done");
}

TEST_F(SessionLogin, WithoutAnyCredentialsTheAttemptFails) {
    recorded_command ping(log, "ping");
    link.submit(ping);
    ASSERT_TRUE(is_asked());
    EXPECT_EQ(link.subject.why_not_up().code, errc::no_credentials) << "it has not returned";
    link.subject.no_login({errc::no_credentials, "the store is down"}, link.now);
    EXPECT_THAT(log, ElementsAre("ping!" + name_of(errc::no_credentials)));
    EXPECT_EQ(connect_with({"ann", secret("one")}), hello("ann", "one")) << "asked again";
}

TEST_F(SessionLogin, TheLastCredentialsAreUsedIfThereAreNoNewOnes) {
    come_up({"ann", secret("hunter2"), 10s});
    ASSERT_TRUE(is_asked());
    link.subject.no_login({errc::no_credentials, "the store is down"}, link.now);
    EXPECT_TRUE(link.subject.up());
    ASSERT_TRUE(is_asked()) << "asked again";
    link.fail();
    ASSERT_FALSE(link.subject.take_login_wish()) << "that question is still open";
    while (!link.subject.take_connect_wish()) {
        link.sleep_until_due();
        link.subject.no_login({errc::no_credentials, "the store is down"}, link.now);
    }
    link.subject.connected(link.now);
    EXPECT_EQ(link.pump(), hello("ann", "hunter2"));
    ASSERT_EQ(source->warnings.size(), 2U);
    for (const std::string& warning : source->warnings) EXPECT_THAT(warning, Not(HasSubstr("hunter2")));
}

TEST_F(SessionLogin, AnAnswerThatComesTooLateIsForgotten) {
    come_up({"ann", secret("one"), 10s});
    ASSERT_TRUE(is_asked());
    link.fail();
    give({"ann", secret("two")});
    EXPECT_EQ(connect_with({"ann", secret("three")}), hello("ann", "three"));
}

// A Redis that does not know HELLO shows its arguments, and the password is among them.
TEST_F(SessionLogin, NoErrorShowsThePassword) {
    for (const std::string& refusal :
         {std::string("-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'ann' 'hunter2' \r\n"),
          std::string("-ERR I do not know hunter2\r\n")}) {
        connect_with({"ann", secret("hunter2")});
        link.receive(refusal);
        EXPECT_THAT(link.subject.last_failure().detail, Not(HasSubstr("hunter2")));
    }
    come_up({"ann", secret("one"), 10s});
    ASSERT_TRUE(is_asked());
    give({"ann", secret("hunter2")});
    link.pump();
    link.receive("-ERR unknown command 'AUTH', with args beginning with: 'ann' 'hunter\r\n");
    EXPECT_THAT(source->warnings.back(), HasSubstr("unknown command"));
    EXPECT_THAT(source->warnings.back(), Not(HasSubstr("hunter")));
}

TEST_F(SessionLogin, APasswordFileIsKnownToAllLinksOfAServer) {
    const server_settings cluster = parse_url("redis+cluster://a:1,b:2");
    server_settings with_source = cluster;
    with_source.logins = source;
    EXPECT_EQ(with_source.for_member({"c", 3}).logins, source);
    server_settings watched = parse_url("redis+sentinel://a,b/mine");
    watched.logins = source;
    EXPECT_EQ(watched.for_sentinel({"a", 1}).logins, nullptr) << "sentinels have credentials of their own";
    watched.sentinels->logins = source;
    EXPECT_EQ(watched.for_sentinel({"a", 1}).logins, source);
}

}  // namespace
}  // namespace holdfast::redis::session_login_test
