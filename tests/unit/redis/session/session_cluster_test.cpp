// A session with one member of a Cluster: what the member must be, and what happens to unwritten commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/session/session.hpp"
#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::session_cluster_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::encoded;
using testing::event_log;
using testing::fake_server_facts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name_of;
using testing::recorded_command;
using testing::session_driver;

class stranding_events : public testing::recorded_session_events {
public:
    using recorded_session_events::recorded_session_events;
    void on_stranded(std::deque<command*> unwritten, const failure& why, instant) override {
        log.push_back("stranded " + std::to_string(unwritten.size()) + "!" + name_of(why.code));
        for (command* each : unwritten) EXPECT_EQ(each->life(), command::state::idle);
        last = std::move(unwritten);
        reason = why;
    }
    event_log log;
    std::deque<command*> last;
    failure reason;
};

class SessionCluster : public ::testing::Test {
protected:
    static server_settings settings(link_use use) {
        server_settings made = parse_url("redis://one:7001?backoff_min=100ms&backoff_max=60s");
        made.use = use;
        return made;
    }
    // Why such a server is refused; empty if it is not.
    static failure verdict(link_use use, const fake_server_facts& server) {
        event_log log;
        stranding_events told(log);
        session_driver link(settings(use), told);
        link.greet(server);
        return link.subject.up() ? failure{errc{}, ""} : link.subject.last_failure();
    }

    event_log log;
    stranding_events told{log};
    session_driver link{settings(link_use::cluster), told};
    recorded_command a{log, "a"};
    recorded_command b{log, "b"};
};

const fake_server_facts member{.mode = "cluster"};

TEST_F(SessionCluster, TakesMembersOnly) {
    EXPECT_EQ(verdict(link_use::cluster, member).code, errc{});
    const failure alone = verdict(link_use::cluster, {});
    EXPECT_EQ(alone.code, errc::bad_topology);
    EXPECT_THAT(alone.detail, HasSubstr("one:7001/0 is not a member of a Cluster; use redis://"));
}

TEST_F(SessionCluster, TakesNoMemberBefore70) {
    const failure old = verdict(link_use::cluster, {.version = "6.2.14", .mode = "cluster"});
    EXPECT_EQ(old.code, errc::too_old);
    EXPECT_THAT(old.detail, HasSubstr("7.0 or later"));
    EXPECT_EQ(verdict(link_use::cluster, {.version = "7.0.0", .mode = "cluster"}).code, errc{});
}

TEST_F(SessionCluster, AReplicaCanBeAskedAboutTheOthers) {
    EXPECT_EQ(verdict(link_use::cluster, {.role = "replica", .mode = "cluster"}).code, errc{});
}

TEST_F(SessionCluster, AMemberIsNoSingleServer) {
    const failure member_alone = verdict(link_use::server, member);
    EXPECT_EQ(member_alone.code, errc::bad_topology);
    EXPECT_THAT(member_alone.detail, HasSubstr("use redis+cluster://"));
}

TEST_F(SessionCluster, AToolMayLookAtOnePrimaryAsIfItWereAlone) {
    EXPECT_EQ(verdict(link_use::member, member).code, errc{});
    EXPECT_EQ(verdict(link_use::member, {.role = "replica", .mode = "cluster"}).code, errc::read_only);
}

TEST_F(SessionCluster, SettingsOfAMemberAreThoseOfTheClusterElsewhere) {
    const server_settings one = parse_url("rediss://bob:pw@seed:1?request_timeout=7s").for_member({"two", 7002});
    EXPECT_EQ(one.display(), "rediss://bob@two:7002/0");
    EXPECT_EQ(one.password.reveal(), "pw");
    EXPECT_EQ(one.request_timeout, 7s);
    EXPECT_EQ(one.use, link_use::cluster);
}

TEST_F(SessionCluster, WhatIsNotWrittenIsHandedBackWhenTheLinkIsLost) {
    link.greet(member);
    link.submit(a);
    link.subject.submit(b, link.now);  // not pumped: not written
    EXPECT_TRUE(link.subject.is_waiting(b));
    EXPECT_FALSE(link.subject.idle());
    link.fail();
    EXPECT_THAT(log, ElementsAre("up", "a!outcome_unknown", "down!unreachable"));
    EXPECT_THAT(told.log, ElementsAre("stranded 1!unreachable"));
    EXPECT_THAT(told.last, ElementsAre(&b));
    EXPECT_TRUE(link.subject.idle());
}

TEST_F(SessionCluster, AnAttemptThatFailsIsToldThoughNothingWaits) {
    link.tick();
    link.fail(errc::connection_refused);
    EXPECT_THAT(told.log, ElementsAre("stranded 0!" + name_of(errc::connection_refused)));
    EXPECT_THAT(log, IsEmpty()) << "there was no link that could go down";
}

TEST_F(SessionCluster, AFailureThatNoRetryCuresEndsNobodyHere) {
    link.subject.submit(a, link.now);
    link.connect();
    link.receive("-WRONGPASS no\r\n");
    EXPECT_THAT(log, IsEmpty()) << "another member may take it";
    EXPECT_THAT(told.last, ElementsAre(&a));
    EXPECT_EQ(told.reason.code, errc::wrong_password);
}

TEST_F(SessionCluster, HurryCutsTheRestShort) {
    link.tick();
    for (int i = 0; i < 8; ++i) {
        link.fail(errc::connection_refused);
        if (i < 7) link.sleep_until_due();
    }
    ASSERT_GT(link.subject.deadline() - link.now, 1s);
    link.subject.hurry(link.now);
    EXPECT_EQ(link.subject.deadline() - link.now, 100ms) << "but not below the shortest";
}

TEST_F(SessionCluster, RefusalsGoThroughTheFilter) {
    class redirected : public refusal_filter {
    public:
        bool takes(command& request, const reply_view& refusal, instant) override {
            taken.push_back(&request);
            return refusal.text().starts_with("MOVED");
        }
        std::vector<command*> taken;
    } filter;
    link.subject.filter_refusals(&filter);
    link.greet(member);
    link.submit(a);
    link.receive("-MOVED 1 two:7002\r\n");
    EXPECT_THAT(filter.taken, ElementsAre(&a));
    EXPECT_THAT(log, ElementsAre("up"));
}

}  // namespace
}  // namespace holdfast::redis::session_cluster_test
