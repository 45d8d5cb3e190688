// What a client sees after a lagging replica has taken over. Unlike a restart from an older snapshot, the new primary
// has a long uptime, so its uptime does not reveal the failover.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "world/server.hpp"

namespace holdfast::sim::failover_test {
namespace {

using namespace std::chrono_literals;

class nobody final : public script_watcher {
    void before_script(server&, const words&) override {}
    void after_script(const words&, const value&) override {}
};

class Failover : public ::testing::Test {
protected:
    Failover() { connect(); }

    // Earlier links stay: data may still be in flight in them.
    void connect() {
        links_.push_back(std::make_unique<link>(
            time_, random_, [this, n = links_.size()](const packet& p) { server_.received(*links_[n], p); },
            [this](const packet& p) { heard_ += p.what == packet::kind::end ? "<end>" : p.bytes; }));
        server_.accept(*links_.back());
    }

    // Returns the bytes that came back over the link.
    std::string ask(const std::vector<std::string>& command) {
        std::string bytes = "*" + std::to_string(command.size()) + "\r\n";
        for (const std::string& word : command) bytes += bulk(word);
        links_.back()->up.send(bytes);
        return listen();
    }
    std::string listen() {
        heard_.clear();
        pass(10ms);
        return heard_;
    }
    void pass(nanoseconds wait) {
        const instant end = time_.now() + wait;
        while (time_.step(end)) {
        }
    }
    std::string fact(const std::string& name) {
        const std::string all = ask({"INFO", "server"});
        const auto at = all.find(name + ":");
        return at == all.npos ? "" : all.substr(at, all.find('\r', at) - at);
    }
    std::int64_t uptime() { return std::stoll(fact("uptime_in_seconds").substr(18)); }

    timeline time_;
    random_stream random_{1};
    nobody watcher_;
    server server_{
        time_, random_stream{2}, {.engine = std::make_shared<script_engine>(), .replaced_scripts = {}}, watcher_};
    std::vector<std::unique_ptr<link>> links_;
    std::string heard_;
};

TEST_F(Failover, LosesWritesThatTheReplicaLacks) {
    server_.run({"SET", "old", "1"});
    const server_model::snapshot lagging = server_.snapshot();
    server_.run({"SET", "old", "2"});
    server_.run({"SET", "new", "1"});
    server_.fail_over(lagging, 0ms);
    EXPECT_EQ(server_.run({"GET", "old"}), value::make_bulk("1"));
    EXPECT_EQ(server_.run({"GET", "new"}), value::make_nil());
}

TEST_F(Failover, CutsEveryLinkAndAcceptsNewOnesAtOnce) {
    ask({"SUBSCRIBE", "wake"});
    ASSERT_TRUE(server_.listens("wake"));
    server_.fail_over(server_.snapshot(), 0ms);
    EXPECT_EQ(listen(), "<end>");
    EXPECT_FALSE(server_.listens("wake"));
    ASSERT_TRUE(server_.accepts());
    connect();
    EXPECT_EQ(ask({"PING"}), "+PONG\r\n");
}

TEST_F(Failover, ChangesTheRunIdAndNotTheUptime) {
    pass(5s);
    const std::string run_id = fact("run_id");
    const std::int64_t up = uptime();
    server_.fail_over(server_.snapshot(), 0ms);
    connect();
    EXPECT_NE(fact("run_id"), run_id);
    EXPECT_GE(uptime(), up);
    server_.stop();
    server_.start(server_.snapshot());
    connect();
    EXPECT_LT(uptime(), up);
}

TEST_F(Failover, KeepsAbsoluteExpiries) {
    server_.run({"SET", "k", "v", "PX", "1000"});
    const server_model::snapshot lagging = server_.snapshot();
    pass(400ms);
    server_.fail_over(lagging, 100ms);
    const std::int64_t left = server_.run({"PTTL", "k"}).integer;
    EXPECT_GT(left, 480);  // its clock may run half a percent fast or slow
    EXPECT_LT(left, 520);
    pass(530ms);
    EXPECT_EQ(server_.run({"EXISTS", "k"}), value::make_integer(0));
}

TEST_F(Failover, ForgetsScripts) {
    const std::string sha1 = server_.run({"SCRIPT", "LOAD", "return 1"}).text;
    server_.fail_over(server_.snapshot(), 0ms);
    EXPECT_EQ(server_.run({"SCRIPT", "EXISTS", sha1}), value::make_array({value::make_integer(0)}));
}

TEST_F(Failover, EndsAStall) {
    server_.stall_until(time_.now() + 1h);
    server_.fail_over(server_.snapshot(), 0ms);
    EXPECT_EQ(listen(), "<end>");
    connect();
    EXPECT_EQ(ask({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace holdfast::sim::failover_test
