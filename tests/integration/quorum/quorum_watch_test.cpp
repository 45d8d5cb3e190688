// Watching and election on a majority of independent servers. R55, R56
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "integration/quorum/quorum_fixture.hpp"
#include "integration/sights.hpp"

namespace holdfast::testing::quorum_watch_test {
namespace {

using namespace std::chrono_literals;

class QuorumWatch : public quorum_fixture {
protected:
    void SetUp() override {
        quorum_fixture::SetUp();
        stock = std::make_unique<mutex>(*subject, "stock", mutex_options{.lease = 3s});
    }
    // The links go first: nothing is left on the servers then.
    void TearDown() override {
        eye.stop();
        stock.reset();
        quorum_fixture::TearDown();
    }
    void begin_to_watch() {
        eye = watch(*other, "stock", seen.callback(), {.on_trouble = [this](const refusal&) { ++troubles; }});
    }
    void expect_watched() {
        lease held = stock->acquire({.note = "watched"});
        EXPECT_TRUE(seen.sees(held.id()));
        EXPECT_EQ(seen.all().back().token, held.token());
        EXPECT_EQ(seen.all().back().note, "watched");
        EXPECT_FALSE(held.release());
        EXPECT_TRUE(seen.sees(""));
    }

    std::unique_ptr<mutex> stock;
    sights seen;
    std::atomic<int> troubles = 0;
    watching eye;
};

TEST_P(QuorumWatch, TellsTheHolderAndItsTokenAfterEachChange) {
    begin_to_watch();
    ASSERT_TRUE(seen.sees(""));
    for (int i = 0; i < 10; ++i) expect_watched();
    seen.expect_order();
    EXPECT_EQ(troubles, 0);
}

TEST_P(QuorumWatch, GoesOnWhileAMajorityAnswers) {
    begin_to_watch();
    ASSERT_TRUE(seen.sees(""));
    for (std::size_t i = 0; i < minority(); ++i) servers[i].kill();
    expect_watched();
    EXPECT_EQ(troubles, 0);
    servers[minority()].kill();
    EXPECT_TRUE(eventually([&] { return troubles == 1; }, an_age));
    seen.expect_order();
}

TEST_P(QuorumWatch, WhatFewerThanAMajorityHaveIsNotTold) {
    for (std::size_t i = 0; i < minority(); ++i) servers[i].call({"SET", "hf:{stock}", "somebody", "PX", "60000"});
    begin_to_watch();
    ASSERT_TRUE(seen.sees(""));
    EXPECT_EQ(seen.all().size(), 1U);
    // One more, and it is told.
    for (std::size_t i = minority(); i < GetParam(); ++i)
        servers[i].call({"SET", "hf:{stock}", "somebody", "PX", "60000"});
    EXPECT_TRUE(seen.sees("somebody"));
    for (redis_server& each : servers) each.call({"DEL", "hf:{stock}"});
    EXPECT_TRUE(seen.sees(""));
}

TEST_P(QuorumWatch, AnElectionTellsItsLeaders) {
    const mutex_options brief{.lease = 3s};
    election mine{*subject, "leader", brief};
    election theirs{*other, "leader", brief};
    EXPECT_FALSE(mine.leader());
    sights observed;
    const watching observer = watch(*other, "leader", observed.callback());
    lease first = mine.campaign("node-1");
    ASSERT_TRUE(theirs.leader());
    EXPECT_EQ(theirs.leader()->value, "node-1");
    EXPECT_EQ(theirs.leader()->token, first.token());
    ASSERT_TRUE(observed.sees(first.id()));
    servers[1].kill();
    mine.resign(first);
    const lease second = theirs.campaign("node-2");
    EXPECT_TRUE(observed.sees(second.id()));
    EXPECT_EQ(mine.leader()->value, "node-2");
    observed.expect_order();
    for (std::size_t i = 2; i <= minority() + 1; ++i) servers[i].kill();
    EXPECT_NE(condition_of([&] { static_cast<void>(mine.leader()); }), errc{}) << "no majority can be asked";
}

HOLDFAST_ON_THREE_AND_FIVE(QuorumWatch);

}  // namespace
}  // namespace holdfast::testing::quorum_watch_test
