// The judge judged: each of these worlds is wrong in one way, and a thousand days must show it.

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <ostream>
#include <string>
#include <vector>

#include "scripts/registry.hpp"
#include "world/campaign.hpp"

namespace holdfast::sim {
namespace {

struct mutant {
    std::string name;
    std::function<void(day_options&)> apply;
    friend std::ostream& operator<<(std::ostream& out, const mutant& m) { return out << m.name; }
};

// In every script that has `original`, which must be at least one.
mutant in_scripts(std::string name, std::string only, std::string original, std::string instead) {
    return {std::move(name), [=](day_options& day) {
                for (const auto& script : scripts::all()) {
                    if (!only.empty() && script.name != only) continue;
                    std::string text(script.text);
                    const auto at = text.find(original);
                    if (at == std::string::npos) continue;
                    text.replace(at, original.size(), instead);
                    day.replaced_scripts[std::string(script.text)] = text;
                }
                ASSERT_FALSE(day.replaced_scripts.empty()) << "no script has this text any more: " << original;
            }};
}

std::vector<mutant> mutants() {
    return {
        in_scripts("ReleaseOfAnybodysHold", "mutex/release", "if holder == id then", "if holder then"),
        in_scripts("PollDoesNotRefresh", "mutex/acquire", "if channel ~= '' then stand_in_line() end",
                   "if channel ~= '' and not redis.call('ZSCORE', KEYS[2], id) then stand_in_line() end"),
        in_scripts("LastComeFirstServed", "mutex/acquire", "string.format('%.0f', math.max(now_us, last + 1))",
                   "string.format('%.0f', 9e15 - now_us)"),
        in_scripts("HandOverWithoutAWord", "", "redis.pcall('PUBLISH', wants.channel, 'grant ' .. id .. ' ' .. token)",
                   ""),
        in_scripts("RenewalRevives", "mutex/renew", "if not holder then return {0} end",
                   "if not holder then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return {1} end"),
        in_scripts("RenewalInNameOnly", "mutex/renew", "redis.call('PEXPIRE', KEYS[1], ARGV[2])", "local _ = 1"),
        in_scripts("PollOfAHolderDoesNotRefresh", "mutex/acquire", "keep_for(KEYS[1], lease)", ""),
        in_scripts("TokensForgetTheMark", "", "math.max(now_us, (mark or 0) + 1, floor + 1)",
                   "math.max(now_us, floor + 1)"),
        in_scripts("TokensForgetTheClock", "", "math.max(now_us, (mark or 0) + 1, floor + 1)",
                   "(mark or now_us - 10000000) + 1"),
        in_scripts("NewcomersOvertake", "mutex/acquire", "if not holder and in_line == 0 then", "if not holder then"),
        in_scripts("ReleaseHandsOverToNobody", "mutex/release",
                   "redis.call('DEL', KEYS[1])\n    promote_next_waiter(nil, retention)", "redis.call('DEL', KEYS[1])"),
        in_scripts("LineWithoutExpiry", "mutex/acquire", "keep_for(KEYS[2], keep_line)", ""),
        in_scripts("GivingUpKeepsThePlace", "mutex/release", "    leave_line(id)\nend", "end"),
        in_scripts("TheDeadAreServed", "", "return listening.err ~= nil or listening[2] > 0", "return true"),
        in_scripts("LeaseLongerThanKept", "", "redis.call('SET', KEYS[1], id, 'PX', lease)",
                   "redis.call('SET', KEYS[1], id, 'PX', math.ceil(lease * 0.7))"),
        {"PushesOvertakeAnswers", [](day_options& day) { day.pushes_overtake = true; }},
        {"HoldIdsRepeat", [](day_options& day) { day.ids_repeat = true; }},
        {"ClockStopsInPauses", [](day_options& day) { day.clock_stops_in_pauses = true; }},
    };
}

class Mutants : public ::testing::TestWithParam<mutant> {};

TEST_P(Mutants, AreFoundOut) {
    campaign_options options;
    options.seeds = 1000;
    options.jobs = 1;
    ASSERT_NO_FATAL_FAILURE(GetParam().apply(options.day));
    const campaign_result all = run_campaign(options);
    ASSERT_TRUE(all.found) << "nobody noticed in " << all.days << " days";
    std::cout << "seed " << all.found->seed << ": " << all.found->verdict << "\n";
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(mutants()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace holdfast::sim
