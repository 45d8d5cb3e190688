// Holds that may be asked back: by which id a node knows them, and what is told of them.
#include "unit/engine/quorum/quorum_engine_fixture.hpp"

namespace holdfast::engine::engine_kept_test {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::mark;

/// What a listener of a kept hold hears.
class recorded_keeper final : public hold_listener {
public:
    unsigned wanted = 0;
    std::vector<fencing_token> ceilings;
    std::vector<instant> proofs;
    std::optional<errc> lost;

private:
    void on_validity(instant) override {}
    void on_lost(errc why) override { lost = why; }
    void on_gone() override {}
    void on_wanted() override { ++wanted; }
    void on_ceiling(fencing_token last) override { ceilings.push_back(last); }
    void on_proof(instant at) override { proofs.push_back(at); }
};

const std::string another = "hf_0123456789abcdef.1.0123456789abcdefghijkl";
const std::string another_kept = "hf_0123456789abcdef.01.0123456789abcdefghijkl";

class EngineKept : public engine_fixture {
protected:
    explicit EngineKept(channels listens = channels::one) : engine_fixture(listens) {}

    acquire_terms terms(lock_kind kind = lock_kind::mutex, access want = access::exclusive) const {
        return {.keys = keys,
                .options = {.lease = 3000ms, .kind = kind, .kept = true},
                .want = want,
                .limit = {waiting::in_queue, now + 60s}};
    }
    hold& acquired(std::initializer_list<std::string_view> answer = {"1", "42", "0", "", "50", "0"}) {
        subject.acquire(first, terms(), now);
        id = send_one().arguments.at(0);
        receive(list(answer));
        first.held->listen(keeper);
        return *first.held;
    }
    void queue() {
        subject.acquire(first, terms(), now);
        id = send_one().arguments.at(0);
        receive(list({"2", "900", another, "77", "0", "41"}));
    }
    static std::string renewed(const std::string& ceiling, const std::string& waiters = "0") {
        return list({"1", "", "", "", ceiling, waiters});
    }
    void renew() {
        later(1000ms);
        EXPECT_EQ(send_one().script, "mutex/renew_block");
    }

    std::string id;
    std::shared_ptr<recorded_keeper> keeper = std::make_shared<recorded_keeper>();
};

class EngineKeptInACluster : public EngineKept {
protected:
    EngineKeptInACluster() : EngineKept(channels::one_per_tag) {}
};

TEST_F(EngineKept, IsMarkedOnlyWhereItsClientHears) {
    server.confirm_subscriptions(false);
    hold& plain = acquired({"1", "42"});
    EXPECT_EQ(wire::mark_of(id), mark::none);
    EXPECT_FALSE(plain.is_kept());
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+hf:wake:" + subject.id().text())) << "for the next one";
    server.confirm_subscriptions(true);
    later(1000ms);
    EXPECT_EQ(send_one().script, "mutex/renew") << "its id never changes";
    receive(list({"1"}));
    subject.release(plain, access::exclusive, nullptr, now + 2s, now);
    EXPECT_EQ(send_one().arguments.at(0), id);
    receive(list({"1", "0"}));
    EXPECT_TRUE(acquired().is_kept());
    EXPECT_EQ(wire::mark_of(id), mark::common_channel);
}

// Its process asks for several waiters at once; the first had a deadline, a later one has none.
TEST_F(EngineKept, OneThatMayWaitLongerGoesOnPollingAfterItsFormerDeadline) {
    acquire_terms soon = terms();
    soon.limit.deadline = now + 500ms;
    subject.acquire(first, soon, now);
    send_one();
    receive(list({"2", "900", another, "77", "0", "41"}));
    subject.extend(first, now + 60s, now);
    later(500ms);
    EXPECT_FALSE(first.refusal_code);
    EXPECT_THAT(send(), IsEmpty());
    later(500ms);
    EXPECT_EQ(send_one().script, "mutex/acquire") << "otherwise the server takes it for dead";
}

TEST_F(EngineKept, OneThatMayWaitLongerWaitsForTheLinkAfterItsFormerDeadline) {
    server.take_link_down(now);
    acquire_terms soon = terms();
    soon.limit.deadline = now + 500ms;
    subject.acquire(first, soon, now);
    subject.extend(first, now + 60s, now);
    later(500ms);
    server.expire(now);
    EXPECT_FALSE(first.refusal_code);
    server.bring_link_up({}, now);
    EXPECT_EQ(send_one().script, "mutex/acquire");
    receive(list({"1", "42", "0", "", "50", "0"}));
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineKept, APlainHoldIsNeverMarked) {
    acquire_terms plain = terms();
    plain.options.kept = false;
    subject.acquire(first, plain, now);
    EXPECT_EQ(wire::mark_of(send_one().arguments.at(0)), mark::none);
    EXPECT_THAT(server.take_subscriptions(), SizeIs(1)) << "it may wait";
    receive(list({"1", "42"}));
    EXPECT_FALSE(first.held->is_kept());
    EXPECT_EQ(first.held->ceiling(), 42U);
}

TEST_F(EngineKeptInACluster, ItIsHeardInTheSlotOfItsLockForAsLongAsItIsHeld) {
    hold& held = acquired();
    EXPECT_EQ(wire::mark_of(id), mark::sharded_channel);
    const std::string channel = "hf:wake:{x}:" + subject.id().text();
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+" + channel));
    server.push(pushed{"smessage", channel, "wanted " + id}, now);
    EXPECT_EQ(keeper->wanted, 1U);
    subject.release(held, access::exclusive, nullptr, now + 2s, now);
    EXPECT_THAT(server.take_subscriptions(), IsEmpty());
    send();
    receive(list({"1", "0"}));
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("-" + channel));
}

