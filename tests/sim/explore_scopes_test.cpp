// The scopes that `./dev test` explores completely. `./dev sim --explore all` explores the others. And the locks of
// others and the mutants, in which the exploration must find what is broken.

#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "explore/scopes.hpp"

namespace holdfast::sim::explore::explore_scopes_test {
namespace {

scope find(std::string_view name) {
    const std::vector<scope> found = find_scopes(name);
    EXPECT_EQ(found.size(), 1) << name;
    return found.at(0);
}

std::string test_name(const std::string& scope) {
    std::string name = scope;
    for (char& c : name) {
        if (c == '/' || c == '-') c = '_';
    }
    return name;
}

class Scopes : public ::testing::TestWithParam<std::string> {};

TEST_P(Scopes, KeepEveryRuleInEveryOrder) {
    const findings found = explore(maker_of(find(GetParam())));
    std::cout << found.schedules << " schedules, " << found.states << " states\n";
    EXPECT_EQ(found.verdict, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.states, 50);
}

INSTANTIATE_TEST_SUITE_P(All, Scopes,
                         ::testing::Values("mutex/quiet", "mutex/crash", "mutex/lost_replies", "mutex/clock_forward",
                                           "mutex3/quiet", "leaving/quiet", "rw/quiet", "rw3/quiet", "rw-change/quiet",
                                           "kept/quiet", "quorum/quiet", "delay/crash", "polls/crash", "notes/quiet",
                                           "rw-notes/quiet", "rw-writers/quiet", "permits/quiet", "permits3/quiet",
                                           "rw-both/lost_replies"),
                         [](const auto& one) { return test_name(one.param); });

// A world that is played again must be the same world.
TEST(SmallWorld, HasTheSameSchedulesEachTime) {
    const scope what = find("mutex/pause");
    const findings first = explore(maker_of(what), {.schedules = 300});
    const findings second = explore(maker_of(what), {.schedules = 300});
    EXPECT_EQ(first.states, second.states);
    EXPECT_EQ(first.events, second.events);
}

// Otherwise a state would be taken for another one in which a later verdict is different.
TEST(SmallWorld, TellsStatesApartByWhatIsRememberedForTheVerdict) {
    const scope what = find("writes/quiet");
    small_world where(what, std::make_shared<script_engine>());
    std::set<std::uint64_t> seen{where.state()};
    const auto differs = [&] { return seen.insert(where.state()).second; };
    where.guarded().take({1, 0}, "A");
    EXPECT_TRUE(differs());
    where.guarded().take({1, 7}, "A");
    EXPECT_TRUE(differs());
    where.line().asks("B");
    where.line().asks("A");
    where.line().waits("A");
    EXPECT_TRUE(differs());
    where.line().asks("B");
    EXPECT_TRUE(differs());
    const auto held = where.check().believes({.lock = "lock",
                                              .id = "A",
                                              .token = 9,
                                              .until = where.time().now() + what.lease,
                                              .lease = what.lease,
                                              .asked = where.time().now()});
    EXPECT_TRUE(differs());
    where.check().extended(held, where.time().now() + 2 * what.lease);
    EXPECT_TRUE(differs());
    held->over = true;
    EXPECT_TRUE(differs());
}

struct broken_lock {
    std::string scope;
    std::string verdict;
    friend std::ostream& operator<<(std::ostream& out, const broken_lock& one) { return out << one.scope; }
};

class OtherLocks : public ::testing::TestWithParam<broken_lock> {};

TEST_P(OtherLocks, AreFoundToBeBroken) {
    const scope what = find(GetParam().scope);
    const findings found = explore(maker_of(what));
    std::cout << found.schedules << " schedules, " << found.violating_events << " events: " << found.verdict << "\n";
    EXPECT_TRUE(found.verdict.find(GetParam().verdict) != std::string::npos) << found.verdict;
    const auto ignore = [](const std::string&) {};
    EXPECT_EQ(replay(maker_of(what), found.violating, ignore), found.verdict);
}

INSTANTIATE_TEST_SUITE_P(All, OtherLocks,
                         ::testing::Values(broken_lock{"other/queue/quiet", "still not served"},
                                           broken_lock{"other/queue/order", "overtaken"},
                                           broken_lock{"other/queue/crash", "without expiry"},
                                           broken_lock{"other/wait-mark/quiet", "still not served"},
                                           broken_lock{"other/wait-mark/again", "refused to read once more"},
                                           broken_lock{"other/redlock/pause", "wrote after a later holder"},
                                           broken_lock{"other/redlock/clock_forward", "two conflicting holders"}),
                         [](const auto& one) { return test_name(one.param.scope); });

}  // namespace
}  // namespace holdfast::sim::explore::explore_scopes_test
