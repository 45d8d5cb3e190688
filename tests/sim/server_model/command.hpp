// A command: a name, an arity, flags, the positions of its keys, and a function.
//
// A handler uses the keyspace through a context, which has the time. Time stands still within one command or script, so
// a key cannot expire half-way. Handlers check in the order of redis-server (the first bad argument decides the error),
// and change nothing after they have returned an error.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server_model/channels.hpp"
#include "server_model/keyspace.hpp"
#include "server_model/slot_guard.hpp"
#include "server_model/value.hpp"

namespace holdfast::sim {

class script_host;

/// The whole command, including its name.
using arguments = std::span<const std::string_view>;

/// States of a server in which it refuses commands.
struct server_state {
    role as = role::primary;
    enum class memory_state : std::uint8_t { free, full } memory = memory_state::free;
};

/// The result of a lookup of a key that must have one type.
template <class T>
struct typed {
    T* data = nullptr;        // null if missing or of another type
    bool wrong_type = false;  // the key exists with another type
};

/// How long a call of a script takes, in µs. Before Redis 7.2 the clock goes on while a script runs, for TIME and for
/// expiries. Since then it stands.
using script_clock = std::function<std::int64_t()>;

struct context {
    keyspace& keys;
    const channels& pubsub;
    script_host& scripts;
    server_state state;
    std::int64_t now_us;
    const slot_guard* slots = nullptr;  // null: not a member of a Cluster
    asking asked = asking::no;
    std::uint64_t* writes = nullptr;  // counts the commands that replicas receive
    const script_clock* clock = nullptr;
    std::int64_t passed_us = 0;                // since the script began
    std::optional<std::int64_t> told_us = {};  // what TIME has told first

    std::int64_t clock_us() const { return now_us + passed_us; }
    std::int64_t now_ms() const { return clock_us() / 1000; }
    /// No key expires while a script runs.
    keyspace::instant instant() const { return {now_us / 1000, state.as}; }
    entry* find(std::string_view key) { return keys.find(key, instant()); }

    template <class T>
    typed<T> find_as(std::string_view key) {
        entry* found = find(key);
        if (found == nullptr) return {};
        T* data = std::get_if<T>(&found->data);
        return {data, data == nullptr};
    }

    /// Like find_as, but creates an empty T if the key is missing.
    template <class T>
    typed<T> find_or_create(std::string_view key) {
        typed<T> found = find_as<T>(key);
        if (found.data == nullptr && !found.wrong_type) found.data = &std::get<T>(keys.insert(key, {T{}}).data);
        return found;
    }

    /// Keeps the keyspace free of empty collections.
    template <class T>
    void drop_if_empty(std::string_view key, const T& collection) {
        if (collection.empty()) keys.erase(key);
    }
};

enum command_flag : unsigned {
    reads = 0,
    writes = 1,          // refused by a replica
    adds_memory = 2,     // refused by a full server ("denyoom")
    not_in_script = 4,   // refused inside EVAL
    whole_keyspace = 8,  // uses keys that no script can declare
    in_a_slot = 16,      // its first argument is a sharded channel
    declares_keys = 32   // a count and that many keys follow its first argument
};

/// Positions of keys among the arguments, as COMMAND INFO gives them; first 0: none. A negative last counts
/// from the end.
struct key_positions {
    int first = 0;
    int last = 0;
    int step = 1;
};
inline constexpr key_positions one_key{1, 1, 1};

struct command {
    std::string_view name;  // lower case; "pubsub|numsub" for a subcommand
    int arity;              // negative: at least that many
    unsigned flags;
    key_positions keys;
    value (*run)(context&, arguments);

    bool accepts(std::size_t count) const {
        const auto n = static_cast<int>(count);
        return arity >= 0 ? n == arity : n >= -arity;
    }
    bool has(command_flag flag) const { return (flags & flag) != 0; }
    /// The '|' is a notation of our table; clients must not send it.
    bool is_subcommand() const { return name.find('|') != name.npos; }
};

std::span<const command> generic_commands();
std::span<const command> string_commands();
std::span<const command> hash_commands();
std::span<const command> sorted_set_commands();
std::span<const command> sorted_set_range_commands();
std::span<const command> set_commands();
std::span<const command> server_commands();
std::span<const command> script_commands();

// Errors that several commands return.
value wrong_type_error();
value syntax_error();
value not_an_integer_error();
value not_a_float_error();
value arity_error(std::string_view command_name);
value expire_time_error(std::string_view command_name);

/// Compares the name of an option or (sub)command as Redis does: ignoring case.
bool same_word(std::string_view given, std::string_view lower_case_word);
std::string lower_case(std::string_view text);
/// Redis's glob: * ? [a-z] [^a] and a backslash.
bool glob_matches(std::string_view pattern, std::string_view name);

value integer_reply(std::size_t count);
value bulk_reply(std::string_view text);

}  // namespace holdfast::sim
