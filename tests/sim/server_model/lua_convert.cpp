#include "server_model/lua_convert.hpp"

#include <lua.hpp>
#include <stdexcept>

#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

std::string_view text_at_top(lua_State* lua) {
    std::size_t length = 0;
    const char* text = lua_tolstring(lua, -1, &length);
    return {text, length};
}

// Pushes table[name] (no metamethods) if it has this type; the table is on top.
bool push_field(lua_State* lua, const char* name, int type) {
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (lua_type(lua, -1) == type) return true;
    lua_pop(lua, 1);
    return false;
}

// redis-server reads text fields as C strings: they end at a NUL.
std::string line_at_top(lua_State* lua) {
    std::string line = on_one_line(lua_tostring(lua, -1));
    lua_pop(lua, 1);
    return line;
}

void refuse_resp3_forms(lua_State* lua) {
    for (const char* name : {"map", "set", "big_number", "verbatim_string"}) {
        for (const int type : {LUA_TTABLE, LUA_TSTRING}) {
            if (push_field(lua, name, type)) {
                throw std::logic_error(std::string{"server model: a script returned {"} + name + "=}");
            }
        }
    }
}

value table_at_top(lua_State* lua) {
    if (push_field(lua, "err", LUA_TSTRING)) return value::make_error(line_at_top(lua));
    if (push_field(lua, "ok", LUA_TSTRING)) return value::make_status(line_at_top(lua));
    if (push_field(lua, "double", LUA_TNUMBER)) {
        const double number = lua_tonumber(lua, -1);
        lua_pop(lua, 1);
        return value::make_bulk(format_double(number));
    }
    std::vector<value> items;
    items.reserve(lua_objlen(lua, -1));
    for (int i = 1;; ++i) {
        lua_rawgeti(lua, -1, i);
        if (lua_isnil(lua, -1)) break;
        items.push_back(pop_reply(lua));
    }
    lua_pop(lua, 1);
    if (items.empty()) refuse_resp3_forms(lua);
    return value::make_array(std::move(items));
}

}  // namespace

void push_error(lua_State* lua, std::string_view text) {
    lua_createtable(lua, 0, 2);
    lua_pushlstring(lua, text.data(), text.size());
    lua_setfield(lua, -2, "err");
}

void push_reply(lua_State* lua, const value& reply) {
    luaL_checkstack(lua, 4, "reply nested too deeply");
    switch (reply.type) {
        case value::kind::nil:
            lua_pushboolean(lua, 0);
            return;
        case value::kind::integer:
            lua_pushnumber(lua, static_cast<lua_Number>(reply.integer));
            return;
        case value::kind::bulk:
            lua_pushlstring(lua, reply.text.data(), reply.text.size());
            return;
        case value::kind::error:
            push_error(lua, reply.text);
            return;
        case value::kind::status:
            lua_createtable(lua, 0, 1);
            lua_pushlstring(lua, reply.text.data(), reply.text.size());
            lua_setfield(lua, -2, "ok");
            return;
        case value::kind::array:
            break;
    }
    lua_createtable(lua, static_cast<int>(reply.items.size()), 0);
    for (std::size_t i = 0; i < reply.items.size(); ++i) {
        push_reply(lua, reply.items[i]);
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    }
}

value pop_reply(lua_State* lua) {
    if (lua_checkstack(lua, 4) == 0) {
        lua_pop(lua, 1);
        return value::make_error("ERR reached lua stack limit");
    }
    value reply;
    switch (lua_type(lua, -1)) {
        case LUA_TSTRING:
            reply = value::make_bulk(std::string{text_at_top(lua)});
            break;
        case LUA_TNUMBER:
            reply = value::make_integer(truncate_to_integer(lua_tonumber(lua, -1)));
            break;
        case LUA_TBOOLEAN:
            if (lua_toboolean(lua, -1) != 0) reply = value::make_integer(1);
            break;
        case LUA_TTABLE:
            reply = table_at_top(lua);
            break;
        default:
            break;
    }
    lua_pop(lua, 1);
    return reply;
}

}  // namespace holdfast::sim
