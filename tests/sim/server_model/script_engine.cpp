#include "server_model/script_engine.hpp"

#include <algorithm>
#include <array>
#include <lua.hpp>

#include "server_model/lua_convert.hpp"
#include "server_model/lua_lines.hpp"
#include "server_model/lua_sandbox.hpp"
#include "server_model/numbers.hpp"
#include "server_model/sha1.hpp"

namespace holdfast::sim {

// Functions that Lua calls. They find their engine as the user data of the state's allocator, which costs no lookup.
struct lua_callbacks {
    static script_engine& engine_of(lua_State* lua) {
        void* engine = nullptr;
        lua_getallocf(lua, &engine);
        return *static_cast<script_engine*>(engine);
    }

    static void* allocate(void* engine, void* block, std::size_t had, std::size_t wanted) {
        return static_cast<script_engine*>(engine)->memory_.resize(block, had, wanted);
    }

    enum class outcome : std::uint8_t { reply, error };

    // The command's words, from the stack; false if one is neither string nor number.
    static bool gather(script_engine& engine, lua_State* lua) {
        const int count = lua_gettop(lua);
        engine.words_.clear();
        engine.numbers_.clear();
        engine.numbers_.reserve(static_cast<std::size_t>(count));  // views into it must stay valid
        for (int i = 1; i <= count; ++i) {
            if (lua_type(lua, i) == LUA_TNUMBER) {
                engine.words_.push_back(engine.numbers_.emplace_back(format_double(lua_tonumber(lua, i))));
                continue;
            }
            std::size_t length = 0;
            const char* text = lua_tolstring(lua, i, &length);
            if (text == nullptr) return false;
            engine.words_.emplace_back(text, length);
        }
        return true;
    }

    // Leaves the reply or an error table on top. Never raises.
    static outcome command(lua_State* lua) {
        script_engine& engine = engine_of(lua);
        if (lua_gettop(lua) == 0) {
            push_error(lua, "ERR Please specify at least one argument for this redis lib call");
            return outcome::error;
        }
        if (!gather(engine, lua)) {
            push_error(lua, "ERR Lua redis lib command arguments must be strings or integers");
            return outcome::error;
        }
        try {
            if (engine.failure_) throw std::logic_error("a script went on after it was stopped");
            context& ctx = *engine.ctx_;
            if (ctx.clock != nullptr) ctx.passed_us += (*ctx.clock)();
            const value reply = execute_in_script(ctx, engine.words_, *engine.state_);
            push_reply(lua, reply);
            if (!reply.is_error()) return outcome::reply;
            lua_pushboolean(lua, 1);
            lua_setfield(lua, -2, "ignore_error_stats_update");
        } catch (...) {
            if (!engine.failure_) engine.failure_ = std::current_exception();
            push_error(lua, "ERR stopped by the simulator");
        }
        return outcome::error;
    }

    static int call(lua_State* lua) { return command(lua) == outcome::error ? lua_error(lua) : 1; }

    // A pcall must not swallow what stops the simulation.
    static int call_and_return_errors(lua_State* lua) {
        if (command(lua) == outcome::error && engine_of(lua).failure_) return lua_error(lua);
        return 1;
    }

    // Redis's own pcall: an error table from redis.call arrives as its text.
    static int protected_call(lua_State* lua) {
        luaL_checkany(lua, 1);
        lua_pushboolean(lua, 1);
        lua_insert(lua, 1);
        if (lua_pcall(lua, lua_gettop(lua) - 2, LUA_MULTRET, 0) != 0) {
            // Scripts cannot catch what stops the simulation.
            if (engine_of(lua).failure_) return lua_error(lua);
            lua_remove(lua, 1);
            if (lua_istable(lua, -1)) {
                lua_getfield(lua, -1, "err");
                if (lua_isstring(lua, -1) != 0)
                    lua_replace(lua, -2);
                else
                    lua_pop(lua, 1);
            }
            lua_pushboolean(lua, 0);
            lua_insert(lua, 1);
        }
        return lua_gettop(lua);
    }

    // The origin of an error: the innermost frame that is not C, at most one C frame deep.
    static bool locate(lua_State* lua, lua_Debug& where) {
        if (lua_getstack(lua, 1, &where) == 0) return false;
        lua_getinfo(lua, "nSl", &where);
        if (std::string_view{where.what} != "C") return true;
        if (lua_getstack(lua, 2, &where) == 0) return false;
        lua_getinfo(lua, "nSl", &where);
        return true;
    }

