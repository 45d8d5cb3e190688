// Every interleaving of a few threads, within a bound of preemptions: nothing is broken in the product's sources, and
// something is in each variant with a planted bug. Prints how many interleavings there were.
//
// HOLDFAST_THREADS_MORE=N: N preemptions more than in the short setting. HOLDFAST_THREADS_RUNS: the most interleavings
// of one world.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>

#include "threads/registry.hpp"
#include "threads/scheduler.hpp"

namespace holdfast::interleavings_test {
namespace {

unsigned long from_environment(const char* name, unsigned long otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

interleaving::limits limits_of(const interleaving::world& one) {
    return {.preemptions = one.preemptions + static_cast<unsigned>(from_environment("HOLDFAST_THREADS_MORE", 0)),
            .most_runs = from_environment("HOLDFAST_THREADS_RUNS", UINT64_MAX)};
}

void print(const interleaving::world& one, const interleaving::result& found) {
    std::cout << one.subject << ", " << one.name << ": " << found.runs << " interleavings, " << found.steps
              << " steps, at most " << limits_of(one).preemptions << " preemptions"
              << (found.is_complete || !found.broken.empty() ? "" : ", not all of them") << "\n";
}

// All worlds of the product's own sources for that subject.
void expect_sound(const std::string& subject) {
    bool has_any = false;
    for (const interleaving::world& one : interleaving::all_worlds()) {
        if (one.subject != subject || !one.variant.empty()) continue;
        has_any = true;
        const interleaving::result found = interleaving::explore(limits_of(one), one.body);
        print(one, found);
        EXPECT_EQ(found.broken, "") << one.name;
        EXPECT_GT(found.runs, 1U) << one.name;
    }
    EXPECT_TRUE(has_any);
}

TEST(Interleavings, TheSerialSectionExcludesAndForgetsNothing) {
    expect_sound("section");
}

TEST(Interleavings, TheLeadIsHandedOverAndNeverLost) {
    expect_sound("loop");
}

TEST(Interleavings, PostedReleasesAreAllWaitedFor) {
    expect_sound("releases");
}

TEST(Interleavings, LocalGrantsHaveOneBelieverAtATime) {
    expect_sound("local grants");
}

// Each is found in one of the worlds of its subject, with at most three preemptions: first those without any are tried.
TEST(Interleavings, PlantedBugsAreFound) {
    std::set<std::string> planted;
    std::set<std::string> found;
    for (unsigned preemptions = 0; preemptions <= 3; ++preemptions) {
        for (const interleaving::world& one : interleaving::all_worlds()) {
            if (one.variant.empty()) continue;
            planted.insert(one.variant);
            if (found.contains(one.variant) || preemptions > one.preemptions) continue;
            const interleaving::result tried = interleaving::explore({.preemptions = preemptions}, one.body);
            if (tried.broken.empty()) continue;
            found.insert(one.variant);
            std::cout << one.variant << ": " << tried.broken << ", " << preemptions << " preemptions, in " << one.name
                      << "\n";
        }
    }
    EXPECT_GE(planted.size(), 4U);
    EXPECT_EQ(planted, found);
}

}  // namespace
}  // namespace holdfast::interleavings_test
