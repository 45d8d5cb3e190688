// Runs scripts in Lua 5.1, in the environment of redis-server 7.0.
//
// A script is compiled once and kept for the life of the engine. Which scripts a *server* knows is the business of
// script_host: so one engine may serve all servers of a simulation and collect their coverage. Scripts leave nothing
// behind: globals and libraries are read-only, as on a real server.
//
// Lua reports errors by longjmp, which skips C++ destructors. So a function called from Lua works in an inner function
// that never raises, and raises only when nothing with a destructor is left on the stack. For the same reason a C++
// exception never crosses Lua: the engine keeps it, stops the script, and run() rethrows it.
//
// Differences from a real server: cjson, cmsgpack, struct and bit are missing, math.random fails, and pairs() over _G
// or a library finds nothing (read-only tables are empty proxies here).
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "server_model/data_types.hpp"
#include "server_model/dispatch.hpp"
#include "server_model/lua_memory.hpp"

struct lua_State;
struct lua_Debug;

namespace holdfast::sim {

/// A script ran so long that it must be an endless loop.
class runaway_script : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

struct line_coverage {
    std::vector<int> executable;      // lines with code, ascending
    std::vector<std::uint64_t> hits;  // by line, from 1: times reached

    std::vector<int> missed() const;
};

class script_engine {
public:
    enum class coverage : std::uint8_t { off, on };

    explicit script_engine(coverage lines = coverage::off);
    /// Counting lines makes scripts several times slower; existing counts stay.
    void count_lines(coverage lines);
    ~script_engine();
    script_engine(const script_engine&) = delete;
    script_engine& operator=(const script_engine&) = delete;

    struct script {
        std::string sha1;
        std::string text;
        int function = 0;  // reference in Lua's registry
        line_coverage lines;
    };

    /// The compiled script, or the error.
    std::variant<script*, std::string> compile(std::string_view text);
    /// From now on resetting after scripts is cheap and compiling more of them is expensive.
    void settle();
    /// By lower-case SHA1; null if never compiled here.
    script* find(std::string_view sha1);

    /// Throws what a command threw (undeclared_key, ...), after the script has ended.
    value run(script& which, script_run& state, context& ctx);

    /// Precondition: this engine has compiled the script.
    const line_coverage& lines_of(std::string_view sha1) const;

private:
    friend struct lua_callbacks;

    void set_global_array(const char* name, arguments items);
    value failed(const script& which);
    void on_hook(lua_Debug* where);
    void clean_up();
    void keep();

    struct deleter {
        void operator()(lua_State* state) const;
    };
    // Texts of scripts begin alike, but rarely have the same length.
    struct shorter_first {
        bool operator()(std::string_view a, std::string_view b) const {
            return a.size() != b.size() ? a.size() < b.size() : a < b;
        }
    };

    std::unordered_map<std::string, std::unique_ptr<script>, string_hash, std::equal_to<>> scripts_;
    std::map<std::string_view, script*, shorter_first> by_text_;  // views of script::text
    lua_memory memory_;                                           // Lua uses it, so it must outlive Lua
    std::unique_ptr<lua_State, deleter> lua_;
    int handler_ = 0;  // registry references
    int globals_ = 0;
    coverage lines_ = coverage::off;
    bool settled_ = false;  // if true, the kept memory contains all compiled scripts

    // The run in progress; scripts do not nest.
    context* ctx_ = nullptr;
    script_run* state_ = nullptr;
    script* running_ = nullptr;
    std::uint64_t steps_ = 0;
    std::exception_ptr failure_;
    std::vector<std::string_view> words_;  // scratch for redis.call's arguments
    std::vector<std::string> numbers_;     // the arguments that were numbers
};

}  // namespace holdfast::sim