    static void push_text_of(lua_State* lua, int index) {
        switch (lua_type(lua, index)) {
            case LUA_TNIL:
                lua_pushliteral(lua, "nil");
                return;
            case LUA_TBOOLEAN:
                lua_pushstring(lua, lua_toboolean(lua, index) != 0 ? "true" : "false");
                return;
            case LUA_TSTRING:
            case LUA_TNUMBER:
                lua_pushvalue(lua, index);
                return;
            default:
                lua_pushfstring(lua, "%s: %p", luaL_typename(lua, index), lua_topointer(lua, index));
        }
    }

    // Makes every error a table {err=, source=, line=}.
    static int error_handler(lua_State* lua) {
        lua_Debug where{};
        const bool located = locate(lua, where);
        if (!lua_istable(lua, 1)) {
            lua_pushliteral(lua, "ERR ");
            push_text_of(lua, 1);
            lua_concat(lua, 2);
            lua_newtable(lua);
            lua_insert(lua, -2);
            lua_setfield(lua, -2, "err");
            lua_replace(lua, 1);
        }
        lua_settop(lua, 1);
        if (located) {
            lua_pushstring(lua, where.source);
            lua_setfield(lua, 1, "source");
            lua_pushinteger(lua, where.currentline);
            lua_setfield(lua, 1, "line");
        }
        return 1;
    }

    static void hook(lua_State* lua, lua_Debug* where) {
        script_engine& engine = engine_of(lua);
        if (where->event == LUA_HOOKLINE) lua_getinfo(lua, "l", where);
        engine.on_hook(where);
        if (engine.failure_) luaL_error(lua, "stopped by the simulator");
    }
};

namespace {

constexpr int steps_between_hooks = 1'000'000;
constexpr std::uint64_t most_hooks = 100;

// A collection begins when memory has grown to this percentage of what the last one left.
constexpr int collector_pause_percent = 10'000;

// The engine resets its memory when scripts have left this much behind. A quarter of it was slower: restoring the copy,
// some 600 KB, is the more expensive part. More was not measurably faster.
constexpr std::size_t most_litter_bytes = 1 << 20;

std::string text_field(lua_State* lua, const char* name) {
    lua_getfield(lua, -1, name);
    const char* text = lua_isstring(lua, -1) != 0 ? lua_tostring(lua, -1) : "";
    std::string out = text;
    lua_pop(lua, 1);
    return out;
}

}  // namespace

std::vector<int> line_coverage::missed() const {
    std::vector<int> out;
    std::copy_if(executable.begin(), executable.end(), std::back_inserter(out),
                 [this](int line) { return hits[static_cast<std::size_t>(line)] == 0; });
    return out;
}

void script_engine::deleter::operator()(lua_State* state) const {
    lua_close(state);
}

script_engine::script_engine(coverage lines) : lua_(lua_newstate(lua_callbacks::allocate, this)) {
    lua_State* lua = lua_.get();
    open_sandbox(lua, {lua_callbacks::call, lua_callbacks::call_and_return_errors, lua_callbacks::protected_call});
    globals_ = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_pushcfunction(lua, lua_callbacks::error_handler);
    handler_ = luaL_ref(lua, LUA_REGISTRYINDEX);
    count_lines(lines);
}

script_engine::~script_engine() = default;

void script_engine::count_lines(coverage lines) {
    lines_ = lines;
    const int mask = LUA_MASKCOUNT | (lines == coverage::on ? LUA_MASKLINE : 0);
    lua_sethook(lua_.get(), lua_callbacks::hook, mask, steps_between_hooks);
}

void script_engine::on_hook(lua_Debug* where) {
    if (where->event == LUA_HOOKLINE) {
        if (running_ == nullptr) return;
        // loadstring may create more lines than the script has itself.
        auto& hits = running_->lines.hits;
        if (const auto line = static_cast<std::size_t>(where->currentline); line < hits.size()) ++hits[line];
    } else if (++steps_ > most_hooks && running_ != nullptr && !failure_) {
        failure_ = std::make_exception_ptr(runaway_script("script " + running_->sha1 + " does not end"));
    }
}

script_engine::script* script_engine::find(std::string_view sha1) {
    const auto found = scripts_.find(sha1);
    return found == scripts_.end() ? nullptr : found->second.get();
}

const line_coverage& script_engine::lines_of(std::string_view sha1) const {
    const auto found = scripts_.find(sha1);
    if (found == scripts_.end()) throw std::logic_error("no script has this SHA1: " + std::string{sha1});
    return found->second->lines;
}

std::variant<script_engine::script*, std::string> script_engine::compile(std::string_view text) {
    if (const auto known = by_text_.find(text); known != by_text_.end()) return known->second;
    std::string sha1 = sha1_hex(text);
    if (settled_) clean_up();  // garbage must not be kept
    lua_State* lua = lua_.get();
    if (luaL_loadbuffer(lua, text.data(), text.size(), "@user_script") != 0) {
        std::string why = lua_tostring(lua, -1);
        lua_settop(lua, 0);
        return why;
    }
    auto fresh = std::make_unique<script>();
    fresh->sha1 = sha1;
    fresh->text = text;
    const chunk_facts facts = read_chunk(lua);
    fresh->lines.executable = facts.lines;
    fresh->lines.hits.resize(2 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
    // A script that never sets a global cannot harm the real table, and lookups there are faster than through the
    // proxy.
    if (!facts.sets_globals) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, globals_);
        lua_setfenv(lua, -2);
    }
    fresh->function = luaL_ref(lua, LUA_REGISTRYINDEX);
    script* const kept = scripts_.emplace(std::move(sha1), std::move(fresh)).first->second.get();
    by_text_.emplace(kept->text, kept);
    if (settled_) keep();
    return kept;
}

