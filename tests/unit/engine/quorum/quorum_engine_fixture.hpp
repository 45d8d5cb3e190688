// The engine with three servers that the test plays.
#pragma once

#include <array>

#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::testing {

class watching_observer final : public silent_observer {
public:
    std::vector<std::size_t> fewer;
    std::vector<std::size_t> more;

private:
    void on_support(const std::string&, support_now what, support_count count) override {
        EXPECT_EQ(count.nodes, 3U);
        (what == support_now::fewer ? fewer : more).push_back(count.in_favour);
    }
};

class quorum_engine_fixture : public ::testing::Test {
protected:
    static constexpr std::chrono::microseconds clock{1'700'000'000'000'000};

    /// What the servers' clocks show, as far as they tell.
    using clocks = std::array<std::optional<std::chrono::microseconds>, 3>;

    explicit quorum_engine_fixture(const clocks& told = {clock, clock, clock}) {
        for (std::size_t i = 0; i < servers.size(); ++i) {
            servers[i].belong_to(subject, i);
            servers[i].bring_link_up({.clock = told[i]}, now);
        }
    }

    acquire_terms terms(waiting wait = waiting::in_queue) const {
        return {.keys = keys, .options = {.lease = 3000ms}, .owner = owner_id{7}, .limit = {wait, now + 2s}};
    }
    question ask(std::size_t server) {
        std::vector<question> asked = servers[server].send(now);
        EXPECT_EQ(asked.size(), 1U) << "server " << server;
        return asked.empty() ? question{} : asked.front();
    }
    bool is_silent(std::size_t server) { return servers[server].send(now).empty(); }
    void begin(waiting wait = waiting::in_queue) {
        subject.acquire(first, terms(wait), now);
        for (std::size_t i = 0; i < servers.size(); ++i) {
            const question asked = ask(i);
            EXPECT_EQ(asked.script, "mutex/acquire");
            id = asked.arguments.at(0);
            ticket = asked.arguments.at(5);
            proposal = asked.arguments.at(8);
        }
    }
    void answer(std::size_t server, std::initializer_list<std::string_view> words) {
        servers[server].receive(list(words), now);
    }
    void grant(std::size_t server, const std::string& token) { answer(server, {"1", token}); }
    // Behind another client of ours.
    void queue(std::size_t server) {
        answer(server, {"2", "900", "hf_0123456789abcdef.1.0123456789abcdefghijkl", ticket, "0", "41"});
    }
    void later(milliseconds by) {
        now += by;
        subject.on_timer(now);
    }

    counting_random random;
    watching_observer observing;
    std::array<played_server, 3> servers;
    engine subject{{.max_depth = 10},
                   {{&servers[0], "redis://a"}, {&servers[1], "redis://b"}, {&servers[2], "redis://c"}},
                   random,
                   observing};
    std::shared_ptr<const lock_keys> keys = keys_for("x");
    recorded_request first;
    std::string id;
    std::string ticket;
    std::string proposal;
    instant now{1h};
};

}  // namespace holdfast::engine::testing
