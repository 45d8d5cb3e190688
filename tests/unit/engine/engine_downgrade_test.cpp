// Holding less, against a server played by the test: downgrades, releases of one side, and what a push says about
// several holds or ends one.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_downgrade_test {
namespace {

using namespace testing;

using EngineDowngrade = read_write_engine_fixture;

// R27
TEST_F(EngineDowngrade, IsRepeatedAfterABrokenLink) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    send();
    break_link();
    expect_question(send_one(), "rw/release", "51", "r");
    EXPECT_FALSE(answer.code);
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(answer.code, errc{});
}

TEST_F(EngineDowngrade, ThatIsNotAnsweredGoesOnInTheBackground) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    send();
    EXPECT_EQ(held.levels(access::exclusive), 0U) << "the holder believes in less before the server does";
    later(2s);
    EXPECT_EQ(answer.code, errc::outcome_unknown);
    receive(list({"1", "0", "1"}));
    EXPECT_FALSE(life->lost);
    EXPECT_EQ(held.levels(access::shared), 2U);
}

TEST_F(EngineDowngrade, RefusedForAReasonThatMayPassIsSentAgain) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    send();
    receive("-BUSY a script is running\r\n");
    EXPECT_EQ(send().size(), 0U);
    later(150ms);
    expect_question(send_one(), "rw/release", "51", "r");
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(answer.code, errc{});
}

// An old copy of an upgrade that ran late made it another grant.
TEST_F(EngineDowngrade, ThatMeetsAnotherGrantOfItsIdAsksWhatThereIs) {
    hold& held = reading_and_writing();
    subject.downgrade(held, answer, now + 2s, now);
    send();
    receive(list({"-1", "900", id}));
    expect_question(send_one(), "rw/cancel");
    receive(list({"1", "b", "60"}));
    expect_question(send_one(), "rw/release", "60", "r");
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(answer.code, errc{});
}

// R24
TEST_F(EngineDowngrade, ReleasingTheWritingSideIsADowngrade) {
    hold& held = reading_and_writing();
    subject.release(held, access::exclusive, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "51", "r");
    receive(list({"1", "0", "1"}));
    EXPECT_EQ(answer.code, errc{});
    subject.release(held, access::shared, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "51", "");
}

// R23
TEST_F(EngineDowngrade, ReleasingTheReadingSideLeavesWriting) {
    hold& held = reading_and_writing();
    subject.release(held, access::shared, &answer, now + 2s, now);
    EXPECT_EQ(answer.code, errc{}) << "nobody else can come in by that: it is not waited for";
    expect_question(send_one(), "rw/release", "51", "w");
    receive(list({"1", "0", "1"}));
    EXPECT_FALSE(life->lost);
    subject.release(held, access::exclusive, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "51", "");
}

TEST_F(EngineDowngrade, AnUpgradeReleasedWhileItIsBeingGivenUpNamesNoToken) {
    hold& held = waiting();
    subject.cancel(upgrade, errc::cancelled, now);
    send();
    subject.release(held, access::shared, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "0", "");
    receive(list({"1", "r", "42"}) + list({"1", "0", "0"}));
    EXPECT_EQ(answer.code, errc{});
    EXPECT_EQ(subject.holds(), 0U);
}

TEST_F(EngineDowngrade, AnUpgradeReleasedWhileItWaitsNamesNoTokenAndTellsTheOneWhoWaits) {
    hold& held = waiting();
    subject.release(held, access::shared, &answer, now + 2s, now);
    EXPECT_EQ(upgrade.refusal_code, errc::not_held);
    expect_question(send_one(), "rw/release", "0", "");
    receive(list({"1", "0", "0"}));
    EXPECT_EQ(answer.code, errc{});
    EXPECT_TRUE(life->gone);
    EXPECT_EQ(subject.holds(), 0U);
}

