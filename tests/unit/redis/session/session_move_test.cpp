// A session with sentinels: it seeks the address before it connects, and moves when found() says so.
#include "redis/session/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::session_move_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::recorded_command;
using testing::session_driver;

const server_address first{"one", 7001};
const server_address second{"two", 7002};

class SessionMove : public ::testing::Test {
protected:
    explicit SessionMove(std::string_view url = "redis+sentinel://a,b/mine") : link(url) {}

    void seek() {
        link.tick();
        ASSERT_TRUE(link.subject.take_seek_wish());
        EXPECT_FALSE(link.connecting);
    }
    void find(const server_address& where) {
        link.subject.found(where, link.now);
        link.pump();
    }
    void come_up(const server_address& where = first) {
        seek();
        find(where);
        ASSERT_TRUE(link.connecting);
        link.greet({.run_id = where.host});
        ASSERT_TRUE(link.subject.up());
    }
    std::string host() const { return link.subject.settings().host; }

    session_driver link;
};

TEST_F(SessionMove, AsksWhereTheServerIsBeforeItConnects) {
    seek();
    EXPECT_EQ(link.connects, 0);
    EXPECT_EQ(link.subject.deadline(), never) << "that takes as long as it takes";
    find(first);
    EXPECT_EQ(link.connects, 1);
    EXPECT_EQ(host(), "one");
    EXPECT_EQ(link.subject.settings().port, 7001);
    EXPECT_EQ(link.subject.deadline(), link.now + 2s);
}

TEST_F(SessionMove, AsksAgainAfterEveryFailure) {
    come_up();
    link.fail();
    EXPECT_FALSE(link.subject.take_seek_wish()) << "not before it has rested";
    link.now = link.subject.deadline();
    seek();
    find(first);
    link.fail(errc::connection_refused);
    link.now = link.subject.deadline();
    seek();
}

TEST_F(SessionMove, ThatNobodyKnowsIsAFailedAttempt) {
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    seek();
    link.fail(errc::no_primary);
    EXPECT_EQ(ping.last.code, errc::no_primary);
    EXPECT_GT(link.subject.deadline(), link.now) << "it rests";
}

TEST_F(SessionMove, OneThatWaitsForTheFirstLinkWaitsForThePrimaryToBeKnown) {
    recorded_command waits(link.log, "waits");
    waits.wait_for_first_link();
    link.submit(waits);
    seek();
    link.fail(errc::no_primary);
    EXPECT_EQ(waits.life(), command::state::waiting);
    EXPECT_EQ(link.subject.why_not_up().code, errc::no_primary);
}

TEST_F(SessionMove, LeavesTheOldLinkAtOnceAndRepeatsNothingByItself) {
    come_up();
    recorded_command written(link.log, "written");
    link.submit(written);
    link.log.clear();
    find(second);
    EXPECT_THAT(link.log, ElementsAre("written!outcome_unknown", "down!unreachable"));
    EXPECT_THAT(written.last.detail, HasSubstr("two:7002"));
    EXPECT_EQ(link.hang_ups, 1);
    EXPECT_EQ(link.subject.deadline(), link.now) << "no rest";
    link.tick();
    EXPECT_FALSE(link.subject.take_seek_wish()) << "it was just told";
    EXPECT_EQ(link.connects, 2);
    EXPECT_EQ(host(), "two");
}

TEST_F(SessionMove, WhatWaitsGoesOutOnTheNewLink) {
    seek();
    recorded_command waiting(link.log, "waiting");
    link.submit(waiting);
    find(first);
    find(second);
    EXPECT_THAT(link.log, IsEmpty()) << "though no link was ever up";
    link.tick();
    EXPECT_EQ(link.greet(), encoded({"waiting"}));
}

TEST_F(SessionMove, KillsNobodyOnTheServerItMovedTo) {
    come_up();
    link.subject.subscribe("a");
    link.pump();
    find(second);
    EXPECT_EQ(link.greet({.client_id = 8, .run_id = "two"}), encoded({"SUBSCRIBE", "a"}));
}

