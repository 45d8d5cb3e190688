// Static properties of a script: which lines have code, and whether it sets globals.
//
// Lua tells the lines of a function only once that function exists as a value, so a branch that is never taken would
// hide the functions in it. The compiled form has them all; this reads it (Lua 5.1's binary chunk, same machine).
#pragma once

#include <vector>

struct lua_State;

namespace holdfast::sim {

struct chunk_facts {
    std::vector<int> lines;  // with code; ascending, each once
    bool sets_globals = false;
};

/// Of the function on top of the stack, including nested functions.
chunk_facts read_chunk(lua_State* lua);

}  // namespace holdfast::sim
