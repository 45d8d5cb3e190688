// What a watch of several nodes makes of what they say. R55
#include "engine/quorum/majority_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/engine/quorum/quorum_engine_fixture.hpp"

namespace holdfast::engine::majority_watch_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string ann = "hf_0123456789abcdef.1.0123456789abcdefghijkl";
const std::string bob = "hf_fedcba9876543210.1.0123456789abcdefghijkl";
const std::string keeper = "hf_fedcba9876543210.01.0123456789abcdefghijkl";

class recorded_watch final : public watch_listener {
public:
    std::vector<wire::watch_answer> seen;
    std::vector<errc> troubles;
    std::vector<std::string> who() const {
        std::vector<std::string> all;
        for (const wire::watch_answer& each : seen) all.push_back(each.holder);
        return all;
    }

private:
    void on_sight(const wire::watch_answer& what) override { seen.push_back(what); }
    void on_trouble(const failure& why) override { troubles.push_back(why.code); }
};

class MajorityWatch : public ::testing::Test {
protected:
    void held(std::size_t node, const std::string& holder, fencing_token token,
              std::optional<milliseconds> left = 5000ms, const std::string& note = "") {
        majority_watch::listener_at(whole, node)
            ->on_sight({.holder = holder, .left = left, .token = token, .note = note});
    }
    void is_free(std::size_t node, fencing_token token = 0) {
        majority_watch::listener_at(whole, node)->on_sight({.token = token});
    }
    void is_silent(std::size_t node) {
        majority_watch::listener_at(whole, node)->on_trouble({errc::unreachable, "node"});
    }

    std::shared_ptr<recorded_watch> told = std::make_shared<recorded_watch>();
    std::shared_ptr<majority_watch> whole = std::make_shared<majority_watch>(3, told);
};

TEST_F(MajorityWatch, TellsWhatAMajorityHasByOneToken) {
    held(0, ann, 42, 5000ms, "nightly");
    EXPECT_THAT(told->seen, IsEmpty()) << "one of three";
    held(1, ann, 42, 4000ms, "nightly");
    ASSERT_THAT(told->seen, SizeIs(1));
    EXPECT_EQ(told->seen[0].holder, ann);
    EXPECT_EQ(told->seen[0].token, 42U);
    EXPECT_EQ(told->seen[0].note, "nightly");
    EXPECT_EQ(told->seen[0].left, 4000ms) << "what a majority has";
    held(2, ann, 42);
    EXPECT_THAT(told->seen, SizeIs(1)) << "the same";
}

TEST_F(MajorityWatch, WhatAMinoritySaysIsNotTold) {
    is_free(0, 41);
    is_free(1, 41);
    held(2, bob, 77);
    EXPECT_THAT(told->who(), ElementsAre(""));
    EXPECT_EQ(told->seen[0].token, 41U);
}

TEST_F(MajorityWatch, AGrantWhoseTokenIsNotOneYetIsNotTold) {
    held(0, ann, 42);
    held(1, ann, 43);
    held(2, ann, 44);
    EXPECT_THAT(told->seen, IsEmpty());
    held(1, ann, 44);  // raised
    ASSERT_THAT(told->seen, SizeIs(1));
    EXPECT_EQ(told->seen[0].token, 44U);
}

TEST_F(MajorityWatch, FollowsTheMajority) {
    for (std::size_t i : {0U, 1U}) held(i, ann, 42);
    held(2, bob, 43);
    is_free(0, 42);
    EXPECT_THAT(told->who(), ElementsAre(ann)) << "three say three things";
    held(0, bob, 43);
    EXPECT_THAT(told->who(), ElementsAre(ann, bob));
    is_free(2, 43);
    is_free(0, 43);
    EXPECT_THAT(told->who(), ElementsAre(ann, bob, ""));
}

// The third node gets the grant when the first has the release already.
TEST_F(MajorityWatch, WhatANodeSaidBeforeAChangeDoesNotCountAfterIt) {
    is_free(2, 41);
    for (std::size_t i : {0U, 1U}) held(i, ann, 42);
    is_free(0, 42);
    held(2, ann, 42);
    for (std::size_t i : {1U, 2U}) is_free(i, 42);
    EXPECT_THAT(told->who(), ElementsAre(ann, ""));
}

