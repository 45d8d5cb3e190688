// When the listener is told that slots have moved, and in what state the router is then.
#include <gmock/gmock.h>

#include <functional>

#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::redis::cluster_news_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using life = command::state;

class ClusterNews : public testing::cluster_fixture {
protected:
    void on_map(const slot_map& fresh, instant at) override {
        cluster_fixture::on_map(fresh, at);
        if (when_map) when_map();
    }
    void on_slots_down(const slot_set& which, const failure& why, instant at) override {
        cluster_fixture::on_slots_down(which, why, at);
        if (when_down) when_down();
    }

    std::function<void()> when_map;
    std::function<void()> when_down;
};

TEST_F(ClusterNews, TheListenerMayWithdrawTheCommandThatFoundAMove) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    submit(b);
    when_map = [&] {
        const bool is_anywhere = b.life() != life::idle;
        EXPECT_EQ(router.withdraw(b), is_anywhere);
    };
    say(one, b_moved);
    EXPECT_EQ(b.life(), life::idle);
    EXPECT_EQ(sent(two), "");
    submit(b);
    say(two, "-MOVED 3300 three:7003\r\n");  // an unknown member
    EXPECT_EQ(b.life(), life::idle);
    come_up(three);
    EXPECT_EQ(sent(three).find("GET"), std::string::npos);
}

// The listener decides whether an unknown primary is trusted.
TEST_F(ClusterNews, APrimaryThatNobodyKnewIsToldBeforeTheNextAnswerIsRead) {
    start();
    recorded_command b = get("GET", key_b);
    recorded_command next = get("SET", key_b);
    submit(b);
    submit(next);
    next.afterwards = [&](instant) { log.push_back(maps == 2 ? "knows" : "does not know"); };
    ASSERT_EQ(maps, 1);
    say(one, "-MOVED 3300 three:7003\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("SET=1", "knows", "down!" + name_of(errc::moving) + ": b"));
}

TEST_F(ClusterNews, ManyMovesThatAreReadAtOnceAreToldOnce) {
    start_with_both();
    recorded_command b = get("GET", key_b);
    recorded_command c = get("GET", key_c);
    submit(b);
    submit(c);
    sent(one);
    say(one, b_moved + "-MOVED 7365 two:7002\r\n");
    EXPECT_THAT(log, ElementsAre("down!" + name_of(errc::moving) + ": b c", "up two: b c"));
    EXPECT_EQ(sent(two), encoded({"GET", key_b}) + encoded({"GET", key_c}));
}

TEST_F(ClusterNews, ChannelsAreAskedForBeforeCommandsOfTheListener) {
    listen_at_one();
    recorded_command poll = get("poll", key_b);
    when_down = [&] { router.submit(poll, now); };
    say(one, ended(b_channel));
    EXPECT_EQ(sent(one), subscribe_b + encoded({"poll", key_b}));
    recorded_command next = get("next", key_b);
    when_down = [&] { router.submit(next, now); };
    say(one, b_moved);  // to the subscription
    EXPECT_EQ(sent(two), subscribe_b + encoded({"next", key_b}));
    say(one, "+1\r\n");
    confirm(two, b_channel);
    say(two, "+1\r\n");
    recorded_command last = get("last", key_b);
    when_down = [&] { router.submit(last, now); };
    sent(one);
    say(asked_for_map(), testing::two_halves());
    EXPECT_EQ(sent(one), subscribe_b + encoded({"last", key_b}));
}

TEST_F(ClusterNews, NoCallbackRunsWithinAnother) {
    start();
    recorded_command late = get("late", key_b);
    when_down = [&] {
        router.submit(late, now);
        EXPECT_NE(log.back(), "late!client_closed") << "fails when this callback has returned";
    };
    router.close(now);
    EXPECT_THAT(log, ElementsAre("down!client_closed: b c", "late!client_closed"));
}

TEST_F(ClusterNews, ManyEndsThatAreReadAtOnceAreToldOnce) {
    listen_at_one();
    const std::string other = "wake:{c}:me";
    router.subscribe(other, now);
    settle();
    confirm(one, other);
    sent(one);
    say(one, ended(b_channel) + ended(other));
    EXPECT_THAT(log, ElementsAre("down!" + name_of(errc::moving) + ": b c", "up one: b c"));
    EXPECT_EQ(sent(one), subscribe_b + encoded({"SSUBSCRIBE", other}));
}

}  // namespace
}  // namespace holdfast::redis::cluster_news_test