TEST_F(EngineKept, TellsThatSomebodyElseWaits) {
    hold& held = acquired();
    EXPECT_FALSE(held.is_wanted());
    push("wanted " + id);
    EXPECT_EQ(keeper->wanted, 1U);
    EXPECT_TRUE(held.is_wanted());
    push("wanted " + id);
    EXPECT_EQ(keeper->wanted, 2U);
}

TEST_F(EngineKept, WantedForAnyOtherIdIsIgnored) {
    hold& held = acquired();
    push("wanted " + another_kept);
    std::string unmarked = id;
    unmarked.erase(unmarked.find(".0") + 1, 1);
    push("wanted " + unmarked);
    EXPECT_EQ(keeper->wanted, 0U);
    const std::string before = id;
    subject.release(held, access::exclusive, nullptr, now + 2s, now);
    send();
    push("wanted " + before);
    receive(list({"1", "0"}));
    EXPECT_FALSE(acquired().is_wanted());
    push("wanted " + before);
    EXPECT_EQ(keeper->wanted, 0U);
}

TEST_F(EngineKept, WantedIsRememberedFromAskingOn) {
    subject.acquire(first, terms(), now);
    id = send_one().arguments.at(0);
    push("wanted " + id);
    receive(list({"1", "42", "0", "", "50", "0"}));
    EXPECT_TRUE(first.held->is_wanted());
}

TEST_F(EngineKept, AnswersAndGrantsTellWhoWaits) {
    EXPECT_TRUE(acquired({"1", "42", "0", "", "50", "3"}).is_wanted());
    renew();
    receive(renewed("60"));
    EXPECT_EQ(keeper->wanted, 0U);
    renew();
    receive(renewed("70", "1"));
    EXPECT_EQ(keeper->wanted, 1U);
}

TEST_F(EngineKept, AHandOverTellsItsBlockAndWhoWaits) {
    queue();
    push("grant_block " + id + " 42 50 1");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
    EXPECT_EQ(first.held->ceiling(), 50U);
    EXPECT_TRUE(first.held->is_wanted());
}

// By a script of a version that knows no blocks.
TEST_F(EngineKept, APlainGrantHasOneNumber) {
    queue();
    push("grant " + id + " 42");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->ceiling(), 42U);
    EXPECT_FALSE(first.held->is_wanted());
}

TEST_F(EngineKept, ACeilingCountsOnceAnswered) {
    hold& held = acquired();
    EXPECT_EQ(held.ceiling(), 50U);
    subject.want_numbers(held, now);
    const question asked = send_one();
    EXPECT_EQ(asked.script, "mutex/renew_block");
    EXPECT_GT(std::stoull(asked.arguments.at(2)), 50U) << "should the server's clock be behind";
    EXPECT_EQ(held.ceiling(), 50U);
    subject.want_numbers(held, now);
    EXPECT_TRUE(send().empty()) << "they are on their way";
    receive(renewed("90"));
    EXPECT_EQ(held.ceiling(), 90U);
    EXPECT_THAT(keeper->ceilings, ElementsAre(90U));
    subject.want_numbers(held, now);
    send();
    receive(renewed("80"));
    EXPECT_EQ(held.ceiling(), 90U);
}

