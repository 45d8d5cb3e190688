#include "server_model/lua_sandbox.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "server_model/lua_convert.hpp"
#include "server_model/script_engine.hpp"
#include "server_model/sha1.hpp"

namespace holdfast::sim {
namespace {

constexpr const char* read_only_text = "Attempt to modify a readonly table";

int refuse_write(lua_State* lua) {
    return luaL_error(lua, "%s", read_only_text);
}

int refuse_unknown_global(lua_State* lua) {
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, -1));
}

int refuse_random(lua_State* lua) {
    return luaL_error(lua, "math.random is not for scripts that must replay");
}

bool is_locked(lua_State* lua, int index) {
    if (lua_getmetatable(lua, index) == 0) return false;
    lua_pushstring(lua, "__newindex");
    lua_rawget(lua, -2);
    const bool locked = lua_tocfunction(lua, -1) == refuse_write;
    lua_pop(lua, 2);
    return locked;
}

int guarded_rawset(lua_State* lua) {
    luaL_checktype(lua, 1, LUA_TTABLE);
    luaL_checkany(lua, 2);
    luaL_checkany(lua, 3);
    lua_settop(lua, 3);
    if (is_locked(lua, 1)) {
        lua_pushstring(lua, read_only_text);
        return lua_error(lua);
    }
    lua_rawset(lua, 1);
    return 1;
}

// Upvalue 1: the original.
int guarded_setmetatable(lua_State* lua) {
    if (lua_istable(lua, 1) && is_locked(lua, 1)) {
        lua_pushstring(lua, read_only_text);
        return lua_error(lua);
    }
    lua_pushvalue(lua, lua_upvalueindex(1));
    lua_insert(lua, 1);
    lua_call(lua, lua_gettop(lua) - 1, LUA_MULTRET);
    return lua_gettop(lua);
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// A whole number of decimal digits that a double holds exactly, or -1.
double digits_only(std::string_view text) {
    constexpr std::uint64_t exact = std::uint64_t{1} << 53;
    std::uint64_t number = 0;
    if (text.empty() || text.size() > 16) return -1;
    for (const char c : text) {
        if (!is_digit(c)) return -1;
        number = 10 * number + static_cast<std::uint64_t>(c - '0');
    }
    return number <= exact ? static_cast<double>(number) : -1;
}

std::string_view text_at(lua_State* lua, int index) {
    std::size_t length = 0;
    const char* const text = lua_tolstring(lua, index, &length);
    return {text, length};
}

// tonumber, string.format and find, with a fast path for the usual arguments of lock scripts: large whole numbers. All
// other calls go to the original in the same frame, so that its errors name the same function.
int quick_tonumber(lua_State* lua) {
    if (lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING) {
        if (const double number = digits_only(text_at(lua, 1)); number >= 0) {
            lua_pushnumber(lua, number);
            return 1;
        }
    }
    return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

int quick_format(lua_State* lua) {
    constexpr double exact = 9007199254740992;  // 2^53
    if (lua_gettop(lua) == 2 && lua_type(lua, 1) == LUA_TSTRING && text_at(lua, 1) == "%.0f") {
        const int type = lua_type(lua, 2);
        const double number = type == LUA_TNUMBER   ? lua_tonumber(lua, 2)
                              : type == LUA_TSTRING ? digits_only(text_at(lua, 2))
                                                    : -1;
        if (number >= 1 && number < exact && std::trunc(number) == number) {
            std::array<char, 20> text;
            const auto [end, error] = std::to_chars(text.begin(), text.end(), static_cast<std::uint64_t>(number));
            lua_pushlstring(lua, text.data(), static_cast<std::size_t>(end - text.data()));
            return 1;
        }
    }
    return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

// string.find for patterns of digits only, by which scripts check their arguments.
int quick_find(lua_State* lua) {
    if (lua_gettop(lua) == 2 && lua_type(lua, 1) == LUA_TSTRING && lua_type(lua, 2) == LUA_TSTRING &&
        text_at(lua, 2) == "^%d+$") {
        const std::string_view text = text_at(lua, 1);
        if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) {
            lua_pushnil(lua);
            return 1;
        }
        lua_pushinteger(lua, 1);
        lua_pushinteger(lua, static_cast<lua_Integer>(text.size()));
        return 2;
    }
    return lua_tocfunction(lua, lua_upvalueindex(1))(lua);
}

int raise_text(lua_State* lua, const char* text) {
    push_error(lua, text);
    return lua_error(lua);
}

void push_sha1(lua_State* lua) {
    std::size_t length = 0;
    const char* text = lua_tolstring(lua, 1, &length);
    const std::string hex = sha1_hex({text == nullptr ? "" : text, length});
    lua_pushlstring(lua, hex.data(), hex.size());
}

int sha1hex(lua_State* lua) {
    if (lua_gettop(lua) != 1) return raise_text(lua, "ERR wrong number of arguments");
    push_sha1(lua);
    return 1;
}

bool has_one_string(lua_State* lua) {
    return lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING;
}

int status_reply(lua_State* lua) {
    if (!has_one_string(lua)) {
        push_error(lua, "ERR wrong number or type of arguments");
        return 1;
    }
    lua_newtable(lua);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, "ok");
    return 1;
}

// A text of one word is a message without an error code.
void push_error_reply(lua_State* lua) {
    std::string text = lua_tostring(lua, 1);
    if (text.starts_with('-')) text.erase(0, 1);
    if (text.find(' ') == text.npos) text.insert(0, "ERR ");
    while (text.ends_with('\r') || text.ends_with('\n')) text.pop_back();
    push_error(lua, text);
}

int error_reply(lua_State* lua) {
    if (has_one_string(lua))
        push_error_reply(lua);
    else
        push_error(lua, "ERR wrong number or type of arguments");
    return 1;
}

int log(lua_State* lua) {
    if (lua_gettop(lua) < 2) return raise_text(lua, "ERR redis.log() requires two arguments or more.");
    return 0;
}

int replicate_commands(lua_State* lua) {
    lua_pushboolean(lua, 1);
    return 1;
}

// Replaces the table on top by a read-only proxy. `missing`: what reading an absent field does; null: returns nil.
void lock_top(lua_State* lua, lua_function missing) {
    if (missing != nullptr) {
        lua_createtable(lua, 0, 1);
        lua_pushcfunction(lua, missing);
        lua_setfield(lua, -2, "__index");
        lua_setmetatable(lua, -2);
    }
    lua_newtable(lua);           // stack: real, proxy
    lua_createtable(lua, 0, 2);  // stack: real, proxy, meta
    lua_pushvalue(lua, -3);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, refuse_write);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, -2);
    lua_remove(lua, -2);
}

