// Which sentinel is believed about the primary. The test plays the sentinels in virtual time.
#include "redis/sentinel/sentinel_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::sentinel_watch_test {
namespace {

using namespace std::chrono_literals;
using testing::bulk;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::session_driver;

const std::string questions =
    encoded({"SENTINEL", "MASTER", "mine"}) + encoded({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine"});

/// Three sentinels a, b, c, by number, and what the listener is told.
class SentinelWatch : public ::testing::Test, protected primary_listener {
protected:
    SentinelWatch() {
        for (std::size_t i = 0; i < watch.size(); ++i) {
            links.emplace_back(settings.for_sentinel(settings.sentinels->addresses[i]), watch.listener(i));
            watch.attach(i, links[i].subject);
        }
    }

    void on_primary(const known_primary& found, instant) override {
        told.push_back(to_text(found.address));
        since = found.since;
    }
    void on_later_take_over(const known_primary& found, instant) override {
        told.push_back("again " + to_text(found.address));
        since = found.since;
    }
    void on_no_primary(const failure& failed, instant) override {
        told.push_back("none!" + testing::name_of(failed.code));
        why = failed;
    }

    void settle() {
        watch.on_timer(now);
        for (session_driver& each : links) sent += each.pump();
    }
    void seek() {
        watch.seek(now);
        settle();
    }
    void pass(std::chrono::nanoseconds time) {
        now += time;
        for (session_driver& each : links) {
            each.now = now;
            sent += each.tick();
        }
        settle();
    }
    void comes_up(std::size_t which, const std::string& mode = "sentinel") {
        links[which].greet({.role = "", .mode = mode, .run_id = std::to_string(which)});
        links[which].receive(">3\r\n" + bulk("subscribe") + bulk("+switch-master") + ":1\r\n");
        settle();
    }
    void all_come_up() {
        for (std::size_t i = 0; i < links.size(); ++i) comes_up(i);
    }
    void receives(std::size_t which, const std::string& bytes) {
        sent += links[which].receive(bytes);
        settle();
    }
    void says(std::size_t which, int port, int epoch) {
        receives(which, "%4\r\n" + bulk("ip") + bulk("h") + bulk("port") +
                            bulk(std::to_string(record_of.value_or(port))) + bulk("role-reported-time") +
                            bulk(std::to_string(known_for)) + bulk("config-epoch") + bulk(std::to_string(epoch)) +
                            "*2\r\n" + bulk("h") + bulk(std::to_string(port)));
    }
    void knows_nothing(std::size_t which) { receives(which, "-ERR No such master with that name\r\n_\r\n"); }
    void fails(std::size_t which, errc code = errc::connection_refused) {
        if (!links[which].subject.linked()) links[which].tick();
        links[which].fail(code);
        settle();
    }
    void announces(std::size_t which, const std::string& name = "mine") {
        sent.clear();
        receives(which, ">3\r\n" + bulk("message") + bulk("+switch-master") + bulk(name + " h 1 h 2"));
    }
    /// All are up and agree on port 1, epoch 1.
    void agree() {
        seek();
        all_come_up();
        for (std::size_t i = 0; i < links.size(); ++i) says(i, 1, 1);
        ASSERT_THAT(told, ElementsAre("h:1"));
        told.clear();
        sent.clear();
    }

    const server_settings settings = parse_url("redis+sentinel://u:hunter2@a,b,c/mine");
    instant now{1000s};
    std::vector<std::string> told;
    std::optional<std::chrono::milliseconds> since;
    failure why;
    std::string sent;
    int known_for = 5000;          // ms
    std::optional<int> record_of;  // the port in their record, if it differs from their answer
    sentinel_watch watch{settings, *this};
    std::deque<session_driver> links;
};

TEST_F(SentinelWatch, ListensBeforeItAsks) {
    EXPECT_EQ(links[0].greet({.mode = "sentinel"}), encoded({"SUBSCRIBE", "+switch-master"}));
    EXPECT_EQ(links[0].receive(">3\r\n" + bulk("subscribe") + bulk("+switch-master") + ":1\r\n"), questions);
}

TEST_F(SentinelWatch, TheFirstAnswerIsEnoughToBegin) {
    seek();
    all_come_up();
    EXPECT_THAT(told, IsEmpty());
    says(1, 7000, 3);
    EXPECT_THAT(told, ElementsAre("h:7000"));
    EXPECT_EQ(since, 5000ms);
    says(0, 7000, 3);
    says(2, 7000, 3);
    EXPECT_THAT(told, ElementsAre("h:7000"));
}

TEST_F(SentinelWatch, InTheMiddleOfAFailoverNobodyKnowsSinceWhenItIsThePrimary) {
    agree();
    announces(0);
    record_of = 1;
    says(0, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
    EXPECT_EQ(since, std::nullopt);
}

// The first sentinel has missed two failovers.
TEST_F(SentinelWatch, ALaterEpochOfTheSameAddressSaysSinceWhenItIsThePrimary) {
    seek();
    all_come_up();
    says(0, 1, 1);
    EXPECT_EQ(since, 5000ms);
    known_for = 70;
    says(1, 1, 3);
    EXPECT_THAT(told, ElementsAre("h:1", "again h:1"));
    EXPECT_EQ(since, 70ms);
    says(2, 1, 3);
    EXPECT_THAT(told, ElementsAre("h:1", "again h:1"));
}

TEST_F(SentinelWatch, SentinelsThatAreDownArePassedOver) {
    seek();
    fails(0);
    fails(1);
    EXPECT_THAT(told, IsEmpty());
    comes_up(2);
    says(2, 1, 1);
    EXPECT_THAT(told, ElementsAre("h:1"));
}

TEST_F(SentinelWatch, ThatNoneIsReachedIsToldWithEveryReason) {
    seek();
    for (std::size_t i = 0; i < 3; ++i) fails(i);
    EXPECT_THAT(told, ElementsAre("none!" + testing::name_of(errc::connection_refused)));
    EXPECT_THAT(why.detail, HasSubstr("redis+sentinel://u@a:26379,b:26379,c:26379/mine/0: the test says so; the test"));
}

TEST_F(SentinelWatch, ThatOneWasReachedAndDoesNotKnowItSaysMore) {
    seek();
    fails(0);
    comes_up(1);
    knows_nothing(1);
    EXPECT_THAT(told, IsEmpty());
    fails(2, errc::wrong_password);
    EXPECT_THAT(told, ElementsAre("none!" + testing::name_of(errc::no_primary)));
    EXPECT_THAT(why.detail, HasSubstr("redis://b:26379/0 knows no primary \"mine\""));
}

TEST_F(SentinelWatch, OnlyIfAllRefuseUsForGoodItIsForGood) {
    seek();
    fails(0, errc::wrong_password);
    fails(1, errc::connection_refused);
    fails(2, errc::wrong_password);
    EXPECT_EQ(why.code, errc::connection_refused);
    pass(10s);
    fails(1, errc::auth_required);
    seek();
    EXPECT_EQ(why.code, errc::wrong_password);
}

TEST_F(SentinelWatch, APlainServerIsNoSentinel) {
    seek();
    fails(1);
    fails(2);
    comes_up(0, "standalone");
    EXPECT_EQ(why.code, errc::no_primary);
    EXPECT_THAT(why.detail, HasSubstr("redis://a:26379/0 is no sentinel"));
    EXPECT_TRUE(links[0].subject.linked()) << "it is not connected to again and again";
    sent.clear();
    pass(60s);
    EXPECT_THAT(sent, ::testing::Not(HasSubstr("SENTINEL")));
}

TEST_F(SentinelWatch, AnAnnouncementIsAReasonToAsk) {
    agree();
    announces(1, "another");
    EXPECT_EQ(sent, "");
    announces(1);
    EXPECT_EQ(sent, questions);
    EXPECT_THAT(told, IsEmpty());
    says(1, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
    says(1, 2, 2);
}

TEST_F(SentinelWatch, AnAnnouncementDuringAQuestionIsAskedForAfterwards) {
    agree();
    announces(0);
    announces(0);
    EXPECT_EQ(sent, "");
    says(0, 1, 1);
    EXPECT_EQ(sent, questions) << "what was said may have been from before";
    says(0, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatch, ASentinelOfAnEpochThatIsOverIsNotBelieved) {
    agree();
    announces(0);
    says(0, 2, 2);
    told.clear();
    pass(4s);  // all sentinels are asked again
    says(1, 1, 1);
    says(2, 1, 1);
    EXPECT_THAT(told, IsEmpty());
    seek();
    says(1, 1, 1);
    says(2, 1, 1);
    EXPECT_THAT(told, IsEmpty()) << "two of three, but of an older epoch";
    says(0, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatch, AnOutdatedSentinelAloneIsNotBelievedThoughItIsTheOnlyOne) {
    agree();
    announces(0);
    says(0, 2, 2);
    told.clear();
    fails(0);
    fails(1);
    seek();
    says(2, 1, 1);
    EXPECT_THAT(told, ElementsAre("none!" + testing::name_of(errc::no_primary)));
    EXPECT_THAT(why.detail, HasSubstr("redis://c:26379/0 is out of date: it names h:1"));
    told.clear();
    pass(4s);
    says(2, 1, 1);
    EXPECT_THAT(told, IsEmpty()) << "nor later";
    comes_up(0);
    says(0, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatch, AMajorityWhoseEpochsBeganAnewIsBelievedBySeekers) {
    agree();
    announces(0);
    says(0, 2, 2);
    told.clear();
    fails(0);
    seek();
    says(1, 1, 0);
    EXPECT_THAT(told, IsEmpty());
    says(2, 1, 0);
    EXPECT_THAT(told, ElementsAre("h:1"));
}

// SENTINEL REMOVE and SENTINEL MONITOR at all of them: epochs begin with 0, and announcements count.
TEST_F(SentinelWatch, AMajorityWhoseEpochsBeganAnewIsBelievedWithAWorkingLink) {
    agree();
    announces(0);
    says(0, 2, 5);
    told.clear();
    pass(4s);
    says(1, 2, 0);
    says(2, 2, 0);
    says(0, 2, 5);
    EXPECT_THAT(told, IsEmpty()) << "one remembers";
    pass(4s);
    for (std::size_t i = 0; i < 3; ++i) says(i, 2, 0);
    EXPECT_THAT(told, IsEmpty()) << "the same address: no news";
    announces(0);
    says(0, 3, 1);
    EXPECT_THAT(told, ElementsAre("h:3"));
}

TEST_F(SentinelWatch, WhereTheSeekerFailedAMajorityMustSaySo) {
    agree();
    seek();
    says(0, 1, 1);
    EXPECT_THAT(told, IsEmpty());
    says(1, 1, 1);
    EXPECT_THAT(told, ElementsAre("h:1")) << "nobody waits for the third";
}

TEST_F(SentinelWatch, AnyOtherAddressIsBetterThanWhereTheSeekerFailed) {
    agree();
    seek();
    says(0, 1, 1);
    says(1, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatch, OneThatHangsIsGivenUpAndThenNotWaitedFor) {
    agree();
    fails(1);
    seek();
    says(0, 1, 1);
    EXPECT_THAT(told, IsEmpty());
    pass(2s);  // the request timeout
    EXPECT_THAT(told, ElementsAre("h:1"));
    told.clear();
    seek();
    says(0, 1, 1);
    EXPECT_THAT(told, ElementsAre("h:1"));
}

TEST_F(SentinelWatch, AfterNoneKnewTheFirstThatKnowsIsBelieved) {
    agree();
    for (std::size_t i = 0; i < 3; ++i) fails(i);
    seek();
    EXPECT_THAT(told, ElementsAre("none!" + testing::name_of(errc::connection_refused)))
        << "all are known to be down: nobody is waited for";
    told.clear();
    pass(2s);
    comes_up(1);
    says(1, 1, 1);
    EXPECT_THAT(told, ElementsAre("h:1")) << "though nobody asked again";
}

TEST_F(SentinelWatch, IsAskedAgainFromTimeToTimeInCaseAnAnnouncementWasLost) {
    agree();
    EXPECT_EQ(watch.deadline(), now + 4s);
    pass(4s);
    EXPECT_EQ(sent, questions + questions + questions) << "and nothing else";
    says(2, 2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

/// The same sentinels, for a user that may only ask for the address.
class SentinelWatchWithoutEpochs : public SentinelWatch {
protected:
    void says(std::size_t which, int port) {
        receives(which, "-NOPERM no\r\n*2\r\n" + bulk("h") + bulk(std::to_string(port)));
    }
    void begin(std::initializer_list<int> ports) {
        seek();
        all_come_up();
        for (std::size_t which = 0; const int port : ports) says(which++, port);
    }
};

TEST_F(SentinelWatchWithoutEpochs, AMajorityMovesTheClient) {
    begin({1, 1, 1});
    EXPECT_THAT(told, ElementsAre("h:1"));
    EXPECT_EQ(since, std::nullopt);
    announces(0);
    says(0, 2);
    EXPECT_THAT(told, ElementsAre("h:1")) << "one may be wrong, or early";
    announces(1);
    says(1, 2);
    EXPECT_THAT(told, ElementsAre("h:1", "h:2"));
    pass(4s);
    says(2, 1);
    EXPECT_THAT(told, ElementsAre("h:1", "h:2")) << "it has said that all the time";
}

TEST_F(SentinelWatchWithoutEpochs, WhoBeganWithAWrongOneFollowsTheMajority) {
    begin({1, 2, 2});
    EXPECT_THAT(told, ElementsAre("h:1", "h:2"));
}

TEST_F(SentinelWatchWithoutEpochs, WhereTheOthersAreDownOneIsEnough) {
    begin({1, 1, 1});
    fails(1);
    fails(2);
    announces(0);
    says(0, 2);
    EXPECT_THAT(told, ElementsAre("h:1", "h:2"));
}

TEST_F(SentinelWatchWithoutEpochs, ASeekerWaitsForTheMajorityBeforeItTriesAnywhereElse) {
    begin({1, 1, 1});
    told.clear();
    seek();
    says(0, 9);
    EXPECT_THAT(told, IsEmpty());
    says(1, 2);
    EXPECT_THAT(told, IsEmpty());
    says(2, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatchWithoutEpochs, WithoutAMajorityAnyOtherAddressIsTried) {
    begin({1, 1, 1});
    told.clear();
    fails(2);
    seek();
    says(0, 1);
    says(1, 2);
    EXPECT_THAT(told, ElementsAre("h:2"));
}

TEST_F(SentinelWatch, ALinkThatBreaksBeforeAQuestionWasWrittenIsAskedOnTheNext) {
    agree();
    watch.seek(now);  // asked, but not written
    links[0].subject.failed({errc::unreachable, "cut"}, now);
    settle();
    comes_up(0);
    says(0, 1, 1);
    says(1, 1, 1);
    EXPECT_THAT(told, ElementsAre("h:1"));
}

TEST_F(SentinelWatch, NonsenseIsNoAddress) {
    seek();
    all_come_up();
    for (const std::string port : {"0", "65536", "-1", "x", ""}) {
        receives(0, "-ERR\r\n*2\r\n" + bulk("h") + bulk(port));
        EXPECT_THAT(told, IsEmpty()) << port;
        announces(0);
    }
    receives(0, "+OK\r\n+OK\r\n");
    EXPECT_THAT(told, IsEmpty());
    for (const std::string& host :
         {std::string(), std::string("a\nb"), std::string("a b"), std::string("\x1b[2J"), std::string(254, 'h')}) {
        announces(0);
        receives(0, "-ERR\r\n*2\r\n" + bulk(host) + bulk("1"));
        EXPECT_THAT(told, IsEmpty()) << host;
    }
    announces(0);
    receives(0, "-ERR\r\n*2\r\n" + bulk(std::string(253, 'h')) + bulk("1"));
    EXPECT_THAT(told, ElementsAre(std::string(253, 'h') + ":1"));
}

}  // namespace
}  // namespace holdfast::redis::sentinel_watch_test
