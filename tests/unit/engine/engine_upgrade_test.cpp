// Upgrades against a server played by the test: when the engine believes that it writes, and what it does about an
// upgrade that nobody wants any more.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_upgrade_test {
namespace {

using namespace testing;

using EngineUpgrade = read_write_engine_fixture;

// R22, R26
TEST_F(EngineUpgrade, NamesTheGrantThatItUpgradesAndTakesTheNewToken) {
    hold& held = reading();
    const question asked = ask_for_upgrade(held);
    EXPECT_EQ(asked.script, "rw/acquire");
    EXPECT_EQ(asked.arguments.at(3), "u");
    EXPECT_EQ(asked.arguments.at(10), "42");
    const instant sent = now;
    now += 100ms;
    receive(list({"1", "51"}));
    ASSERT_EQ(upgrade.held, &held);
    EXPECT_EQ(held.token(), 51U);
    EXPECT_EQ(life->tokens, std::vector<fencing_token>{51});
    EXPECT_EQ(held.levels(access::exclusive), 1U);
    EXPECT_EQ(held.levels(access::shared), 1U);
    EXPECT_EQ(held.valid_until(), sent + 30'000ms - 302ms);
}

TEST_F(EngineUpgrade, IsBelievedByPushOnlyAboveTheFenceOfItsLastAnsweredPoll) {
    hold& held = waiting();
    push("grant " + id + " 50");
    EXPECT_EQ(upgrade.held, nullptr) << "a grant that was over before the poll";
    push("grant " + id + " 51");
    ASSERT_EQ(upgrade.held, &held);
    EXPECT_EQ(held.token(), 51U);
}

TEST_F(EngineUpgrade, IsNotBelievedByPushBeforeAPollWasAnsweredOnThisLink) {
    waiting();
    break_link();
    push("grant " + id + " 51");
    EXPECT_EQ(upgrade.held, nullptr);
    expect_question(send_one(), "rw/acquire");
    receive(list({"1", "51"}));
    EXPECT_NE(upgrade.held, nullptr);
}

TEST_F(EngineUpgrade, IsLostIfAPollBehindTheGrantSaysStillQueued) {
    waiting();
    later(300ms);  // the holder is a stranger, who tells nobody: it is looked after often
    expect_question(send_one(), "rw/acquire");
    push("grant " + id + " 51");
    EXPECT_NE(upgrade.held, nullptr);
    receive(queued);
    EXPECT_EQ(life->lost, errc::held_by_other);
}

TEST_F(EngineUpgrade, IsConfirmedByAPollBehindTheGrant) {
    hold& held = waiting();
    later(300ms);
    send();
    push("grant " + id + " 51");
    const instant before = held.valid_until();
    receive(list({"1", "51"}));
    EXPECT_FALSE(life->lost);
    EXPECT_GT(held.valid_until(), before);
}

TEST_F(EngineUpgrade, OfAHoldThatIsOverMeansThatItIsLost) {
    ask_for_upgrade(reading());
    receive(list({"-1"}));
    EXPECT_EQ(upgrade.refusal_code, errc::lost);
    EXPECT_TRUE(life->lost);
}

// There, this hold wrote once, and has not been downgraded: the server has lost data. By the present token it is no
// better, since an upgrade always has a new one.
TEST_F(EngineUpgrade, ByATokenFromBeforeMeansThatTheHoldIsLost) {  // R13
    hold& held = reading();
    ask_for_upgrade(held);
    receive(list({"1", "42"}));
    EXPECT_EQ(upgrade.held, nullptr);
    EXPECT_EQ(upgrade.refusal_code, errc::lost);
    EXPECT_EQ(life->lost, errc::not_held);
    subject.release(held, access::shared, nullptr, now + 2s, now);
    expect_question(send_one(), "rw/release", "0", "");  // whatever the server has
}

// From the lock's former server: the hold was downgraded at the new one before that answer came.
TEST_F(EngineUpgrade, ThatARenewalTellsByAnOldTokenIsNotBelieved) {  // R13
    hold& held = waiting();
    for (const char* old : {"41", "42"}) {
        subject.renew(held, answer, now);
        expect_question(send_one(), "rw/renew");
        receive(list({"1", "b", old}));
        EXPECT_EQ(upgrade.held, nullptr) << old;
        EXPECT_FALSE(life->lost) << old;
        EXPECT_EQ(held.token(), 42U);
    }
    push("grant " + id + " 51");
    EXPECT_EQ(upgrade.held, &held) << "still waits";
}

// Where the mark of the last token is gone, the poll's answer says nothing about older ones.
TEST_F(EngineUpgrade, ThatIsPushedByAnOldTokenIsNotBelievedAndLosesNothing) {  // R13
    hold& held = reading();
    ask_for_upgrade(held);
    receive(list({"2", "900", somebody, "77", "0", "0"}));
    push("grant " + id + " 42");
    EXPECT_EQ(upgrade.held, nullptr);
    EXPECT_FALSE(life->lost);
    push("grant " + id + " 43");
    EXPECT_EQ(upgrade.held, &held);
}

// R26, R31
TEST_F(EngineUpgrade, RefusedLeavesReadingAsItWasAndAsksNothingMore) {
    const struct {
        std::string why;
        errc code;
    } rows[] = {{"deadlock", errc::would_deadlock}, {"reading", errc::read_held}};
    hold& held = reading();
    for (const auto& row : rows) {
        upgrade = {};
        ask_for_upgrade(held);
        receive(list({"0", "900", somebody, row.why}));
        EXPECT_EQ(upgrade.refusal_code, row.code);
        EXPECT_EQ(held.token(), 42U);
        EXPECT_EQ(held.levels(access::shared), 1U);
        EXPECT_EQ(send().size(), 0U) << "the server has nothing to forget";
    }
    EXPECT_FALSE(life->lost);
}

TEST_F(EngineUpgrade, WaitsWhileTheServerIsInTroubleThatMayPass) {
    hold& held = reading();
    ask_for_upgrade(held);
    receive(no_replicas);
    EXPECT_EQ(upgrade.refusal_code, std::nullopt);
    later(100ms);
    expect_question(send_one(), "rw/acquire");
    receive(list({"1", "51"}));
    EXPECT_EQ(upgrade.held, &held);
}

TEST_F(EngineUpgrade, OnlyOneAtATime) {
    hold& held = waiting();
    recorded_request second;
    subject.upgrade(held, second, {}, now);
    EXPECT_EQ(second.refusal_code, errc::too_many);
    push("grant " + id + " 51");
    EXPECT_NE(upgrade.held, nullptr) << "the first goes on";
}

TEST_F(EngineUpgrade, CountsTowardsTheDepth) {
    hold& held = reading_and_writing();
    for (unsigned level = 2; level < 10; ++level) {
        recorded_request again;
        subject.upgrade(held, again, {}, now);
        EXPECT_NE(again.held, nullptr);
    }
    recorded_request too_deep;
    subject.upgrade(held, too_deep, {}, now);
    EXPECT_EQ(too_deep.refusal_code, errc::too_deep);
}

TEST_F(EngineUpgrade, GivenUpLeavesTheQueueAndGoesOnReading) {
    hold& held = waiting();
    subject.cancel(upgrade, errc::cancelled, now);
    EXPECT_EQ(upgrade.refusal_code, errc::cancelled);
    expect_question(send_one(), "rw/cancel");
    receive(list({"1", "r", "42"}));
    EXPECT_EQ(send().size(), 0U);
    EXPECT_EQ(held.token(), 42U);
    EXPECT_FALSE(life->lost);
}

TEST_F(EngineUpgrade, GrantedWhileItIsGivenUpIsGivenBackByItsToken) {
    hold& held = waiting();
    subject.cancel(upgrade, errc::cancelled, now);
    send();
    push("grant " + id + " 51");
    EXPECT_EQ(upgrade.held, nullptr);
    receive(list({"1", "b", "51"}));
    expect_question(send_one(), "rw/release", "51", "r");
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(send().size(), 0U);
    EXPECT_EQ(held.token(), 42U) << "of the grant that was told";
    EXPECT_EQ(held.levels(access::exclusive), 0U);
    EXPECT_FALSE(life->lost);
    subject.release(held, access::shared, nullptr, now, now);
    expect_question(send_one(), "rw/release", "51");  // by this the server knows the hold now
}

TEST_F(EngineUpgrade, GivenUpTellsALossThatTheServerFinds) {
    waiting();
    subject.cancel(upgrade, errc::timed_out, now);
    send();
    receive(list({"0"}));
    EXPECT_TRUE(life->lost);
}

TEST_F(EngineUpgrade, WaitsForADowngradeUnderWay) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "51", "r");
    recorded_request again;
    subject.upgrade(held, again, {}, now);
    EXPECT_EQ(send().size(), 0U) << "what is being made less must be less first";
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(answer.code, errc{});
    const question asked = send_one();
    EXPECT_EQ(asked.script, "rw/acquire");
    EXPECT_EQ(asked.arguments.at(10), "51");
    receive(list({"1", "60"}));
    EXPECT_EQ(again.held, &held);
}

