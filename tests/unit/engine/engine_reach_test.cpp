// Nodes that were never reached: how long the engine waits for them.
#include <array>

#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_reach_test {
namespace {

using namespace std::chrono_literals;
using namespace holdfast::engine::testing;
using ::testing::HasSubstr;

constexpr milliseconds first_connect = 10s;

class EngineReach : public ::testing::Test {
protected:
    EngineReach() {
        server.belong_to(subject, 0);
        server.begin_without_link();
    }

    void acquire(patience limit) { subject.acquire(first, {.keys = keys, .limit = limit}, now); }
    void later(milliseconds by) {
        now += by;
        subject.on_timer(now);
    }

    counting_random random;
    silent_observer nobody;
    played_server server;
    engine subject{{.first_connect = first_connect}, {{&server, "redis://h"}}, random, nobody};
    std::shared_ptr<const lock_keys> keys = keys_for("x");
    recorded_request first;
    instant now{1h};
};

TEST_F(EngineReach, AnUnboundedWaitIsToldTheReasonAfterFirstConnect) {
    acquire({waiting::in_queue, never});
    server.fail_attempt(errc::connection_refused, now);
    later(first_connect - 1ms);
    EXPECT_FALSE(first.refusal_code);
    EXPECT_EQ(subject.deadline(), now + 1ms);
    later(1ms);
    EXPECT_EQ(first.refusal_code, errc::connection_refused);
    EXPECT_EQ(first.refusal_detail, "nobody is there");
    EXPECT_EQ(subject.holds(), 0U) << "there is nothing to undo";
}

TEST_F(EngineReach, ABoundedWaitHasItsOwnTime) {
    acquire({waiting::in_queue, now + 3 * first_connect});
    server.fail_attempt(errc::connection_refused, now);
    later(2 * first_connect);
    EXPECT_FALSE(first.refusal_code);
    later(first_connect);
    EXPECT_TRUE(first.refusal_code);
}

TEST_F(EngineReach, WhatDoesNotWaitEndsWithTheAttempt) {
    acquire({waiting::not_at_all, now + 2s});
    server.fail_attempt(errc::connection_refused, now);
    EXPECT_EQ(first.refusal_code, errc::connection_refused);
}

TEST_F(EngineReach, OnceItIsReachedThereIsNoLimit) {
    acquire({waiting::in_queue, never});
    later(first_connect / 2);
    server.bring_link_up({}, now);
    ASSERT_EQ(server.send(now).size(), 1U);
    server.take_link_down(now);
    later(3 * first_connect);
    EXPECT_FALSE(first.refusal_code);
    recorded_request second;
    subject.acquire(second, {.keys = keys}, now);
    later(3 * first_connect);
    EXPECT_FALSE(second.refusal_code);
}

class EngineReachOfThree : public ::testing::Test {
protected:
    EngineReachOfThree() {
        for (std::size_t i = 0; i < servers.size(); ++i) {
            servers[i].belong_to(subject, i);
            if (i > 0) servers[i].begin_without_link();
        }
        servers[0].bring_link_up({}, now);
    }

    void acquire(patience limit) {
        subject.acquire(first, {.keys = keys, .options = {.lease = 3000ms}, .limit = limit}, now);
    }
    void later(milliseconds by) {
        now += by;
        subject.on_timer(now);
    }
    void grant(std::size_t which) {
        ASSERT_EQ(servers[which].send(now).size(), 1U);
        servers[which].receive(list({"1", "42"}), now);
    }
    /// The first one's vote alone is no majority, and is given back.
    void grant_and_withdraw() {
        grant(0);
        later(10ms);
        ASSERT_EQ(servers[0].send(now).at(0).script, "mutex/release");
        servers[0].receive(list({"1", "0"}), now);
    }

    counting_random random;
    silent_observer nobody;
    std::array<played_server, 3> servers;
    engine subject{{.first_connect = first_connect},
                   {{&servers[0], "redis://a"}, {&servers[1], "redis://b"}, {&servers[2], "redis://c"}},
                   random,
                   nobody};
    std::shared_ptr<const lock_keys> keys = keys_for("x");
    recorded_request first;
    instant now{1h};
};

TEST_F(EngineReachOfThree, AnUnboundedWaitIsToldTheReasonsAfterFirstConnect) {
    acquire({waiting::in_queue, never});
    servers[1].fail_attempt(errc::connection_refused, now);
    servers[2].fail_attempt(errc::connection_refused, now);
    grant_and_withdraw();
    EXPECT_FALSE(first.refusal_code);
    later(first_connect - 11ms);
    EXPECT_FALSE(first.refusal_code);
    later(1ms);
    EXPECT_EQ(first.refusal_code, errc::no_quorum);
    EXPECT_THAT(first.refusal_detail, HasSubstr("nobody is there; nobody is there"));
}

TEST_F(EngineReachOfThree, ABoundedWaitIsToldTheReasonsAtItsDeadline) {
    acquire({waiting::in_queue, now + 3 * first_connect});
    grant_and_withdraw();
    later(2 * first_connect);
    EXPECT_FALSE(first.refusal_code);
    later(first_connect);
    EXPECT_EQ(first.refusal_code, errc::no_quorum);
    EXPECT_THAT(first.refusal_detail, HasSubstr("nobody is there; nobody is there"));
}

TEST_F(EngineReachOfThree, AMajorityThatIsReachedInTimeIsAsked) {
    acquire({waiting::in_queue, never});
    grant_and_withdraw();
    later(first_connect / 2);
    servers[1].bring_link_up({}, now);
    grant(0);
    grant(1);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineReachOfThree, WhatDoesNotWaitEndsWhenNoMajorityIsLeft) {
    acquire({waiting::not_at_all, now + 2s});
    servers[1].fail_attempt(errc::connection_refused, now);
    EXPECT_FALSE(first.refusal_code);
    servers[2].fail_attempt(errc::connection_refused, now);
    EXPECT_EQ(first.refusal_code, errc::no_quorum);
}

}  // namespace
}  // namespace holdfast::engine::engine_reach_test
