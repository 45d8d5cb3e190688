// When a caller that leads looks for its answer, and for how long.
#include <gtest/gtest.h>

#include "api/runtime/spin_policy.hpp"

namespace holdfast::testing::spin_policy_test {
namespace {

using namespace std::chrono_literals;
using api::spin_policy;
using outcome = spin_policy::outcome;
using core = spin_policy::core;
using us = std::chrono::microseconds;

constexpr instant start{1h};

// Looks in vain as often as the policy says, for a number of leads that follow each other every `every`.
struct vain_leads {
    int looks = 0;
    std::chrono::nanoseconds spent{0};

    vain_leads(spin_policy& policy, int leads, std::chrono::nanoseconds every, instant from) {
        for (int i = 0; i < leads; ++i) {
            const auto look = policy.look_for(from + i * every);
            if (look == 0ns) continue;
            ++looks;
            spent += look;
            policy.looked(look, outcome::in_vain, core::kept);
        }
    }
};

TEST(SpinPolicy, LooksAtFirstAndOnWhileAnswersCome) {
    spin_policy policy;
    EXPECT_EQ(policy.look_for(start), 50us);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_GT(policy.look_for(start + i * 40us), 0ns) << i;
        policy.looked(20us, outcome::answered, core::kept);
    }
}

TEST(SpinPolicy, LooksTwiceAsLongAsAnswersTakeWithinBounds) {
    spin_policy policy;
    for (int i = 0; i < 100; ++i) policy.looked(20us, outcome::answered, core::kept);
    EXPECT_NEAR(double(std::chrono::duration_cast<us>(policy.look_for(start)).count()), 40, 2);
    for (int i = 0; i < 100; ++i) policy.looked(1us, outcome::answered, core::kept);
    EXPECT_EQ(policy.look_for(start), spin_policy::shortest_look);
    for (int i = 0; i < 100; ++i) policy.looked(90us, outcome::answered, core::kept);
    EXPECT_EQ(policy.look_for(start), spin_policy::longest_look);
}

TEST(SpinPolicy, LooksLongerAfterLooksInVain) {
    spin_policy policy;
    const auto first = policy.look_for(start);
    policy.looked(first, outcome::in_vain, core::kept);
    while (policy.look_for(start) == 0ns) {
    }
    EXPECT_GT(policy.look_for(start), first);
}

TEST(SpinPolicy, LooksAgainRegularlyWhereLookingIsInVain) {
    spin_policy policy;
    // Leads a millisecond apart: the budget does not matter. 1 + 3 + 7 + 15 leads are skipped, then 31 each time.
    const vain_leads seen(policy, 10'000, 1ms, start);
    EXPECT_NEAR(seen.looks, 10'000 / 32, 5);
}

TEST(SpinPolicy, AnAnswerEndsTheSkipping) {
    spin_policy policy;
    const vain_leads before(policy, 200, 1ms, start);
    while (policy.look_for(start + 1s) == 0ns) {
    }
    policy.looked(20us, outcome::answered, core::kept);
    EXPECT_GT(policy.look_for(start + 1s), 0ns);
    EXPECT_GT(policy.look_for(start + 1s), 0ns);
}

TEST(SpinPolicy, LooksInVainTakeATwentiethOfTheTimeAtMost) {
    spin_policy policy;
    // The worst case: every second look finds its answer, which ends the skipping.
    std::chrono::nanoseconds in_vain{0};
    instant now = start;
    for (int i = 0; i < 100'000; ++i, now += 5us) {
        const auto look = policy.look_for(now);
        if (look == 0ns) continue;
        policy.looked(look, i % 2 == 0 ? outcome::in_vain : outcome::answered, core::kept);
        if (i % 2 == 0) in_vain += look;
        now += look;
    }
    EXPECT_GT(in_vain, 0ns);
    EXPECT_LE(in_vain, (now - start) / spin_policy::budget_part + spin_policy::largest_budget);
}

TEST(SpinPolicy, DoesNotLookForAWhileWhereThreadsWaitForACore) {
    spin_policy policy;
    policy.looked(50us, outcome::in_vain, core::shared);
    for (int i = 0; i < spin_policy::most_skipped; ++i) EXPECT_EQ(policy.look_for(start + i * 1ms), 0ns) << i;
    EXPECT_GT(policy.look_for(start + 1s), 0ns);
}

TEST(SpinPolicy, AFixedTimeIsKeptWhateverLooksBring) {
    spin_policy always{us(200)};
    spin_policy never{us(0)};
    for (int i = 0; i < 100; ++i) {
        EXPECT_EQ(always.look_for(start), 200us);
        EXPECT_EQ(never.look_for(start), 0ns);
        always.looked(200us, outcome::in_vain, core::shared);
    }
}

}  // namespace
}  // namespace holdfast::testing::spin_policy_test
