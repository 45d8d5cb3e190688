#include "server_model/dispatch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

std::string upper_case(std::string_view name) {
    std::string out{name};
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return out;
}

// Lookup by name, ignoring case. A hash of a few letters is enough for so few names, and every redis.call looks here.
class command_table {
public:
    void add(const command& c) { buckets_[hash(c.name)].push_back({upper_case(c.name), &c}); }

    const command* find(std::string_view name) const {
        if (name.empty()) return nullptr;
        for (const auto& [usual_spelling, each] : buckets_[hash(name)]) {
            if (name == usual_spelling || same_word(name, each->name)) return each;
        }
        return nullptr;
    }

private:
    struct named {
        std::string usual_spelling;  // upper case
        const command* which;
    };

    static std::size_t hash(std::string_view name) {
        const auto letter = [name](std::size_t at) { return static_cast<std::size_t>(name[at]) & 31U; };
        return (name.size() + 3 * letter(0) + 5 * letter(name.size() / 3) + 11 * letter(name.size() / 2) +
                23 * letter(name.size() - 1)) %
               buckets;
    }

    static constexpr std::size_t buckets = 256;
    std::array<std::vector<named>, buckets> buckets_;
};

const command_table& commands() {
    static const command_table table = [] {
        command_table all;
        for (const auto part : {generic_commands(), string_commands(), hash_commands(), sorted_set_commands(),
                                sorted_set_range_commands(), set_commands(), server_commands(), script_commands()}) {
            for (const command& c : part) all.add(c);
        }
        return all;
    }();
    return table;
}

const command* find_command(std::string_view name) {
    const command* const found = commands().find(name);
    return found == nullptr || found->is_subcommand() ? nullptr : found;
}

const command* find_subcommand(const command& container, std::string_view word) {
    return commands().find(std::string{container.name} + '|' + std::string{word});
}

bool is_container(const command& c) {
    return c.run == nullptr;
}

value unknown_command_error(arguments args) {
    constexpr std::size_t most = 128;
    std::string beginning;
    for (std::size_t i = 1; i < args.size() && beginning.size() < most; ++i) {
        beginning += '\'' + std::string{args[i].substr(0, most - beginning.size())} + "' ";
    }
    return value::make_error("ERR unknown command '" + std::string{args[0].substr(0, most)} +
                             "', with args beginning with: " + beginning);
}

value unknown_subcommand_error(const command& container, std::string_view word) {
    return value::make_error("ERR unknown subcommand '" + std::string{word.substr(0, 128)} + "'. Try " +
                             upper_case(container.name) + " HELP.");
}

value out_of_memory_error() {
    return value::make_error("OOM command not allowed when used memory > 'maxmemory'.");
}
value read_only_error() {
    return value::make_error("READONLY You can't write against a read only replica.");
}

template <class Visit>
void for_each_key(const command& c, arguments args, Visit visit) {
    if (c.keys.first == 0) return;
    const auto count = static_cast<int>(args.size());
    const int last = c.keys.last < 0 ? count + c.keys.last : c.keys.last;
    for (int i = c.keys.first; i <= last && i < count; i += c.keys.step) visit(args[static_cast<std::size_t>(i)]);
}

// The keys of EVAL; none if their number is malformed, which the command itself reports.
arguments declared_keys(arguments args) {
    const auto count = parse_integer(args[2]);
    if (!count || *count < 0 || *count > static_cast<std::int64_t>(args.size()) - 3) return {};
    return args.subspan(3, static_cast<std::size_t>(*count));
}

std::optional<value> refused_by_slot(context& ctx, const command& c, arguments args) {
    if (ctx.slots == nullptr) return std::nullopt;
    if (c.has(in_a_slot)) return slot_refusal(ctx, args.subspan(1, 1), named::channels);
    if (c.has(declares_keys)) return slot_refusal(ctx, declared_keys(args), named::keys);
    if (c.keys.first == 0) return std::nullopt;
    // The usual case, without building a list.
    if (c.keys.first == c.keys.last)
        return slot_refusal(ctx, args.subspan(static_cast<std::size_t>(c.keys.first), 1), named::keys);
    std::vector<std::string_view> keys;
    for_each_key(c, args, [&keys](std::string_view key) { keys.push_back(key); });
    return slot_refusal(ctx, keys, named::keys);
}

void check_keys_declared(const command& c, arguments args, const script_run& run) {
    if (run.check == key_check::off) return;
    if (c.has(whole_keyspace)) {
        throw undeclared_key("script " + std::string{run.sha1} + " calls " + std::string{c.name} +
                             ", which touches keys it cannot declare");
    }
    for_each_key(c, args, [&](std::string_view key) {
        if (std::find(run.keys.begin(), run.keys.end(), key) != run.keys.end()) return;
        throw undeclared_key("script " + std::string{run.sha1} + " calls " + std::string{c.name} + " on key " +
                             in_quotes(key) + ", which is not in its KEYS");
    });
}

value script_error(std::string_view text) {
    return value::make_error("ERR " + std::string{text});
}

// A command that only removes or expires keys is not replicated if it found none.
value run_and_count(context& ctx, const command& c, arguments args) {
    value answer = c.run(ctx, args);
    if (!c.has(writes) || ctx.writes == nullptr) return answer;
    const bool found_none = answer.type == value::kind::integer && answer.integer == 0 && !c.has(adds_memory);
    const bool wrote = !answer.is_error() && answer.type != value::kind::nil && !found_none;
    if (wrote) ++*ctx.writes;
    return answer;
}

}  // namespace

value execute_command(context& ctx, arguments args) {
    const command* c = args.empty() ? nullptr : find_command(args[0]);
    if (c == nullptr) return unknown_command_error(args);
    if (is_container(*c) && args.size() > 1) {
        const command* sub = find_subcommand(*c, args[1]);
        if (sub == nullptr) return unknown_subcommand_error(*c, args[1]);
        c = sub;
    }
    if (!c->accepts(args.size())) return arity_error(c->name);
    if (auto refusal = refused_by_slot(ctx, *c, args)) return *std::move(refusal);
    if (c->has(adds_memory) && ctx.state.memory == server_state::memory_state::full) return out_of_memory_error();
    if (c->has(writes) && ctx.state.as == role::replica) return read_only_error();
    return run_and_count(ctx, *c, args);
}

value execute_in_script(context& ctx, arguments args, script_run& run) {
    const command* c = find_command(args[0]);
    if (c != nullptr && is_container(*c) && args.size() > 1) c = find_subcommand(*c, args[1]);
    if (c == nullptr) return script_error("Unknown Redis command called from script");
    if (!c->accepts(args.size())) return script_error("Wrong number of args calling Redis command from script");
    if (c->has(not_in_script)) return script_error("This Redis command is not allowed from script");
    check_keys_declared(*c, args, run);
    if (c->has(writes) && ctx.state.as == role::replica) return read_only_error();
    if (c->has(adds_memory) && !run.has_written && ctx.state.memory == server_state::memory_state::full) {
        return out_of_memory_error();
    }
    if (c->has(writes)) run.has_written = true;
    if (refused_by_slot(ctx, *c, args)) {
        return script_error("Script attempted to access a non local key in a cluster node");
    }
    return run_and_count(ctx, *c, args);
}

}  // namespace holdfast::sim