TEST_F(SessionMove, BeingToldTheSameChangesNothing) {
    come_up();
    find(first);
    EXPECT_TRUE(link.subject.up());
    EXPECT_EQ(link.hang_ups, 0);
}

TEST_F(SessionMove, AnAttemptThatGoesToTheWrongAddressIsGivenUp) {
    seek();
    find(first);
    find(second);
    EXPECT_EQ(link.hang_ups, 1);
    link.tick();
    EXPECT_EQ(link.connects, 2);
    EXPECT_EQ(host(), "two");
}

TEST_F(SessionMove, AnAddressFoundDuringARestEndsIt) {
    come_up();
    link.fail();
    for (int i = 0; i < 5; ++i) {  // until the rests are long
        link.now = link.subject.deadline();
        seek();
        find(first);
        link.fail(errc::connection_refused);
    }
    EXPECT_GT(link.subject.deadline(), link.now + 100ms);
    find(second);
    EXPECT_EQ(link.subject.deadline(), link.now);
    link.tick();
    EXPECT_EQ(host(), "two");
    EXPECT_TRUE(link.connecting);
    link.fail(errc::connection_refused);
    EXPECT_LE(link.subject.deadline(), link.now + 20ms) << "and begins anew with short ones";
}

TEST_F(SessionMove, RestsLongerAndLongerWhileItIsSentToAndFro) {
    come_up();
    link.fail();
    for (int i = 0; i < 6; ++i) {
        link.now = link.subject.deadline();
        seek();
        find(i % 2 == 0 ? second : first);
        link.fail(errc::connection_refused);
    }
    EXPECT_GT(link.subject.deadline(), link.now + 100ms);
}

TEST_F(SessionMove, AReplicaIsNotUsedThoughTheSentinelsNameIt) {
    seek();
    find(first);
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    link.greet({.role = "replica"});
    EXPECT_EQ(ping.last.code, errc::read_only);
    EXPECT_THAT(ping.last.detail, HasSubstr("one:7001"));
    EXPECT_THAT(link.log, Not(Contains("up")));
    link.now = link.subject.deadline();
    seek();
}

class SessionMoveTls : public SessionMove {
protected:
    SessionMoveTls() : SessionMove("rediss+sentinel://a,b/mine") {}

    /// The server hangs. The next attempt reaches the handshake.
    void shake_hands() {
        link.now = std::max(link.now, link.subject.deadline());
        seek();
        find(first);
        link.subject.reached();
    }
};

// Its kernel still accepts connections.
TEST_F(SessionMoveTls, APrimaryThatHangsDoesNotEndWhatWaitsForItsSuccessor) {
    come_up();
    link.fail();
    recorded_command waiting(link.log, "waiting");
    link.submit(waiting);
    shake_hands();
    link.sleep_until_due();
    EXPECT_EQ(link.subject.last_failure().code, errc::request_timed_out);
    EXPECT_THAT(link.subject.last_failure().detail, HasSubstr("TLS handshake"));
    shake_hands();
    link.fail();  // the server is killed
    EXPECT_EQ(link.subject.last_failure().code, errc::unreachable);
    EXPECT_THAT(link.log, Not(Contains(HasSubstr("waiting"))));
    find(second);
    link.tick();
    EXPECT_EQ(link.greet({.run_id = "two"}), encoded({"waiting"}));
}

TEST_F(SessionMoveTls, APrimaryThatWasNeverReachedMayNotSpeakTls) {
    recorded_command ping(link.log, "ping");
    link.submit(ping);
    shake_hands();
    link.fail();
    EXPECT_EQ(ping.last.code, errc::tls_unexpected);
}

TEST_F(SessionMove, AClosedSessionGoesNowhere) {
    come_up();
    link.subject.close(link.now);
    link.pump();
    find(second);
    link.tick();
    EXPECT_EQ(link.connects, 1);
}

}  // namespace
}  // namespace holdfast::redis::session_move_test
