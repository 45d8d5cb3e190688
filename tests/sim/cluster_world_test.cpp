// What a client sees of the members of a simulated Cluster before, during and after the move of a slot: links, channels
// and keys. cluster_differential_test compares the refusals with those of a real member.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "redis/resp/resp_reader.hpp"
#include "redis/slots/slot_map.hpp"
#include "wire/scripts.hpp"
#include "world/cluster.hpp"

namespace holdfast::sim::cluster_world_test {
namespace {

using namespace std::chrono_literals;

class nobody final : public script_watcher {
    void before_script(server&, const words&) override {}
    void after_script(const words&, const value&) override {}
};

// Only two slots are used: those of {x} and {y}.
unsigned slot_of(std::string_view key) {
    return key.find("{x}") != key.npos ? 7U : 8U;
}

class ClusterWorld : public ::testing::Test {
protected:
    // A member and one link to it.
    struct member {
        member(ClusterWorld& world, std::uint64_t seed)
            : serves(world.time_, random_stream{seed}, {.engine = world.engine_, .replaced_scripts = {}},
                     world.watcher_),
              wire(
                  world.time_, world.random_, [this](const packet& p) { serves.received(wire, p); },
                  [this](const packet& p) { heard += p.what == packet::kind::end ? "<end>" : p.bytes; }) {
            serves.accept(wire);
        }
        server serves;
        link wire;
        std::string heard;
    };

    ClusterWorld() {
        all_.add(a_.serves, "a:1");
        all_.add(b_.serves, "b:2");
    }

    std::string ask(member& who, const std::vector<std::string>& command) {
        std::string bytes = "*" + std::to_string(command.size()) + "\r\n";
        for (const std::string& word : command) bytes += bulk(word);
        who.wire.up.send(bytes);
        return listen(who);
    }
    std::string listen(member& who) {
        pass(10ms);
        return std::exchange(who.heard, {});
    }
    void pass(nanoseconds wait) {
        const instant end = time_.now() + wait;
        while (time_.step(end)) {
        }
    }
    redis::server_address owner_by(member& who, unsigned slot) {
        const std::string answer = ask(who, {"CLUSTER", "SHARDS"});
        redis::resp_reader reader;
        const std::span<char> room = reader.prepare(answer.size());
        std::copy(answer.begin(), answer.end(), room.begin());
        reader.commit(answer.size());
        redis::reply_view shards;
        EXPECT_EQ(reader.next(shards), redis::resp_status::reply);
        const auto map = redis::slot_map::read(shards, {"nobody", 9}, redis::transport::tcp);
        const redis::server_address* const owner = map ? map->owner(static_cast<redis::hash_slot>(slot)) : nullptr;
        return owner == nullptr ? redis::server_address{} : *owner;
    }
    static std::string push(const std::string& what, const std::string& channel, const std::string& last) {
        return ">3\r\n" + bulk(what) + bulk(channel) + last;
    }

