// A Cluster as one of an engine's nodes: played members, and the engine above them.
#pragma once

#include <gmock/gmock.h>

#include "engine/cluster_node.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::engine::testing {

using namespace std::chrono_literals;
using redis::testing::one;
using redis::testing::played_cluster;
using redis::testing::played_members;
using redis::testing::shard_answer;
using redis::testing::shards_answer;
using redis::testing::two;
using redis::testing::two_halves;

constexpr milliseconds mistrusted_for = 60s;
constexpr int long_ago_s = 1000;

inline redis::server_settings two_seeds(const std::string& options) {
    return redis::parse_url("redis+cluster://one:7001,two:7002" + options);
}

inline std::string map_of(const redis::server_address& lower, const redis::server_address& upper,
                          const std::vector<std::string>& others = {}) {
    std::vector<std::string> shards{shard_answer({{0, 8191}}, {redis::testing::node_answer(lower)}),
                                    shard_answer({{8192, 16383}}, {redis::testing::node_answer(upper)})};
    shards.insert(shards.end(), others.begin(), others.end());
    return shards_answer(shards);
}

class played_host final : public cluster_host {
public:
    played_host(played_members& members, const instant& clock, std::vector<std::string>& seen)
        : members_(members), clock_(clock), seen_(seen) {}

private:
    redis::session& open(const redis::server_settings& member, redis::session_listener& told) override {
        return members_.open(member, told);
    }
    void close(redis::session& link) override { members_.close(link); }
    instant now() const override { return clock_; }
    void on_member_up(const redis::server_address& which, const redis::server_facts&) override {
        seen_.push_back("up " + which.host);
    }
    void on_member_down(const failure&) override { seen_.emplace_back("down"); }
    void on_wakes_refused(const failure&) override { seen_.emplace_back("polls"); }
    void confirm(redis::command& request, const redis::server_address* at, redis::acknowledgement) override {
        redis::routing::set_waiting(request);
        seen_.push_back("confirm at " + (at == nullptr ? "nobody" : at->host));
    }
    bool withdraw_confirmation(redis::command& request) override {
        const bool is_it =
            request.life() == redis::command::state::waiting && !seen_.empty() && seen_.back().starts_with("confirm");
        if (is_it) redis::routing::set_idle(request);
        return is_it;
    }

    played_members& members_;
    const instant& clock_;
    std::vector<std::string>& seen_;
};

/// Member `one` has the lock b, `two` the lock a. The Cluster is the first of the nodes, the others are single servers.
class cluster_node_fixture : public played_cluster {
protected:
    explicit cluster_node_fixture(std::size_t single_servers, const std::string& options = {})
        : singles(single_servers), node(two_seeds(options), host, mistrusted_for, 42) {
        node.attach(subject.node(0));
        for (std::size_t i = 0; i < singles.size(); ++i) singles[i].belong_to(subject, i + 1);
    }

    redis::cluster_router& driven() override { return node.router(); }

    void start(const std::string& map = two_halves()) {
        driven().start(now);
        settle();
        come_up(one, {.uptime_s = long_ago_s});
        ASSERT_EQ(sent(one), shards_question);
        say(one, map);
        come_up(two, {.uptime_s = long_ago_s});
        sent(two);
    }
    /// Its link breaks, and there is another to the same run; the server is asked to drop the old one.
    void break_link(const redis::server_address& place, int uptime_s) {
        fail(place);
        pass(30ms);
        come_up(place, {.client_id = 8, .uptime_s = uptime_s});
        EXPECT_THAT(sent(place), ::testing::HasSubstr("KILL"));
        say(place, ":1\r\n");
    }
    void ask(recorded_request& request, const std::string& name) {
        subject.acquire(
            request, {.keys = keys_for(name), .options = {.lease = 30s}, .limit = {waiting::in_queue, now + 1h}}, now);
        settle();
    }
    void acknowledged_acquire(recorded_request& request, const std::string& name) {
        subject.acquire(request,
                        {.keys = keys_for(name),
                         .options = {.lease = 30s, .replica_timeout_ms = 100, .replicas = 1},
                         .limit = {waiting::in_queue, now + 1h}},
                        now);
        settle();
    }
    std::string channel(const std::string& name) { return wire::channel_of(*keys_for(name), subject.id().text()); }
    void wait_in_queue(recorded_request& request, const std::string& name, const redis::server_address& at) {
        ask(request, name);
        sent(at);
        confirm(at, channel(name));
        say(at, list({"2", "900", "other", "77", "0", "41"}));
    }
    /// A fresh map, as soon as somebody is asked for one.
    void tell_map(const std::string& map) {
        pass(10s);
        say(asked_for_map(), map);
    }
    bool is_up(const std::string& name) { return node.link_is_up(*keys_for(name)); }
    /// For how long it is still mistrusted; zero or less: it is believed.
    std::chrono::nanoseconds mistrusted(const std::string& name) { return node.trusted_from(*keys_for(name)) - now; }

    std::vector<node_link> nodes() {
        std::vector<node_link> all{{&node, "redis+cluster://h", channels::one_per_tag}};
        for (auto& each : singles) all.push_back({&each, "redis://h"});
        return all;
    }

    std::vector<testing::played_server> singles;
    std::vector<std::string> seen;
    played_host host{members, now, seen};
    cluster_node node;
    testing::counting_random random;
    testing::silent_observer nobody;
    engine subject{{.max_depth = 10}, nodes(), random, nobody};
    recorded_request first;
    recorded_request second;
};

}  // namespace holdfast::engine::testing
