// Plays the members of a Cluster for a router, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redis/cluster/cluster_router.hpp"
#include "unit/redis/cluster/cluster_answers.hpp"
#include "unit/redis/session/session_driver.hpp"

namespace holdfast::redis::testing {

inline const server_address one{"one", 7001};
inline const server_address two{"two", 7002};
inline const server_address three{"three", 7003};
inline const server_address four{"four", 7004};

// Slots of these: 15495, 3300, 7365.
inline const std::string key_a = "a";
inline const std::string key_b = "b";
inline const std::string key_c = "c";

/// `one` owns the lower half with b and c, `two` the upper half with a.
inline std::string two_halves() {
    return shards_answer(
        {shard_answer({{0, 8191}}, {node_answer(one)}), shard_answer({{8192, 16383}}, {node_answer(two)})});
}

inline std::string all_at(const server_address& owner) {
    return shards_answer({shard_answer({{0, 16383}}, {node_answer(owner)})});
}

// What members answer.
inline const std::string b_moved = "-MOVED 3300 two:7002\r\n";
inline const std::string b_asks = "-ASK 3300 two:7002\r\n";
inline const std::string try_again = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";

inline const std::string asking = encoded({"ASKING"});
// A channel in the slot of b: its subscription, a message, and the end that the server announces.
inline const std::string b_channel = "wake:{b}:me";
inline const std::string subscribe_b = encoded({"SSUBSCRIBE", b_channel});
inline std::string b_message(const std::string& text) {
    return ">3\r\n" + bulk("smessage") + bulk(b_channel) + bulk(text);
}
inline std::string ended(const std::string& which = b_channel) {
    return ">3\r\n" + bulk("sunsubscribe") + bulk(which) + ":0\r\n";
}

constexpr script lock_step{"step", "0123456789012345678901234567890123456789", "return 1"};

class played_members : public link_maker {
public:
    explicit played_members(const instant& clock) : clock_(clock) {}

    session& open(const server_settings& member, session_listener& told) override {
        const server_address address{member.host, member.port};
        opened.push_back(address.host);
        auto& made = links[address] = std::make_unique<session_driver>(member, told);
        made->now = clock_;
        return made->subject;
    }
    void close(session& link) override {
        for (auto at = links.begin(); at != links.end(); ++at) {
            if (&at->second->subject != &link) continue;
            closed.push_back(at->first.host);
            links.erase(at);
            return;
        }
        FAIL() << "closed what was not open";
    }

    std::map<server_address, std::unique_ptr<session_driver>> links;
    std::vector<std::string> opened;
    std::vector<std::string> closed;

private:
    const instant& clock_;
};

/// Drives a router through events of its members.
class played_cluster : public ::testing::Test {
protected:
    virtual cluster_router& driven() = 0;

    /// Runs what is due and sends all output.
    void settle() {
        driven().on_timer(now);
        for (const auto& [address, link] : members.links) {
            link->now = now;
            sent_[address] += link->pump();
        }
    }
    void pass(std::chrono::nanoseconds time) {
        now += time;
        settle();
    }

    /// Since the last call.
    std::string sent(const server_address& to) { return std::exchange(sent_[to], ""); }

    /// The member that is asked for the map, at the latest after a second.
    server_address asked_for_map() {
        for (int i = 0; i < 20; ++i) {
            for (auto& [address, bytes] : sent_) {
                const auto at = bytes.find(shards_question);
                if (at == std::string::npos) continue;
                bytes.erase(at, shards_question.size());
                return address;
            }
            pass(std::chrono::milliseconds(50));
        }
        ADD_FAILURE() << "nobody was asked";
        return {};
    }
    bool is_asked_for_map() const {
        return std::any_of(sent_.begin(), sent_.end(),
                           [&](const auto& each) { return each.second.find(shards_question) != std::string::npos; });
    }

    session_driver& link(const server_address& address) { return *members.links.at(address); }
    bool has_link(const server_address& address) const { return members.links.contains(address); }

