#include "node/dispatch.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace holdfast::sim {
namespace {

using command_table = std::unordered_map<std::string_view, const command*>;

const command_table& commands() {
    static const command_table table = [] {
        command_table all;
        for (const auto part : {generic_commands(), string_commands(), hash_commands(), sorted_set_commands(),
                                sorted_set_range_commands(), set_commands(), server_commands(), script_commands()}) {
            for (const command& c : part) all.emplace(c.name, &c);
        }
        return all;
    }();
    return table;
}

const command* find_command(std::string_view name) {
    std::array<char, 32> lowered{};
    if (name.size() > lowered.size()) return nullptr;
    std::transform(name.begin(), name.end(), lowered.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto found = commands().find({lowered.data(), name.size()});
    // A '|' belongs to our table, not to what clients may send.
    if (found == commands().end() || name.find('|') != name.npos) return nullptr;
    return found->second;
}

const command* find_subcommand(const command& container, std::string_view word) {
    const auto found = commands().find(std::string{container.name} + '|' + lower_case(word));
    return found == commands().end() ? nullptr : found->second;
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
    std::string name{container.name};
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    return value::make_error("ERR unknown subcommand '" + std::string{word.substr(0, 128)} + "'. Try " + name +
                             " HELP.");
}

value out_of_memory_error() {
    return value::make_error("OOM command not allowed when used memory > 'maxmemory'.");
}
value read_only_error() {
    return value::make_error("READONLY You can't write against a read only replica.");
}

void check_keys_declared(const command& c, arguments args, const script_run& run) {
    if (run.check == key_check::off) return;
    if (c.has(whole_keyspace)) {
        throw undeclared_key("script " + std::string{run.sha1} + " calls " + std::string{c.name} +
                             ", which touches keys it cannot declare");
    }
    if (c.keys.first == 0) return;
    const auto count = static_cast<int>(args.size());
    const int last = c.keys.last < 0 ? count + c.keys.last : c.keys.last;
    for (int i = c.keys.first; i <= last && i < count; i += c.keys.step) {
        const std::string_view key = args[static_cast<std::size_t>(i)];
        if (std::find(run.keys.begin(), run.keys.end(), key) != run.keys.end()) continue;
        throw undeclared_key("script " + std::string{run.sha1} + " calls " + std::string{c.name} + " on key " +
                             in_quotes(key) + ", which is not in its KEYS");
    }
}

value script_error(std::string_view text) {
    return value::make_error("ERR " + std::string{text});
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
    if (c->has(adds_memory) && ctx.state.memory == server_state::memory_state::full) return out_of_memory_error();
    if (c->has(writes) && ctx.state.as == role::replica) return read_only_error();
    return c->run(ctx, args);
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
    return c->run(ctx, args);
}

}  // namespace holdfast::sim