// Another lock's grant, or the same one's anew: no number that may have been given out comes twice.
TEST_F(EngineKept, LaterRequestsOfThisClientAreAboveTheCeiling) {
    acquired();
    renew();
    receive(renewed("900"));
    recorded_request other;
    acquire_terms another_lock = terms();
    another_lock.keys = keys_for("y");
    subject.acquire(other, another_lock, now);
    EXPECT_EQ(send_one().arguments.at(2), "900") << "its token floor";
}

TEST_F(EngineKept, WhileASlotMovesItIsRenewedAloneAndGetsNoNumbers) {
    hold& held = acquired();
    const instant before = held.valid_until();
    renew();
    receive("-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    const question alone = send_one();
    EXPECT_EQ(alone.script, "mutex/renew");
    EXPECT_EQ(alone.arguments.at(0), id);
    receive(list({"1"}));
    EXPECT_GT(held.valid_until(), before);
    EXPECT_EQ(held.ceiling(), 50U);
    renew();
}

TEST_F(EngineKept, AReconnectAsksForAProofAtOnce) {
    const hold& held = acquired();
    EXPECT_EQ(held.proved_at(), now);
    now += 100ms;
    server.take_link_down(now);
    EXPECT_THAT(keeper->proofs, IsEmpty()) << "while it is down local grants go on";
    now += 100ms;
    server.bring_link_up({}, now);
    EXPECT_THAT(keeper->proofs, ElementsAre(instant{}));
    EXPECT_EQ(send_one().script, "mutex/renew_block");
    const instant sent = now;
    now += 50ms;
    receive(renewed("60"));
    EXPECT_THAT(keeper->proofs, ElementsAre(instant{}, sent));
    EXPECT_EQ(held.proved_at(), sent);
}

// In a Cluster a request that is on its way when the slot has another owner is answered by the former one.
TEST_F(EngineKept, AnAnswerFromBeforeIsNoProof) {
    const hold& held = acquired();
    renew();
    now += 10ms;
    server.lose_part("x", now);
    server.regain_part("x", now);
    EXPECT_EQ(held.proved_at(), instant{});
    EXPECT_EQ(send_one().script, "mutex/renew_block");
    const instant sent = now;
    receive(renewed("60", "0"));  // to the first
    EXPECT_EQ(held.proved_at(), instant{});
    receive(renewed("60", "0"));
    EXPECT_EQ(held.proved_at(), sent);
}

TEST_F(EngineKept, AGrantFromBeforeIsNoProof) {
    subject.acquire(first, terms(), now);
    id = send_one().arguments.at(0);
    now += 10ms;
    server.lose_part("x", now);
    server.regain_part("x", now);
    EXPECT_TRUE(send().empty());
    receive(list({"1", "42", "0", "", "50", "0"}));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->proved_at(), instant{});
    EXPECT_EQ(send_one().script, "mutex/renew_block");
    const instant sent = now;
    receive(renewed("60"));
    EXPECT_EQ(first.held->proved_at(), sent);
}

// The answer to a poll that was on its way names the last number, not the token.
TEST_F(EngineKept, APollBehindAPushedGrantProvesItAgain) {
    queue();
    push("poll " + id);
    send_one();
    push("grant_block " + id + " 42 50 0");
    ASSERT_NE(first.held, nullptr);
    first.held->listen(keeper);
    receive(list({"1", "50", "0", "", "50", "0"}));
    EXPECT_EQ(keeper->lost, std::nullopt);
    EXPECT_EQ(first.held->token(), 42U);
}

TEST_F(EngineKept, APollThatWasGrantedAnewEndsThePushedGrant) {
    queue();
    push("poll " + id);
    send_one();
    push("grant_block " + id + " 42 50 0");
    ASSERT_NE(first.held, nullptr);
    first.held->listen(keeper);
    receive(list({"1", "51", "0", "", "60", "0"}));
    EXPECT_EQ(keeper->lost, errc::held_by_other);
}

// The fence tells no more than the last number that was given out.
TEST_F(EngineKept, AnOperatorEndsItByALaterNumber) {
    acquired();
    push("revoked " + id + " 41");
    EXPECT_EQ(keeper->lost, std::nullopt);
    push("revoked " + id + " 50");
    EXPECT_EQ(keeper->lost, errc::not_held);
}

