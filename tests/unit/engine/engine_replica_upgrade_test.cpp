// Upgrades that count only when replicas have them, and clocks of servers that differ.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_replica_upgrade_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EngineReplicaUpgrade : public read_write_engine_fixture {
protected:
    hold& reading() {
        acquire_terms wanted = terms(access::shared);
        wanted.options.replicas = 2;
        wanted.options.replica_timeout_ms = 100;
        subject.acquire(first, wanted, now);
        id = send_one().arguments.at(0);
        receive(list({"1", "42"}));
        server.acknowledge(2, now);
        first.held->listen(life);
        return *first.held;
    }
};

TEST_F(EngineReplicaUpgrade, CountsWhenItIsConfirmed) {
    ask_for_upgrade(reading());
    receive(list({"1", "51"}));
    EXPECT_EQ(upgrade.held, nullptr);
    server.acknowledge(2, now);
    ASSERT_NE(upgrade.held, nullptr);
    EXPECT_EQ(upgrade.held->token(), 51U);
}

TEST_F(EngineReplicaUpgrade, ThatTooFewHaveIsTakenBackAndTheReaderReadsOn) {
    ask_for_upgrade(reading());
    receive(list({"1", "51"}));
    server.acknowledge(1, now);
    EXPECT_EQ(upgrade.refusal_code, errc::not_replicated);
    expect_question(send_one(), "rw/cancel");
    EXPECT_EQ(life->lost, std::nullopt);
}

TEST_F(EngineReplicaUpgrade, OfWhichARenewalTellsIsConfirmed) {
    hold& held = reading();
    ask_for_upgrade(held);
    receive(queued);
    subject.renew(held, answer, now);
    expect_question(send_one(), "rw/renew");
    receive(list({"1", "b", "51"}));
    ASSERT_THAT(server.confirmations, SizeIs(2)) << "the renewal, and the upgrade";
    for (const auto& each : server.confirmations) EXPECT_THAT(each.asked.arguments, ElementsAre(id, "51"));
    server.acknowledge(2, now);
    EXPECT_EQ(answer.code, errc{});
    EXPECT_EQ(upgrade.held, nullptr);
    server.acknowledge(2, now);
    EXPECT_NE(upgrade.held, nullptr);
}

TEST_F(EngineReplicaUpgrade, ThatAnOperatorEndsWhileItIsConfirmedIsNotBelieved) {
    ask_for_upgrade(reading());
    receive(list({"1", "51"}));
    push("revoked " + id + " 51");
    expect_question(send_one(), "rw/acquire");
    EXPECT_THAT(server.confirmations, IsEmpty());
    EXPECT_EQ(upgrade.held, nullptr);
}

class EngineClockSkew : public ::testing::Test {};

TEST_F(EngineClockSkew, IsTakenOffValidity) {
    counting_random random;
    silent_observer nobody;
    played_server server;
    engine subject({.clock_skew = 250ms}, {{&server, "redis://h"}}, random, nobody);
    server.belong_to(subject, 0);
    recorded_request request;
    const instant now{1h};
    subject.acquire(request, {.keys = keys_for("x"), .options = {.lease = 1000ms}}, now);
    server.send(now);
    server.receive(list({"1", "42"}), now);
    ASSERT_NE(request.held, nullptr);
    EXPECT_EQ(request.held->valid_until(), now + 1000ms - 12ms - 250ms);
}

}  // namespace
}  // namespace holdfast::engine::engine_replica_upgrade_test
