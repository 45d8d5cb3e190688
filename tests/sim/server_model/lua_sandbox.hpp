// The globals of a script: the list of redis-server 7.0, read-only.
//
// A real server has a patched Lua with lockable tables. In stock Lua a locked table is an empty proxy whose metatable
// reads from the real table and refuses writes; error texts and positions are the same.
#pragma once

struct lua_State;

namespace holdfast::sim {

using lua_function = int (*)(lua_State*);

/// Functions that the engine provides.
struct engine_functions {
    lua_function call;                    // redis.call
    lua_function call_and_return_errors;  // redis.pcall
    lua_function protected_call;          // pcall
};

/// Opens the libraries and locks everything. Leaves on the stack the table behind _G, where KEYS and ARGV go.
void open_sandbox(lua_State* lua, engine_functions engine);

}  // namespace holdfast::sim