// Found by simulated scenarios: that the server still had it write counted as a grant, and the caller never heard a
// word.
TEST_F(EngineUpgrade, IsRefusedAlsoWhereTheServerHasNotHeardOfADowngrade) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    send_one();
    receive("-ERR not today\r\n");
    EXPECT_EQ(answer.code, errc::server_error);
    recorded_request again;
    subject.upgrade(held, again, {waiting::in_queue, now + 1s}, now);
    EXPECT_EQ(send_one().script, "rw/acquire");
    later(1s);
    EXPECT_EQ(again.refusal_code, errc::timed_out);
    EXPECT_FALSE(life->lost);
}

// The answer under way is one to a downgrade, whatever else is to be done by then.
TEST_F(EngineUpgrade, GivenUpWhileItWaitsForADowngradeDoesNotMisreadTheDowngradesAnswer) {
    subject.acquire(first, terms(access::shared), now);
    id = send_one().arguments.at(0);
    break_link();  // from here on a copy of the request may be under way
    send();
    receive(list({"1", "42"}));
    hold& held = *first.held;
    held.listen(life);
    ask_for_upgrade(held);
    receive(list({"1", "51"}));
    subject.downgrade(held, answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "51", "r");
    recorded_request again;
    subject.upgrade(held, again, {}, now);
    subject.cancel(again, errc::cancelled, now);
    EXPECT_EQ(again.refusal_code, errc::cancelled);
    receive(list({"1", "0", "1"}));
    expect_question(send_one(), "rw/cancel");
    receive(list({"1", "r", "51"}));
    EXPECT_EQ(answer.code, errc{});
    EXPECT_EQ(send().size(), 0U) << "nothing is left that writes";
    EXPECT_FALSE(life->lost);
}