TEST_F(EngineKept, WhoWaitsBesideAKeeperPollsSoonAndThenMoreAndMoreRarely) {
    subject.acquire(first, terms(), now);
    send_one();
    const std::string in_queue = list({"2", "3000", another_kept, "77", "0", "41"});
    receive(in_queue);
    for (const milliseconds after : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
        later(after - 1ms);
        EXPECT_TRUE(send().empty()) << after.count();
        later(1ms);
        EXPECT_EQ(send_one().script, "mutex/acquire") << after.count();
        receive(in_queue);
    }
}

class EngineBesideAKeptLock : public EngineKept {
protected:
    void try_it(instant deadline) {
        acquire_terms at_once = terms();
        at_once.options.kept = false;
        at_once.limit = {waiting::not_at_all, deadline};
        subject.acquire(first, at_once, now);
        id = send_one().arguments.at(0);
        receive(kept);
    }
    const std::string kept = list({"0", "3000", another_kept, "held", "kept"});
};

TEST_F(EngineBesideAKeptLock, ATryAsksAgainAFewTimes) {
    try_it(now + 2s);
    for (const milliseconds after : {2ms, 4ms, 8ms, 16ms, 20ms}) {
        EXPECT_EQ(first.refusal_code, std::nullopt);
        later(after - 1ms);
        EXPECT_TRUE(send().empty()) << after.count();
        later(1ms);
        EXPECT_EQ(send_one().arguments.at(0), id);
        receive(kept);
    }
    EXPECT_EQ(first.refusal_code, errc::busy);
    EXPECT_EQ(first.why.holder, another_kept);
    EXPECT_TRUE(send().empty()) << "nothing of it is left";
}

TEST_F(EngineBesideAKeptLock, ATryGetsWhatIsGivenBack) {
    try_it(now + 2s);
    later(2ms);
    send_one();
    receive(list({"1", "51"}));
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineBesideAKeptLock, ATryEndsByItsOwnDeadline) {
    try_it(now + 5ms);
    later(2ms);
    send_one();
    receive(kept);
    later(3ms);
    EXPECT_EQ(first.refusal_code, errc::busy);
    EXPECT_EQ(first.why.holder, another_kept);
    EXPECT_TRUE(send().empty());
}

TEST_F(EngineBesideAKeptLock, WhereSomebodyUsesItATryIsRefusedAtOnce) {
    try_it(now + 2s);
    later(2ms);
    send_one();
    receive(list({"0", "3000", another_kept}));
    EXPECT_EQ(first.refusal_code, errc::busy);
}

class EngineKeptReadWrite : public EngineKept {
protected:
    hold& reading() {
        subject.acquire(first, terms(lock_kind::read_write, access::shared), now);
        id = send_one().arguments.at(0);
        receive(list({"1", "42", "0", "-1", "42", "0"}));
        first.held->listen(keeper);
        return *first.held;
    }
    recorded_request upgrade;
};

TEST_F(EngineKeptReadWrite, AnUpgradeBringsABlockOfItsOwn) {
    hold& held = reading();
    EXPECT_TRUE(held.is_kept());
    subject.upgrade(held, upgrade, {}, now);
    send_one();
    receive(list({"1", "51", "0", "-1", "70", "0"}));
    ASSERT_EQ(upgrade.held, &held);
    EXPECT_EQ(held.token(), 51U);
    EXPECT_EQ(held.ceiling(), 70U);
}

// A waiter behind the upgrade was not the first, so it did not ask.
TEST_F(EngineKeptReadWrite, TheEndOfAnUpgradeTellsWhoWaits) {
    hold& held = reading();
    subject.upgrade(held, upgrade, {waiting::in_queue, now + 60s}, now);
    send_one();
    receive(list({"2", "900", another, "77", "0", "41", "900"}));
    subject.cancel(upgrade, errc::cancelled, now);
    EXPECT_EQ(send_one().script, "rw/cancel");
    receive(list({"1", "r", "42", "", "42", "0"}));
    EXPECT_EQ(keeper->wanted, 0U);
    subject.upgrade(held, upgrade, {waiting::in_queue, now + 60s}, now);
    send_one();
    receive(list({"2", "900", another, "77", "0", "41", "900"}));
    subject.cancel(upgrade, errc::cancelled, now);
    EXPECT_EQ(send_one().script, "rw/cancel");
    receive(list({"1", "r", "42", "", "42", "1"}));
    EXPECT_EQ(keeper->wanted, 1U);
}

