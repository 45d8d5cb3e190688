// Converts between Lua values and replies as redis-server does.
//
// Reply to Lua: nil is false, a status is {ok=}, an error is {err=}.
// Lua to reply: numbers are truncated to integers, true is 1, false is nil, and a table is read up to its first nil.
#pragma once

#include <string>
#include <string_view>

#include "server_model/value.hpp"

struct lua_State;

namespace holdfast::sim {

void push_reply(lua_State* lua, const value& reply);
/// {err = text}
void push_error(lua_State* lua, std::string_view text);
/// Reads and pops the top of the stack.
value pop_reply(lua_State* lua);

}  // namespace holdfast::sim
