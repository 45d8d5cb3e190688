// Which lines of a script have code on them.
//
// Lua tells the lines of a function only once that function exists as a value, so a branch never taken would
// hide the functions in it. The compiled form has them all; this reads it (Lua 5.1's binary chunk, same machine).
#pragma once

#include <vector>

struct lua_State;

namespace holdfast::sim {

/// Of the function on top of the stack, those it contains included; ascending, each once.
std::vector<int> executable_lines(lua_State* lua);

}  // namespace holdfast::sim
