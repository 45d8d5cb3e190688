// Rules of the server model about time, restarts, messages and refusals that no real server can be asked for.
// server_model_differential_test.cpp compares the answers of commands with a real server.

#include <gtest/gtest.h>

#include "server_model/server_model.hpp"

namespace holdfast::sim::server_model_test {
namespace {

constexpr std::int64_t noon_us = 1'800'000'000'000'000;

class server : public ::testing::Test {
protected:
    server() { model_.set_time(noon_us); }
    void pass_ms(std::int64_t ms) { model_.set_time(model_.time_us() + ms * 1000); }
    value run(const std::vector<std::string>& command) { return model_.execute(command); }

    server_model model_;
};

using Time = server;

TEST_F(Time, AKeyLivesThroughItsLastMillisecond) {
    run({"SET", "k", "v", "PX", "10"});
    pass_ms(10);
    EXPECT_EQ(run({"GET", "k"}), value::make_bulk("v"));
    EXPECT_EQ(run({"PTTL", "k"}), value::make_integer(0));
    pass_ms(1);
    EXPECT_EQ(run({"GET", "k"}), value::make_nil());
}

TEST_F(Time, SetBackRevivesOnlyKeysNotReadSinceTheirExpiry) {
    run({"SET", "seen", "v", "PX", "10"});
    run({"SET", "unseen", "v", "PX", "10"});
    pass_ms(20);
    EXPECT_EQ(run({"EXISTS", "seen"}), value::make_integer(0));
    pass_ms(-20);
    EXPECT_EQ(run({"EXISTS", "seen"}), value::make_integer(0));
    EXPECT_EQ(run({"EXISTS", "unseen"}), value::make_integer(1));
}

TEST_F(Time, AReplicaHidesExpiredKeysWithoutRemovingThem) {
    run({"SET", "k", "v", "PX", "10"});
    model_.set_role(role::replica);
    pass_ms(20);
    EXPECT_EQ(run({"GET", "k"}), value::make_nil());
    EXPECT_EQ(run({"DBSIZE"}), value::make_integer(1));
    pass_ms(-20);
    EXPECT_EQ(run({"GET", "k"}), value::make_bulk("v"));
}

TEST_F(Time, TimeIsSecondsAndMicroseconds) {
    model_.set_time(1'234'567'000'089);
    EXPECT_EQ(run({"TIME"}), value::make_array({value::make_bulk("1234567"), value::make_bulk("89")}));
}

using Restart = server;

TEST_F(Restart, RestoresTheSnapshot) {
    run({"HSET", "h", "f", "1"});
    run({"ZADD", "z", "5", "m"});
    const server_model::snapshot before = model_.take_snapshot();
    const std::string dump = model_.dump();
    run({"HSET", "h", "f", "2"});
    run({"ZADD", "z", "6", "m", "7", "n"});
    run({"SET", "new", "x"});
    model_.restart(before);
    EXPECT_EQ(model_.dump(), dump);
    // A deep copy: it has its own indexes.
    run({"ZADD", "z", "8", "m"});
    run({"HDEL", "h", "f"});
    model_.restart(before);
    EXPECT_EQ(model_.dump(), dump);
}

TEST_F(Restart, ForgetsScriptsAndListeners) {
    const std::string sha1 = run({"SCRIPT", "LOAD", "return 1"}).text;
    model_.subscribe(1, "news");
    model_.restart();
    EXPECT_EQ(run({"EVALSHA", sha1, "0"}), value::make_error("NOSCRIPT No matching script. Please use EVAL."));
    EXPECT_EQ(run({"PUBLISH", "news", "x"}), value::make_integer(0));
}

TEST_F(Restart, RestoringDataKeepsScriptsAndListeners) {
    const std::string sha1 = run({"SCRIPT", "LOAD", "return 1"}).text;
    model_.subscribe(1, "news");
    run({"SET", "k", "v"});
    model_.restore({});
    EXPECT_EQ(model_.dump(), "");
    EXPECT_EQ(run({"EVALSHA", sha1, "0"}), value::make_integer(1));
    EXPECT_EQ(run({"PUBLISH", "news", "x"}), value::make_integer(1));
}

using Messages = server;

TEST_F(Messages, ReachListenersInTheOrderOfSubscription) {
    std::vector<std::string> heard;
    model_.on_message([&](const message& m) { heard.push_back(std::to_string(m.connection) + ' ' + m.payload); });
    model_.subscribe(7, "c");
    model_.subscribe(3, "c");
    model_.subscribe(7, "c");
    run({"EVAL", "redis.call('PUBLISH', 'c', 'a') redis.call('PUBLISH', 'c', 'b') return 1", "0"});
    EXPECT_EQ(heard, (std::vector<std::string>{"7 a", "3 a", "7 b", "3 b"}));
}

TEST_F(Messages, ShardedAndPlainChannelsAreDifferentChannels) {
    model_.subscribe(1, "c", channel_kind::sharded);
    EXPECT_EQ(run({"PUBLISH", "c", "x"}), value::make_integer(0));
    EXPECT_EQ(run({"SPUBLISH", "c", "x"}), value::make_integer(1));
    model_.unsubscribe(1, "c", channel_kind::sharded);
    EXPECT_EQ(run({"SPUBLISH", "c", "x"}), value::make_integer(0));
}

TEST_F(Messages, AClosedConnectionHasNoSubscriptions) {
    model_.subscribe(1, "a");
    model_.subscribe(1, "b", channel_kind::sharded);
    model_.subscribe(2, "a");
    model_.unsubscribe_all(1);
    EXPECT_EQ(run({"PUBSUB", "NUMSUB", "a"}).items.at(1), value::make_integer(1));
    EXPECT_EQ(run({"PUBSUB", "SHARDNUMSUB", "b"}).items.at(1), value::make_integer(0));
}

using Dump = server;

TEST_F(Dump, IsOneSortedLinePerLivingKey) {
    run({"SET", "s", "a\nb"});
    run({"HSET", "h", "z", "1", "a", "2"});
    run({"ZADD", "q", "0.5", "x", "-1", "y"});
    run({"PEXPIRE", "q", "1500"});
    run({"SADD", "m", "2", "1"});
    run({"SET", "gone", "x", "PX", "1"});
    pass_ms(2);
    EXPECT_EQ(model_.dump(),
              "\"h\" hash forever \"a\"=\"2\" \"z\"=\"1\"\n"
              "\"m\" set forever \"1\" \"2\"\n"
              "\"q\" zset until 1800000001500 \"y\"@-1 \"x\"@0.5\n"
              "\"s\" string forever \"a\\x0ab\"\n");
}

using Unmodelled = server;

TEST_F(Unmodelled, FormsThrow) {
    EXPECT_THROW(run({"ZRANGE", "z", "[a", "[b", "BYLEX"}), std::logic_error);
    EXPECT_THROW(run({"SUBSCRIBE", "c"}), std::logic_error);
    EXPECT_THROW(run({"EVAL", "return redis.call('ZRANGE', KEYS[1], '[a', '[b', 'BYLEX')", "1", "z"}),
                 std::logic_error);
    EXPECT_THROW(run({"EVAL", "return {map = {a = 1}}", "0"}), std::logic_error);
    EXPECT_THROW(run({}), std::logic_error);
}

}  // namespace
}  // namespace holdfast::sim::server_model_test