// The question was on its way when the hold was released, and went down with the same link as the release.
TEST_F(EngineDowngrade, AnUpgradeReleasedWithItsQuestionUnansweredGivesBackWhatALateCopyGets) {
    hold& held = reading();
    ask_for_upgrade(held);
    subject.release(held, access::shared, &answer, now + 2s, now);
    send();
    break_link();
    expect_question(send_one(), "rw/release", "0", "");
    receive(list({"0"}));
    EXPECT_EQ(answer.code, errc{});
    push("grant " + id + " 51");
    expect_question(send_one(), "rw/release", "51", "");
}

// R32: one push per process, however many of its readers came in.
TEST_F(EngineDowngrade, APushThatGrantsToSeveralIsBelievedByEach) {
    recorded_request requests[3];
    std::string text = "grant";
    for (std::uint64_t i = 0; i < 3; ++i) {
        subject.acquire(requests[i], terms(access::shared, owner_id{100 + i}), now);
        text += " " + send_one().arguments.at(0) + " " + std::to_string(51 + i);
        receive(queued);
    }
    push(text);
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_NE(requests[i].held, nullptr) << i;
        EXPECT_EQ(requests[i].held->token(), 51 + i);
    }
}

TEST_F(EngineDowngrade, APushThatMakesNoSenseIsBelievedUpToThere) {
    recorded_request second;
    subject.acquire(first, terms(access::shared, owner_id{1}), now);
    const std::string one = send_one().arguments.at(0);
    receive(queued);
    subject.acquire(second, terms(access::shared, owner_id{2}), now);
    const std::string two = send_one().arguments.at(0);
    receive(queued);
    push("grant " + one + " 51 " + two + " 52x");
    EXPECT_NE(first.held, nullptr);
    EXPECT_EQ(second.held, nullptr);
}

TEST_F(EngineDowngrade, ARevocationMeansOneGrantOnly) {
    hold& held = reading_and_writing();
    push("revoked " + id + " 42");
    EXPECT_FALSE(life->lost) << "that was the grant before the upgrade";
    push("revoked " + id + "x 51");
    EXPECT_FALSE(life->lost);
    push("revoked " + id + " 51");
    EXPECT_EQ(life->lost, errc::not_held);
    EXPECT_EQ(held.levels(access::exclusive), 1U) << "it is still to be released";
    subject.release(held, access::exclusive, &answer, now + 2s, now);
    EXPECT_EQ(answer.code, errc::lost);
}

TEST_F(EngineDowngrade, ARecallMeansOneGrantAndLeavesItOnTheServerUntilTheHolderReleases) {
    hold& held = reading();
    push("recall " + id + " 41");
    push("recall " + id + "x 42");
    EXPECT_FALSE(life->lost);
    push("recall " + id + " 42");
    EXPECT_EQ(life->lost, errc::lost);
    EXPECT_THAT(send(), ::testing::IsEmpty()) << "the holder has not stopped yet";
    later(20s);
    EXPECT_THAT(send(), ::testing::IsEmpty()) << "it is renewed no longer";
    subject.release(held, access::shared, &answer, now + 2s, now);
    expect_question(send_one(), "rw/release", "42");
    EXPECT_EQ(answer.code, errc::lost);
}

TEST_F(EngineDowngrade, ARecallOrRevocationWithoutATokenMeansAnyGrantOfThatId) {
    reading();
    push("recall " + id + "x 0");
    EXPECT_FALSE(life->lost);
    push("recall " + id + " 0");
    EXPECT_EQ(life->lost, errc::lost);
    push("revoked " + id + " 0");
    EXPECT_THAT(send(), ::testing::IsEmpty());
}

TEST_F(EngineDowngrade, ARecallIsHeardAlsoIfNobodyEverWaited) {
    subject.keep_listening(*keys, now);
    EXPECT_THAT(server.take_subscriptions(), ::testing::SizeIs(1));
}

}  // namespace
}  // namespace holdfast::engine::engine_downgrade_test