void script_engine::settle() {
    if (!lua_memory::can_go_back) return;
    // From now on Lua's own collector is needed only for a script that never ends.
    lua_gc(lua_.get(), LUA_GCSETPAUSE, collector_pause_percent);
    keep();
    settled_ = true;
}

void script_engine::keep() {
    lua_gc(lua_.get(), LUA_GCCOLLECT, 0);
    memory_.keep();
}

// Only between scripts: nothing references their objects then.
void script_engine::clean_up() {
    memory_.go_back();
    count_lines(lines_);  // Lua keeps that in the same memory
}

void script_engine::set_global_array(const char* name, arguments items) {
    lua_State* lua = lua_.get();
    lua_rawgeti(lua, LUA_REGISTRYINDEX, globals_);
    lua_createtable(lua, static_cast<int>(items.size()), 0);
    for (std::size_t i = 0; i < items.size(); ++i) {
        lua_pushlstring(lua, items[i].data(), items[i].size());
        lua_rawseti(lua, -2, static_cast<int>(i) + 1);
    }
    lua_setfield(lua, -2, name);
    lua_pop(lua, 1);
}

value script_engine::failed(const script& which) {
    lua_State* lua = lua_.get();
    if (!lua_istable(lua, -1)) {
        const char* text = lua_isstring(lua, -1) != 0 ? lua_tostring(lua, -1) : "execution failure";
        return value::make_error("ERR Error running script " + which.sha1 + ", " + std::string{text}.substr(0, 100));
    }
    lua_getfield(lua, -1, "err");
    const bool has_text = lua_isstring(lua, -1) != 0;
    lua_pop(lua, 1);
    if (!has_text) throw std::logic_error("error{} without err: redis-server 7.0.15 dies of this script");
    std::string text = text_field(lua, "err");
    const std::string source = text_field(lua, "source");
    if (!source.empty()) text += " script: " + which.sha1 + ", on " + source + ":" + text_field(lua, "line") + ".";
    return value::make_error(text);
}

value script_engine::run(script& which, script_run& state, context& ctx) {
    lua_State* lua = lua_.get();
    ctx_ = &ctx;
    state_ = &state;
    running_ = &which;
    steps_ = 0;
    failure_ = nullptr;
    set_global_array("KEYS", state.keys);
    set_global_array("ARGV", state.args);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, handler_);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, which.function);
    const int status = lua_pcall(lua, 0, 1, -2);
    running_ = nullptr;
    value reply;
    if (failure_ == nullptr) {
        try {
            reply = status == 0 ? pop_reply(lua) : failed(which);
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    lua_settop(lua, 0);
    if (settled_ && memory_.grown() >= most_litter_bytes) clean_up();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return reply;
}

}  // namespace holdfast::sim