    /// Connects and greets the link. The default run id is the name of the host.
    void come_up(const server_address& address, fake_server_facts facts = {}) {
        facts.mode = "cluster";
        if (facts.run_id == fake_server_facts{}.run_id) facts.run_id = address.host;
        link(address).now = now;
        link(address).connect();
        now = std::max(now, link(address).now);
        sent_[address] += link(address).receive(greeting_answers(facts));
        settle();
    }
    void fail(const server_address& address, errc why = errc::unreachable) {
        link(address).now = now;
        if (!link(address).subject.linked() && !link(address).connecting) link(address).sleep_until_due();
        now = std::max(now, link(address).now);
        link(address).fail(why);
        settle();
    }
    void say(const server_address& from, const std::string& bytes) {
        link(from).now = now;
        sent_[from] += link(from).receive(bytes);
        settle();
    }
    void confirm(const server_address& at, const std::string& channel) {
        say(at, ">3\r\n" + bulk("ssubscribe") + bulk(channel) + ":1\r\n");
    }

    const std::string shards_question = encoded({"CLUSTER", "SHARDS"});
    instant now{std::chrono::seconds(1000)};
    played_members members{now};

private:
    std::map<server_address, std::string> sent_;
};

/// Logs "up one: b c", "down!code: a" with the affected keys among a, b, c; "push ...".
class cluster_fixture : public played_cluster, protected router_listener {
protected:
    cluster_router& driven() override { return router; }

    // A command of one key, or a script of two.
    recorded_command get(const std::string& name, const std::string& key) {
        recorded_command made(log, name);
        made.set_payload(encoded({name, key}));
        return made;
    }
    recorded_command two_keys(const std::string& name, const std::string& key) {
        recorded_command made(log, name);
        made.script_payload(lock_step, 4) = bulk("2") + bulk(key) + bulk("{" + key + "}:side") + bulk(name);
        return made;
    }
    static std::string script_bytes(const std::string& name, const std::string& key) {
        return encoded({"EVALSHA", lock_step.sha1, "2", key, "{" + key + "}:side", name});
    }

    void submit(command& request) {
        router.submit(request, now);
        settle();
    }

    /// Up with `one`, which has told the map.
    void start(const std::string& map = two_halves()) {
        router.start(now);
        settle();
        come_up(one);
        ASSERT_EQ(sent(one), shards_question);
        say(one, map);
        log.clear();
    }
    void start_with_both() {
        start();
        recorded_command first = get("GET", key_a);
        submit(first);
        come_up(two);
        say(two, "+1\r\n");
        ASSERT_EQ(sent(two), encoded({"GET", key_a}));
        log.clear();
    }

    void listen() {
        router.subscribe(b_channel, now);
        settle();
    }
    void listen_at_one() {
        start_with_both();
        listen();
        ASSERT_EQ(sent(one), subscribe_b);
        confirm(one, b_channel);
    }

    void on_slots_up(const slot_set& which, const member_link& at, instant) override {
        EXPECT_EQ(at.facts.run_id, at.address.host);
        log.push_back("up " + at.address.host + ":" + keys_in(which));
        if (when_up) when_up();
    }
    void on_slots_down(const slot_set& which, const failure& why, instant) override {
        log.push_back("down!" + name_of(why.code) + ":" + keys_in(which));
    }
    void on_map(const slot_map&, instant) override { ++maps; }
    void on_push(const reply_view& message, instant) override {
        log.push_back("push " + std::string(message[1].text()) + " " + std::string(message[2].text()));
    }
    void on_channel_refused(const std::string& channel, const failure& why, instant) override {
        log.push_back("refused " + channel + "!" + name_of(why.code));
    }

    static std::string keys_in(const slot_set& which) {
        std::string names;
        for (const std::string& key : {key_a, key_b, key_c}) {
            if (which.has(slot_of(key))) names += " " + key;
        }
        return names;
    }

    event_log log;
    int maps = 0;
    std::function<void()> when_up;
    cluster_router router{parse_url("redis://seed"), {one, two}, members, *this, 42};
};

}  // namespace holdfast::redis::testing