void push_redis_table(lua_State* lua, engine_functions engine) {
    const luaL_Reg functions[] = {{"call", engine.call},
                                  {"pcall", engine.call_and_return_errors},
                                  {"sha1hex", sha1hex},
                                  {"status_reply", status_reply},
                                  {"error_reply", error_reply},
                                  {"log", log},
                                  {"replicate_commands", replicate_commands},
                                  {nullptr, nullptr}};
    lua_newtable(lua);
    luaL_register(lua, nullptr, functions);
    int level = 0;
    for (const char* name : {"LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"}) {
        lua_pushinteger(lua, level++);
        lua_setfield(lua, -2, name);
    }
    lua_pushliteral(lua, "7.0.15");
    lua_setfield(lua, -2, "REDIS_VERSION");
    lua_pushinteger(lua, 0x0007000f);
    lua_setfield(lua, -2, "REDIS_VERSION_NUM");
}

void open_library(lua_State* lua, lua_function open) {
    lua_pushcfunction(lua, open);
    lua_call(lua, 0, 0);
}

// Replaces a field of the table on top by `quick`, with the original function as its upvalue.
void speed_up(lua_State* lua, const char* name, lua_function quick) {
    lua_getfield(lua, -1, name);
    lua_pushcclosure(lua, quick, 1);
    lua_setfield(lua, -2, name);
}

// Copies globals[name] to the table on top.
void allow(lua_State* lua, const char* name) {
    lua_getglobal(lua, name);
    lua_setfield(lua, -2, name);
}

}  // namespace

void open_sandbox(lua_State* lua, engine_functions engine) {
    for (const lua_function open : {luaopen_base, luaopen_table, luaopen_string, luaopen_math}) open_library(lua, open);
    lua_newtable(lua);
    for (const char* name :
         {"_VERSION", "assert",     "collectgarbage", "coroutine", "error",    "gcinfo", "getmetatable", "ipairs",
          "load",     "loadstring", "next",           "pairs",     "rawequal", "rawget", "select",       "tonumber",
          "tostring", "type",       "unpack",         "xpcall",    "math",     "string", "table"}) {
        allow(lua, name);
    }
    lua_getfield(lua, -1, "math");
    lua_pushcfunction(lua, refuse_random);
    lua_setfield(lua, -2, "random");
    lua_pop(lua, 1);
    speed_up(lua, "tonumber", quick_tonumber);
    lua_getfield(lua, -1, "string");
    speed_up(lua, "format", quick_format);
    speed_up(lua, "find", quick_find);
    lua_pop(lua, 1);
    for (const char* library : {"math", "string", "table", "coroutine"}) {
        lua_getfield(lua, -1, library);
        lock_top(lua, nullptr);
        lua_setfield(lua, -2, library);
    }
    push_redis_table(lua, engine);
    lock_top(lua, nullptr);
    lua_setfield(lua, -2, "redis");
    lua_pushcfunction(lua, engine.protected_call);
    lua_setfield(lua, -2, "pcall");
    lua_pushcfunction(lua, guarded_rawset);
    lua_setfield(lua, -2, "rawset");
    lua_getglobal(lua, "setmetatable");
    lua_pushcclosure(lua, guarded_setmetatable, 1);
    lua_setfield(lua, -2, "setmetatable");
    lua_pushvalue(lua, -1);
    lock_top(lua, refuse_unknown_global);
    lua_pushvalue(lua, -1);
    lua_setfield(lua, -3, "_G");
    lua_replace(lua, LUA_GLOBALSINDEX);
}

}  // namespace holdfast::sim
