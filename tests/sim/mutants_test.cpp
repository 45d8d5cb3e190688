// Tests the checker: each mutant breaks one thing, and a thousand scenarios must detect it.

#include <gtest/gtest.h>

#include <iostream>

#include "world/campaign.hpp"
#include "world/mutants.hpp"

namespace holdfast::sim::mutants_test {
namespace {

class Mutants : public ::testing::TestWithParam<mutant> {};

TEST_P(Mutants, AreDetected) {
    campaign_options options;
    options.first_seed = GetParam().first_seed;
    options.seeds = 1000;
    options.jobs = 1;
    options.counted = 0;
    options.scenario.servers = 1;
    options.scenario.kept = scenario_options::keeping::never;  // unless the mutant shows there only
    options.scenario.semaphores = scenario_options::counting::never;
    options.scenario.notes = scenario_options::noting::never;
    options.scenario.watchers = scenario_options::watching::never;
    GetParam().apply(options.scenario);
    const campaign_result all = run_campaign(options);
    ASSERT_TRUE(all.violation) << "not detected in " << all.scenarios << " scenarios";
    std::cout << "seed " << all.violation->seed << ": " << all.violation->verdict << "\n";
    EXPECT_TRUE(all.violation->verdict.find(GetParam().verdict) != std::string::npos) << GetParam().verdict;
    scenario_options as_it_is;
    as_it_is.seed = all.violation->seed;
    as_it_is.servers = options.scenario.servers;
    as_it_is.replicated = options.scenario.replicated;
    as_it_is.cluster = options.scenario.cluster;
    as_it_is.kept = options.scenario.kept;
    as_it_is.semaphores = options.scenario.semaphores;
    as_it_is.notes = options.scenario.notes;
    as_it_is.watchers = options.scenario.watchers;
    as_it_is.engine = std::make_shared<script_engine>();
    EXPECT_EQ(simulate(as_it_is).verdict, "") << "the scenario must keep every rule without the mutant";
}

INSTANTIATE_TEST_SUITE_P(All, Mutants, ::testing::ValuesIn(mutants()), [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace holdfast::sim::mutants_test