TEST_F(EngineKeptReadWrite, ATriedUpgradeAsksAgainToo) {
    hold& held = reading();
    subject.upgrade(held, upgrade, {waiting::not_at_all, now + 2s}, now);
    send_one();
    receive(list({"0", "3000", another_kept, "reading", "kept"}));
    EXPECT_EQ(upgrade.refusal_code, std::nullopt);
    later(2ms);
    EXPECT_THAT(send_one().arguments, Contains("u"));
    receive(list({"1", "51", "0", "-1", "70", "0"}));
    EXPECT_EQ(upgrade.held, &held);
}

TEST_F(EngineKept, OfReplicasACeilingCountsOnceAcknowledged) {
    acquire_terms replicated = terms();
    replicated.options.replicas = 2;
    replicated.options.replica_timeout_ms = 100;
    subject.acquire(first, replicated, now);
    id = send_one().arguments.at(0);
    receive(list({"1", "42", "0", "", "50", "0"}));
    server.acknowledge(2, now);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->ceiling(), 50U);
    renew();
    receive(renewed("60"));
    EXPECT_EQ(first.held->ceiling(), 50U);
    server.acknowledge(1, now);
    EXPECT_EQ(first.held->ceiling(), 50U);
    later(300ms);
    send_one();
    receive(renewed("70"));
    server.acknowledge(2, now);
    EXPECT_EQ(first.held->ceiling(), 70U);
}

class EngineKeptOnThree : public quorum_engine_fixture {
protected:
    void ask_all(bool third_hears = true, lock_kind kind = lock_kind::mutex) {
        servers[2].confirm_subscriptions(third_hears);
        acquire_terms kept = terms();
        kept.options.kept = true;
        kept.options.kind = kind;
        subject.acquire(first, kept, now);
        for (std::size_t i = 0; i < 3; ++i) ids[i] = ask(i).arguments.at(0);
    }
    hold& acquired(bool third_hears = true) {
        ask_all(third_hears);
        answer(0, {"1", "42", "", "", "50", "0"});
        answer(1, {"1", "42", "", "", "60", "0"});
        first.held->listen(keeper);
        return *first.held;
    }
    void renewed(std::size_t server, const std::string& ceiling, const std::string& waiters = "0") {
        answer(server, {"1", "", "", "", ceiling, waiters});
    }

    std::array<std::string, 3> ids;
    std::shared_ptr<recorded_keeper> keeper = std::make_shared<recorded_keeper>();
};

TEST_F(EngineKeptOnThree, NumbersGoUpToWhatAMajorityHasAnswered) {
    hold& held = acquired();
    EXPECT_EQ(held.ceiling(), 50U);
    answer(2, {"1", "42", "", "", "70", "0"});
    EXPECT_EQ(held.ceiling(), 60U);
    subject.want_numbers(held, now);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ask(i).script, "mutex/renew_block");
    renewed(0, "90");
    EXPECT_EQ(held.ceiling(), 70U);
    renewed(1, "80");
    EXPECT_EQ(held.ceiling(), 80U);
    EXPECT_THAT(keeper->ceilings, ElementsAre(60U, 70U, 80U));
}

TEST_F(EngineKeptOnThree, AnyNodesWordCounts) {
    const hold& held = acquired();
    servers[1].push("wanted " + ids[1], now);
    EXPECT_TRUE(held.is_wanted());
    EXPECT_EQ(keeper->wanted, 1U);
}

TEST_F(EngineKeptOnThree, ANodeThatKnowsItByAPlainIdIsRenewedPlainly) {
    hold& held = acquired(false);
    grant(2, "42");
    EXPECT_NE(ids[2], ids[1]);
    EXPECT_EQ(wire::mark_of(ids[2]), mark::none);
    EXPECT_TRUE(held.is_kept());
    EXPECT_EQ(held.ceiling(), 50U);
    later(1000ms);
    EXPECT_EQ(ask(0).script, "mutex/renew_block");
    EXPECT_EQ(ask(2).script, "mutex/renew");
}

TEST_F(EngineKeptOnThree, WithTooFewMarksItIsAPlainHold) {
    servers[0].confirm_subscriptions(false);
    ask_all(false);
    grant(0, "42");
    answer(1, {"1", "42", "", "", "60", "0"});
    ASSERT_NE(first.held, nullptr);
    EXPECT_FALSE(first.held->is_kept());
    EXPECT_EQ(first.held->ceiling(), 42U);
}

