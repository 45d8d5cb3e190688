// Ways to break one thing. The checker must notice each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "world/scenario.hpp"

namespace holdfast::sim {

struct mutant {
    std::string name;
    std::function<void(scenario_options&)> apply;
    std::uint64_t first_seed = 1;      // of the thousand: chosen such that the mutant shows soon
    std::string verdict = {};          // the rule that must detect it; empty: any rule
    bool is_about_foreigners = false;  // shows only where other programs use the lock, too
    friend std::ostream& operator<<(std::ostream& out, const mutant& m) { return out << m.name; }
};

std::vector<mutant> mutants();

}  // namespace holdfast::sim