    const std::string lock_ = "hf:{x}", queue_ = "hf:{x}:queue", channel_ = "hf:wake:{x}:c";
    timeline time_;
    random_stream random_{1};
    nobody watcher_;
    std::shared_ptr<script_engine> engine_ = std::make_shared<script_engine>();
    cluster all_{slot_of};
    member a_{*this, 2}, b_{*this, 3};
};

TEST_F(ClusterWorld, TellsItsModeInHello) {
    EXPECT_NE(ask(a_, {"HELLO", "3"}).find(bulk("cluster")), std::string::npos);
}

TEST_F(ClusterWorld, RedirectsToTheOwner) {
    EXPECT_EQ(ask(a_, {"SET", lock_, "me"}), "+OK\r\n");
    EXPECT_EQ(ask(b_, {"GET", lock_}), "-MOVED 7 a:1\r\n");
    all_.begin_move(7, "b:2");
    all_.move_key(lock_);
    all_.finish_move(7);
    EXPECT_EQ(ask(a_, {"GET", lock_}), "-MOVED 7 b:2\r\n");
    EXPECT_EQ(ask(b_, {"GET", lock_}), bulk("me"));
    EXPECT_EQ(ask(a_, {"SET", "hf:{y}", "me"}), "+OK\r\n") << "the other slots stay";
    EXPECT_EQ(all_.owner(7), "b:2");
    EXPECT_EQ(all_.owner(8), "a:1");
}

// Parsed as the router parses it.
TEST_F(ClusterWorld, ShowsEachMembersViewOfTheMap) {
    const redis::server_address a{"a", 1}, b{"b", 2}, c{"c", 3}, r{"r", 4};
    member third{*this, 4}, replica{*this, 5};
    all_.add(third.serves, "c:3");
    all_.add_replica(replica.serves, "r:4", "a:1");
    EXPECT_NE(ask(replica, {"HELLO", "3"}).find(bulk("replica")), std::string::npos);
    EXPECT_EQ(ask(replica, {"GET", lock_}), "-MOVED 7 a:1\r\n");
    all_.begin_move(7, "b:2");
    EXPECT_EQ(owner_by(a_, 7), a);
    all_.arrive(7);
    EXPECT_EQ(owner_by(b_, 7), b) << "the new owner knows it first";
    EXPECT_EQ(ask(b_, {"GET", lock_}), "_\r\n");
    EXPECT_EQ(ask(a_, {"GET", lock_}), "-ASK 7 b:2\r\n");
    all_.finish_move(7);
    EXPECT_EQ(owner_by(a_, 7), b);
    EXPECT_EQ(owner_by(third, 7), a) << "it has not heard of it yet";
    EXPECT_EQ(ask(third, {"GET", lock_}), "-MOVED 7 a:1\r\n");
    all_.propagate(7);
    EXPECT_EQ(owner_by(third, 7), b);
    EXPECT_EQ(owner_by(third, 8), a);
    all_.promote("r:4", "a:1");
    EXPECT_EQ(owner_by(third, 8), r);
    EXPECT_EQ(owner_by(third, 7), b);
    EXPECT_EQ(ask(a_, {"GET", "hf:{y}"}), "-MOVED 8 r:4\r\n");
}

TEST_F(ClusterWorld, AppliesAskingToOneCommand) {
    all_.begin_move(7, "b:2");
    EXPECT_EQ(ask(a_, {"SET", lock_, "me"}), "-ASK 7 b:2\r\n");
    EXPECT_EQ(ask(b_, {"ASKING"}), "+OK\r\n");
    EXPECT_EQ(ask(b_, {"SET", lock_, "me"}), "+OK\r\n");
    EXPECT_EQ(ask(b_, {"GET", lock_}), "-MOVED 7 a:1\r\n");
    ask(b_, {"ASKING"});
    ask(b_, {"PING"});
    EXPECT_EQ(ask(b_, {"GET", lock_}), "-MOVED 7 a:1\r\n") << "whatever that one was";
}

TEST_F(ClusterWorld, RefusesAScriptWhoseKeysAreAtTwoMembers) {
    const std::vector<std::string> script{"EVAL", "return 'ran'", "2", lock_, queue_};
    a_.serves.run({"SET", lock_, "me"});
    a_.serves.run({"SET", queue_, "others"});
    all_.begin_move(7, "b:2");
    EXPECT_EQ(ask(a_, script), bulk("ran"));
    all_.move_key(lock_);
    EXPECT_TRUE(ask(a_, script).starts_with("-TRYAGAIN"));
    ask(b_, {"ASKING"});
    EXPECT_TRUE(ask(b_, script).starts_with("-TRYAGAIN"));
    all_.move_key(queue_);
    EXPECT_EQ(ask(a_, script), "-ASK 7 b:2\r\n");
    ask(b_, {"ASKING"});
    EXPECT_EQ(ask(b_, script), bulk("ran"));
}

TEST_F(ClusterWorld, MovesKeysWithTheirRemainingTimeToLive) {
    b_.serves.jump(1h);
    a_.serves.run({"SET", lock_, "me", "PX", "1000"});
    a_.serves.run({"SET", queue_, "others"});
    pass(400ms);
    all_.begin_move(7, "b:2");
    all_.move_key(lock_);
    all_.move_key(queue_);
    EXPECT_EQ(a_.serves.run({"EXISTS", lock_, queue_}), value::make_integer(0));
    const std::int64_t left = b_.serves.run({"PTTL", lock_}).integer;
    EXPECT_GT(left, 580);
    EXPECT_LT(left, 620);
    EXPECT_EQ(b_.serves.run({"PTTL", queue_}), value::make_integer(-1));
}

// Deadlines of holders are points in time of the old member's clock, and the scripts correct them.
TEST_F(ClusterWorld, KeepsReadWriteLeasesAcrossDifferentClocks) {
    const std::vector<std::string> keys{lock_,          queue_,          "hf:{x}:waiters",
                                        "hf:{x}:fence", "hf:{x}:leases", "hf:{x}:grants"};
    const auto write = [&](member& at, char who) {
        std::vector<std::string> command{"EVAL", std::string{wire::find("rw/acquire").text}, "6"};
        command.insert(command.end(), keys.begin(), keys.end());
        const std::string id = "hf_" + std::string(16, who) + ".1." + std::string(22, 'r');
        for (const char* word :
             {id.c_str(), "3600000", "arrival", "w", "1000", "0", "", "0", "0", "0", "0", "0", "0"}) {
            command.emplace_back(word);
        }
        return at.serves.run(command).items.at(0).integer;
    };
    b_.serves.jump(1h);
    ASSERT_EQ(write(a_, 'a'), 1);
    all_.begin_move(7, "b:2");
    for (const std::string& key : keys) all_.move_key(key);
    all_.finish_move(7);
    EXPECT_EQ(write(b_, 'b'), 0);
    pass(980ms);
    EXPECT_EQ(write(b_, 'b'), 0);
    pass(40ms);
    EXPECT_EQ(write(b_, 'b'), 1);
}

TEST_F(ClusterWorld, ServesTheOldOwnerAfterACancelledMove) {
    a_.serves.run({"SET", lock_, "me"});
    all_.begin_move(7, "b:2");
    all_.move_key(lock_);
    all_.move_key(lock_);
    all_.cancel_move(7);
    EXPECT_EQ(ask(a_, {"GET", lock_}), bulk("me"));
    EXPECT_EQ(ask(b_, {"GET", lock_}), "-MOVED 7 a:1\r\n");
}

TEST_F(ClusterWorld, WaitCoversOnlyWritesOfItsLink) {
    const std::vector<std::string> wait{"WAIT", "1", "5"};
    a_.serves.be_followed({1ms, 1ms});
    a_.serves.hold_replica_until(time_.now() + 1h);
    ask(a_, {"EVAL", "return redis.call('GET', KEYS[1])", "1", lock_});
    ask(a_, {"PUBLISH", "channel", "message"});
    EXPECT_EQ(ask(a_, {"EVAL", "return redis.call('DEL', KEYS[1])", "1", lock_}), ":0\r\n");
    EXPECT_EQ(ask(a_, wait), ":1\r\n") << "nothing of that is for replicas";
    ask(a_, {"EVAL", "return redis.call('SET', KEYS[1], 'me')", "1", lock_});
    EXPECT_EQ(ask(a_, wait), ":0\r\n");
    pass(1h);
    EXPECT_EQ(ask(a_, wait), ":1\r\n");
}

TEST_F(ClusterWorld, ReplicatesMovesOfKeys) {
    for (member* each : {&a_, &b_}) each->serves.be_followed({1ms, 1ms});
    ask(a_, {"SET", lock_, "me"});
    EXPECT_TRUE(a_.serves.replica_knows_of_moves());
    all_.begin_move(7, "b:2");
    b_.serves.hold_replica_until(time_.now() + 1h);
    all_.move_key(lock_);
    pass(10ms);
    EXPECT_TRUE(a_.serves.replica_knows_of_moves());
    EXPECT_EQ(a_.serves.replica().size(), 0U);
    EXPECT_FALSE(b_.serves.replica_knows_of_moves());
    EXPECT_EQ(b_.serves.replica().size(), 0U);
    pass(2h);
    EXPECT_TRUE(b_.serves.replica_knows_of_moves());
    EXPECT_EQ(b_.serves.replica().size(), 1U);
}

TEST_F(ClusterWorld, ReplicasRefuseWaitAndStartANewHistoryWhenPromoted) {
    const auto history = [this](member& who) {
        const std::string all = ask(who, {"INFO", "replication"});
        const auto at = all.find("master_replid:");
        return all.substr(at, all.find('\r', at) - at);
    };
    member replica{*this, 5};
    all_.add_replica(replica.serves, "r:4", "a:1");
    a_.serves.be_followed({1ms, 1ms});
    const std::string before = history(b_);
    EXPECT_NE(ask(replica, {"INFO", "replication"}).find("role:slave"), std::string::npos);
    EXPECT_TRUE(ask(replica, {"WAIT", "1", "5"}).starts_with("-ERR"));
    a_.serves.hold_replica_until(time_.now() + 1h);
    ask(a_, {"EVAL", "return redis.call('SET', KEYS[1], 'me')", "1", lock_});
    EXPECT_EQ(ask(a_, {"WAIT", "1", "60000"}), "");
    replica.serves.step_up(a_.serves.snapshot(), a_.serves.now_us());
    all_.promote("r:4", "a:1");
    a_.serves.step_down();
    const std::string told = listen(a_);
    EXPECT_TRUE(told.starts_with("-UNBLOCKED")) << told;
    EXPECT_TRUE(told.ends_with("<end>")) << told;
    b_.serves.step_down();
    b_.serves.step_up({}, b_.serves.now_us());
    EXPECT_NE(history(b_), before);
}

TEST_F(ClusterWorld, DeliversOnShardedChannelsOfOwnSlots) {
    EXPECT_EQ(ask(b_, {"SSUBSCRIBE", channel_}), "-MOVED 7 a:1\r\n");
    EXPECT_EQ(ask(a_, {"SSUBSCRIBE", channel_}), push("ssubscribe", channel_, ":1\r\n"));
    EXPECT_EQ(ask(a_, {"EVAL", "return redis.call('SPUBLISH', ARGV[1], 'm')", "0", channel_}),
              push("smessage", channel_, bulk("m")) + ":1\r\n");
    EXPECT_EQ(ask(a_, {"SPUBLISH", channel_, "n"}), push("smessage", channel_, bulk("n")) + ":1\r\n");
    EXPECT_EQ(ask(a_, {"SUNSUBSCRIBE", channel_}), push("sunsubscribe", channel_, ":0\r\n"));
    EXPECT_EQ(ask(a_, {"SPUBLISH", channel_, "n"}), ":0\r\n");
}

TEST_F(ClusterWorld, UnsubscribesListenersWhenTheSlotLeaves) {
    const std::string other = "hf:wake:{y}:c";
    ask(a_, {"SSUBSCRIBE", channel_});
    ask(a_, {"SSUBSCRIBE", other});
    all_.begin_move(7, "b:2");
    EXPECT_EQ(ask(a_, {"SPUBLISH", channel_, "m"}), push("smessage", channel_, bulk("m")) + ":1\r\n");
    all_.finish_move(7);
    EXPECT_EQ(listen(a_), push("sunsubscribe", channel_, ":1\r\n"));
    EXPECT_EQ(ask(a_, {"SUNSUBSCRIBE", channel_}), "-MOVED 7 b:2\r\n");
    EXPECT_EQ(ask(b_, {"SPUBLISH", channel_, "m"}), ":0\r\n") << "nobody has come over yet";
    EXPECT_EQ(ask(a_, {"SPUBLISH", other, "m"}), push("smessage", other, bulk("m")) + ":1\r\n");
}

TEST_F(ClusterWorld, DeliversToSubscribersThatAskedTheNewOwner) {
    all_.begin_move(7, "b:2");
    ask(b_, {"ASKING"});
    EXPECT_EQ(ask(b_, {"SSUBSCRIBE", channel_}), push("ssubscribe", channel_, ":1\r\n"));
    all_.finish_move(7);
    EXPECT_EQ(ask(b_, {"SPUBLISH", channel_, "m"}), push("smessage", channel_, bulk("m")) + ":1\r\n");
}

}  // namespace
}  // namespace holdfast::sim::cluster_world_test
