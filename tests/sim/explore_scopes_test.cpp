// The scopes that `./dev test` explores completely. `./dev sim --explore all` explores the others.

#include "explore/scopes.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

namespace holdfast::sim::explore::scopes_test {
namespace {

scope find(std::string_view name) {
    const std::vector<scope> found = find_scopes(name);
    EXPECT_EQ(found.size(), 1) << name;
    return found.at(0);
}

class Scopes : public ::testing::TestWithParam<std::string> {};

TEST_P(Scopes, KeepEveryRuleInEveryOrder) {
    const findings found = explore(maker_of(find(GetParam())));
    std::cout << found.schedules << " schedules, " << found.states << " states\n";
    EXPECT_EQ(found.verdict, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.states, 100);
}

INSTANTIATE_TEST_SUITE_P(All, Scopes, ::testing::Values("mutex/quiet", "mutex/crash"), [](const auto& one) {
    std::string name = one.param;
    for (char& c : name) {
        if (c == '/') c = '_';
    }
    return name;
});

// A world that is played again must be the same world.
TEST(SmallWorld, HasTheSameSchedulesEachTime) {
    const scope what = find("mutex/pause");
    const findings first = explore(maker_of(what), {.schedules = 500});
    const findings second = explore(maker_of(what), {.schedules = 500});
    EXPECT_EQ(first.states, second.states);
    EXPECT_EQ(first.events, second.events);
}

}  // namespace
}  // namespace holdfast::sim::explore::scopes_test