// Found by simulated scenarios: a renewal that finds other readers' leases over serves the queue, and tells its caller
// only by its answer. The upgrade was learnt of at the next poll.
TEST_F(EngineUpgrade, ThatARenewalBringsIsTakenAtOnce) {
    hold& held = waiting();
    subject.renew(held, answer, now);
    expect_question(send_one(), "rw/renew");
    receive(list({"1", "b", "51"}));
    ASSERT_EQ(upgrade.held, &held);
    EXPECT_EQ(held.token(), 51U);
    EXPECT_EQ(held.levels(access::exclusive), 1U);
    EXPECT_EQ(answer.code, errc{});
}

TEST_F(EngineUpgrade, NobodyAskedForThatARenewalFindsIsGivenBack) {
    hold& held = reading();
    later(10s);
    expect_question(send_one(), "rw/renew");
    receive(list({"1", "b", "51"}));
    expect_question(send_one(), "rw/release", "51", "r");
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(held.token(), 42U) << "of the grant that was told";
    EXPECT_EQ(held.levels(access::exclusive), 0U);
    EXPECT_EQ(send().size(), 0U);
}

TEST_F(EngineUpgrade, ThatARenewalDoesNotFindIsLost) {
    reading_and_writing();
    later(10s);
    expect_question(send_one(), "rw/renew");
    receive(list({"1", "r", "51"}));  // a late copy of an earlier downgrade has hit it
    EXPECT_EQ(life->lost, errc::held_by_other);
}

TEST_F(EngineUpgrade, WhoseGivingUpFailedForGoodIsReleasedByAnyToken) {
    hold& held = waiting();
    subject.cancel(upgrade, errc::cancelled, now);
    expect_question(send_one(), "rw/cancel");
    receive("-NOPERM no permission\r\n");
    subject.release(held, access::shared, &answer, now + 1s, now);
    expect_question(send_one(), "rw/release", "0", "");
}

TEST_F(EngineUpgrade, NobodyAskedForThatIsPushedIsGivenBack) {
    ask_for_upgrade(reading());
    break_link();  // a copy of the question is lost, and may run at any time
    send();
    receive(list({"0", "900", somebody, "deadlock"}));
    EXPECT_EQ(upgrade.refusal_code, errc::would_deadlock);
    expect_question(send_one(), "rw/cancel");
    receive(list({"1", "r", "42"}));
    EXPECT_EQ(send().size(), 0U);
    push("grant " + id + " 51");
    expect_question(send_one(), "rw/release", "51", "r");
}

TEST_F(EngineUpgrade, ALossEndsTheWaitForIt) {
    waiting();
    later(10s);
    for (const question& each : send()) {
        receive(each.script == "rw/renew" ? list({"0"}) : queued);
        if (life->lost) break;
    }
    EXPECT_TRUE(life->lost);
    EXPECT_EQ(upgrade.refusal_code, errc::lost);
}

// A striped lock's stripe.
TEST_F(EngineUpgrade, IsRefusedWhereTheLockForbidsIt) {
    acquire_terms striped = terms(access::shared);
    striped.options.upgrading = upgrades::refused;
    subject.acquire(first, striped, now);
    send();
    receive(list({"1", "42"}));
    subject.upgrade(*first.held, upgrade, {}, now);
    EXPECT_EQ(upgrade.refusal_code, errc::would_deadlock);
    EXPECT_EQ(send().size(), 0U);
}

}  // namespace
}  // namespace holdfast::engine::engine_upgrade_test
