#include "server_model/lua_lines.hpp"

#include <cstring>
#include <lua.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sim {
namespace {

// Layout: lua 5.1.5, ldump.c.
class chunk_reader {
public:
    explicit chunk_reader(std::string_view chunk) : left_(chunk) {
        constexpr std::string_view expected{"\x1bLua\x51\x00\x01\x04\x08\x04\x08\x00", 12};
        if (!left_.starts_with(expected)) throw std::logic_error("not a Lua 5.1 chunk of this machine");
        skip(expected.size());
    }

    chunk_facts facts() {
        function();
        return {{lines_.begin(), lines_.end()}, sets_globals_};
    }

private:
    void function() {
        string();
        skip(2 * sizeof(int) + 4);
        const std::vector<bool> reachable = instructions_reachable();
        for (auto constants = count(); constants > 0; --constants) constant();
        for (auto nested = count(); nested > 0; --nested) function();
        const auto instructions = count();
        for (std::size_t i = 0; i < instructions; ++i) {
            const int line = read<int>();
            // The last instruction is the implicit return of every function, reached or not.
            if (i + 1 < instructions && reachable[i]) lines_.insert(line);
        }
        for (auto locals = count(); locals > 0; --locals) {
            string();
            skip(2 * sizeof(int));
        }
        for (auto upvalues = count(); upvalues > 0; --upvalues) string();
    }

    // True for code after a return or a jump that no jump leads to: the compiler leaves such jumps at the end of a loop
    // whose last statement returns. Layout and numbers: lua 5.1.5, lopcodes.h.
    std::vector<bool> instructions_reachable() {
        constexpr std::uint32_t load_bool = 2, set_global = 7, jump = 22, first_test = 23, last_test = 27,
                                give_back = 30, for_loop = 31, for_prepare = 32, for_each = 33;
        constexpr std::ptrdiff_t bias = 131071;
        std::vector<std::uint32_t> code(count());
        for (std::uint32_t& instruction : code) instruction = read<std::uint32_t>();
        std::vector<bool> out(code.size(), false);
        const auto lead_to = [&out](std::size_t from, std::ptrdiff_t step) {
            const auto target = static_cast<std::ptrdiff_t>(from) + step;
            if (target >= 0 && target < static_cast<std::ptrdiff_t>(out.size()))
                out[static_cast<std::size_t>(target)] = true;
        };
        lead_to(0, 0);
        for (std::size_t i = 0; i < code.size(); ++i) {
            const std::uint32_t what = code[i] & 63U;
            sets_globals_ |= what == set_global;
            // The jump after a for-each belongs to it and never runs by itself.
            if (what != give_back && what != jump && what != for_each) lead_to(i, 1);
            if (what == jump || what == for_loop || what == for_prepare)
                lead_to(i, 1 + static_cast<std::ptrdiff_t>(code[i] >> 14U) - bias);
            if (what == load_bool || (what >= first_test && what <= last_test) || what == for_each) lead_to(i, 2);
        }
        return out;
    }

    void constant() {
        switch (read<char>()) {
            case LUA_TNIL:
                return;
            case LUA_TBOOLEAN:
                return skip(1);
            case LUA_TNUMBER:
                return skip(sizeof(lua_Number));
            case LUA_TSTRING:
                return string();
            default:
                throw std::logic_error("unknown constant in a Lua chunk");
        }
    }

    void string() { skip(read<std::size_t>()); }
    std::size_t count() { return static_cast<std::size_t>(read<int>()); }

    template <class T>
    T read() {
        T out;
        std::memcpy(&out, take(sizeof out).data(), sizeof out);
        return out;
    }

    void skip(std::size_t bytes) { take(bytes); }

    std::string_view take(std::size_t bytes) {
        if (bytes > left_.size()) throw std::logic_error("a Lua chunk ended early");
        const auto taken = left_.substr(0, bytes);
        left_.remove_prefix(bytes);
        return taken;
    }

    std::string_view left_;
    std::set<int> lines_;
    bool sets_globals_ = false;
};

int append(lua_State*, const void* bytes, std::size_t size, void* out) {
    static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
    return 0;
}

}  // namespace

chunk_facts read_chunk(lua_State* lua) {
    std::string chunk;
    lua_dump(lua, append, &chunk);
    return chunk_reader{chunk}.facts();
}

}  // namespace holdfast::sim