TEST_F(MajorityWatch, OneNodesGreaterTokenHidesNobody) {
    is_free(0, 42);
    is_free(1, 42);
    is_free(2, 30'042);  // its clock is ahead
    for (std::size_t i : {0U, 1U}) held(i, bob, 50);
    EXPECT_THAT(told->who(), ElementsAre("", bob));
}

TEST_F(MajorityWatch, WhatIsNewerThanAChangeCounts) {
    for (std::size_t i : {0U, 1U, 2U}) held(i, ann, 42);
    held(0, bob, 43);
    is_free(1, 42);
    is_free(2, 42);
    EXPECT_THAT(told->who(), ElementsAre(ann, ""));
    held(1, bob, 43);
    EXPECT_THAT(told->who(), ElementsAre(ann, "", bob));
}

TEST_F(MajorityWatch, WhatASilentNodeSaidDoesNotCount) {
    for (std::size_t i : {0U, 1U, 2U}) held(i, ann, 42);
    is_silent(2);
    EXPECT_THAT(told->troubles, IsEmpty()) << "a majority answers";
    // With what the third once said, these would be two that say it is free.
    is_free(0, 42);
    EXPECT_THAT(told->who(), ElementsAre(ann));
    is_free(1, 42);
    EXPECT_THAT(told->who(), ElementsAre(ann, ""));
    held(0, bob, 43);
    is_silent(1);
    EXPECT_THAT(told->troubles, ElementsAre(errc::unreachable));
    is_silent(0);
    EXPECT_THAT(told->troubles, SizeIs(1)) << "once";
    held(0, bob, 43);
    EXPECT_THAT(told->who(), ElementsAre(ann, "")) << "one answers again";
    held(1, bob, 43);
    EXPECT_THAT(told->who(), ElementsAre(ann, "", bob));
    is_silent(0);
    is_silent(1);
    EXPECT_THAT(told->troubles, SizeIs(2)) << "trouble after an answer";
}

TEST_F(MajorityWatch, AStaleFreeNodeDoesNotMakeAHeldLockFree) {
    is_free(0);
    is_free(1);
    held(1, ann, 42);
    held(2, ann, 42);
    is_silent(0);
    is_silent(1);
    is_free(2, 42);  // one of three, with a free one that is silent
    EXPECT_THAT(told->who(), ElementsAre("", ann));
}

TEST_F(MajorityWatch, TellsNoHolderAfterOneWithAGreaterToken) {
    for (std::size_t i : {0U, 1U}) held(i, bob, 43);
    for (std::size_t i : {0U, 1U}) held(i, ann, 42);
    EXPECT_THAT(told->who(), ElementsAre(bob));
    for (std::size_t i : {0U, 1U}) is_free(i, 42);
    ASSERT_THAT(told->who(), ElementsAre(bob, ""));
    EXPECT_EQ(told->seen[1].token, 43U);
}

TEST_F(MajorityWatch, TheTokensOfAKeptHoldDifferFromNodeToNode) {
    held(0, keeper, 42);
    held(1, keeper, 45);
    ASSERT_THAT(told->seen, SizeIs(1));
    EXPECT_EQ(told->seen[0].token, 42U) << "what a majority has at least";
    held(2, keeper, 44);
    held(0, keeper, 50);
    EXPECT_THAT(told->seen, SizeIs(1)) << "its numbers move";
}

TEST_F(MajorityWatch, ALeaseWithoutEndIsOneOfAMajority) {
    held(0, ann, 42, std::nullopt);
    held(1, ann, 42, std::nullopt);
    ASSERT_THAT(told->seen, SizeIs(1));
    EXPECT_EQ(told->seen[0].left, std::nullopt);
}

/// The same with the engine around it.
class WatchOfThreeServers : public testing::quorum_engine_fixture {
protected:
    void SetUp() override { watches = subject.watch_all(keys, told, now); }
    void held(std::size_t server, const std::string& holder, const std::string& token) {
        EXPECT_EQ(ask(server).script, "mutex/watch");
        answer(server, {"1", holder, "5000", token, ""});
    }
    void is_free(std::size_t server, const std::string& token) {
        EXPECT_EQ(ask(server).script, "mutex/watch");
        answer(server, {"0", token});
    }

    std::shared_ptr<recorded_watch> told = std::make_shared<recorded_watch>();
    std::vector<lock_watch*> watches;
};

TEST_F(WatchOfThreeServers, AsksEachAndTellsTheMajority) {
    ASSERT_THAT(watches, SizeIs(3));
    held(0, ann, "42");
    EXPECT_THAT(told->seen, IsEmpty());
    held(2, ann, "42");
    EXPECT_THAT(told->who(), ElementsAre(ann));
    is_free(1, "42");
    EXPECT_THAT(told->who(), ElementsAre(ann));
    later(5002ms);
    is_free(0, "42");
    EXPECT_THAT(told->who(), ElementsAre(ann, ""));
    for (lock_watch* each : watches) subject.unwatch(*each, now);
    for (std::size_t server : {0U, 1U}) {
        EXPECT_EQ(ask(server).arguments.at(1), "") << "it is told no longer";
        answer(server, {"0", "42"});
    }
    held(2, bob, "43");
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(WatchOfThreeServers, AServerWhoseLinkIsDownDoesNotCount) {
    for (std::size_t server : {0U, 1U, 2U}) held(server, ann, "42");
    servers[2].take_link_down(now);
    EXPECT_THAT(told->troubles, IsEmpty());
    servers[1].take_link_down(now);
    EXPECT_THAT(told->troubles, ElementsAre(errc::unreachable));
    servers[1].bring_link_up({}, now);
    held(1, ann, "42");
    servers[1].take_link_down(now);
    EXPECT_THAT(told->troubles, SizeIs(2)) << "a majority had answered again";
    EXPECT_THAT(told->who(), ElementsAre(ann));
}

TEST_F(WatchOfThreeServers, AServerThatMayHaveForgottenDoesNotSayThatItIsFree) {
    servers[0].mistrust("x", now + 10s);
    is_free(0, "0");
    is_free(1, "41");
    EXPECT_THAT(told->seen, IsEmpty());
    later(1s);
    held(0, ann, "42");  // it was granted elsewhere meanwhile, and healed here
    held(2, ann, "42");
    EXPECT_THAT(told->who(), ElementsAre(ann));
}

}  // namespace
}  // namespace holdfast::engine::majority_watch_test
