// The small worlds that are explored.
#pragma once

#include <string_view>
#include <vector>

#include "explore/lock_user.hpp"
#include "explore/small_world.hpp"
#include "world/mutants.hpp"

namespace holdfast::sim::explore {

/// All of them, in the order of their names in the documentation.
const std::vector<scope>& all_scopes();
/// Breaks something in it. False: it does not have what that mutant breaks.
bool apply(const mutant& which, scope& to);
/// Those whose name is `name` or begins with it and a slash; "all": those of our own locks.
std::vector<scope> find_scopes(std::string_view name);

}  // namespace holdfast::sim::explore