TEST_F(EngineKeptOnThree, AMajorityOfPresentLinksMustProveIt) {
    const hold& held = acquired();
    const instant granted = now;
    answer(2, {"1", "42", "", "", "70", "0"});
    EXPECT_EQ(held.proved_at(), granted);
    now += 10ms;
    const auto reconnect = [this](std::size_t which) {
        servers[which].take_link_down(now);
        servers[which].bring_link_up({}, now);
        EXPECT_EQ(ask(which).script, "mutex/renew_block");
    };
    reconnect(0);
    EXPECT_EQ(held.proved_at(), granted) << "two links are as they were";
    reconnect(1);
    EXPECT_EQ(held.proved_at(), instant{});
    EXPECT_THAT(keeper->proofs, ElementsAre(instant{}));
    renewed(1, "90");
    EXPECT_EQ(held.proved_at(), granted);
    renewed(0, "90");
    EXPECT_EQ(held.proved_at(), now);
}

TEST_F(EngineKeptOnThree, HealingAsksAboveTheCeilingAndAsksNobodyBack) {
    hold& held = acquired();
    answer(2, {"0", "3000", another, "held"});
    subject.want_numbers(held, now);
    for (const std::size_t each : {0U, 1U}) {
        EXPECT_EQ(ask(each).script, "mutex/renew_block");
        renewed(each, "900");
    }
    later(1000ms);
    const question healing = ask(2);
    EXPECT_EQ(healing.script, "mutex/acquire");
    EXPECT_EQ(healing.arguments.at(2), "900") << "its token floor";
    EXPECT_EQ(healing.arguments.at(10), "0") << "it asks nobody back";
}

TEST_F(EngineKeptOnThree, ABlockThatReachesThatFarNeedsNoRaise) {
    ask_all();
    answer(0, {"1", "42", "", "", "60", "0"});
    answer(1, {"1", "55", "", "", "70", "0"});
    EXPECT_TRUE(is_silent(0));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 55U);
    EXPECT_EQ(first.held->ceiling(), 60U);
}

// Its release names the token that the grant remembers.
TEST_F(EngineKeptOnThree, AGrantOfAReadWriteLockIsRaisedInAnyCase) {
    ask_all(true, lock_kind::read_write);
    answer(0, {"1", "42", "", "", "60", "0"});
    answer(1, {"1", "55", "", "", "70", "0"});
    EXPECT_EQ(first.held, nullptr);
    const question raise = ask(0);
    EXPECT_EQ(raise.script, "rw/raise");
    EXPECT_EQ(raise.arguments.at(3), "42");
    EXPECT_EQ(raise.arguments.at(4), "55");
    answer(0, {"1", "w", "55"});
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 55U);
    EXPECT_EQ(first.held->ceiling(), 60U);
}

TEST_F(EngineKeptOnThree, ARaiseThatFindsAnotherGrantOfAReadWriteLockIsNone) {
    ask_all(true, lock_kind::read_write);
    answer(0, {"1", "42", "", "", "60", "0"});
    answer(1, {"1", "55", "", "", "70", "0"});
    EXPECT_EQ(ask(0).script, "rw/raise");
    answer(0, {"-1", "200", ids[0]});
    EXPECT_EQ(first.held, nullptr);
}

TEST_F(EngineKeptOnThree, ARaiseNamesWhatTheNodeToldLast) {
    ask_all();
    answer(0, {"1", "42", "", "", "50", "0"});
    answer(1, {"1", "55", "", "", "60", "0"});
    const question raise = ask(0);
    EXPECT_EQ(raise.script, "mutex/raise");
    EXPECT_EQ(raise.arguments.at(1), "50");
    EXPECT_EQ(raise.arguments.at(2), "55");
    answer(0, {"1"});
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 55U);
    EXPECT_EQ(first.held->ceiling(), 55U);
}

// The first copy of a script that the server did not know goes again, behind what was asked after it.
TEST_F(EngineKeptOnThree, ARaiseThatComesAfterARenewalNamesTheNewCeiling) {
    ask_all();
    answer(0, {"1", "42", "", "", "50", "0"});
    answer(1, {"1", "55", "", "", "60", "0"});
    EXPECT_EQ(ask(0).script, "mutex/raise");
    answer(0, {"-1", "200", ids[0]});
    later(100ms);
    EXPECT_EQ(ask(0).script, "mutex/raise");
    answer(0, {"1"});
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 55U);
}

}  // namespace
}  // namespace holdfast::engine::engine_kept_test
