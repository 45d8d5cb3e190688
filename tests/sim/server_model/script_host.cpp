#include "server_model/script_host.hpp"

#include <optional>
#include <utility>

#include "server_model/lua_convert.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

std::optional<value> bad_key_count(arguments args) {
    const auto count = parse_integer(args[2]);
    if (!count) return not_an_integer_error();
    if (*count > static_cast<std::int64_t>(args.size()) - 3) {
        return value::make_error("ERR Number of keys can't be greater than number of args");
    }
    if (*count < 0) return value::make_error("ERR Number of keys can't be negative");
    return std::nullopt;
}

value compile_error(std::string_view why) {
    return value::make_error("ERR Error compiling script (new function): " + std::string{why});
}

}  // namespace

script_host::script_host(std::shared_ptr<script_engine> engine, key_check check)
    : engine_(std::move(engine)), check_(check) {}

bool script_host::knows(std::string_view sha1) const {
    return known_.contains(lower_case(sha1));
}

value script_host::run(context& ctx, script_engine::script& which, arguments args) {
    const auto key_count = static_cast<std::size_t>(*parse_integer(args[2]));
    script_run state{which.sha1, args.subspan(3, key_count), args.subspan(3 + key_count), check_};
    return engine_->run(which, state, ctx);
}

value script_host::eval(context& ctx, arguments args) {
    if (auto error = bad_key_count(args)) return *error;
    auto compiled = engine_->compile(args[1]);
    if (const auto* why = std::get_if<std::string>(&compiled)) return compile_error(*why);
    auto* script = std::get<script_engine::script*>(compiled);
    known_.emplace(script->sha1, script);
    return run(ctx, *script, args);
}

value script_host::eval_by_sha1(context& ctx, arguments args) {
    const auto no_script = [] { return value::make_error("NOSCRIPT No matching script. Please use EVAL."); };
    if (args[1].size() != 40) return no_script();
    if (auto error = bad_key_count(args)) return *error;
    const auto known = known_.find(args[1]);
    if (known != known_.end()) return run(ctx, *known->second, args);
    const auto spelled_usually = known_.find(lower_case(args[1]));
    return spelled_usually == known_.end() ? no_script() : run(ctx, *spelled_usually->second, args);
}

value script_host::load(std::string_view text) {
    auto compiled = engine_->compile(text);
    if (const auto* why = std::get_if<std::string>(&compiled)) return compile_error(*why);
    auto* script = std::get<script_engine::script*>(compiled);
    known_.emplace(script->sha1, script);
    return value::make_bulk(script->sha1);
}

namespace {

value eval(context& ctx, arguments args) {
    return ctx.scripts.eval(ctx, args);
}
value evalsha(context& ctx, arguments args) {
    return ctx.scripts.eval_by_sha1(ctx, args);
}
value script_load(context& ctx, arguments args) {
    return ctx.scripts.load(args[2]);
}

value script_exists(context& ctx, arguments args) {
    std::vector<value> out;
    for (const auto sha1 : args.subspan(2)) out.push_back(value::make_integer(ctx.scripts.knows(sha1) ? 1 : 0));
    return value::make_array(std::move(out));
}

value script_flush(context& ctx, arguments args) {
    if (args.size() > 3 || (args.size() == 3 && !same_word(args[2], "sync") && !same_word(args[2], "async"))) {
        return value::make_error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    }
    ctx.scripts.forget_all();
    return value::make_status("OK");
}

// Modelled elsewhere (connections) or not at all; listed so that a script that calls them gets the right refusal.
value never_runs(context&, arguments) {
    throw std::logic_error("server model: this command is not modelled");
}

constexpr command script_host_table[] = {
    {"eval", -3, not_in_script | declares_keys, {}, eval},
    {"evalsha", -3, not_in_script | declares_keys, {}, evalsha},
    {"script", -2, not_in_script, {}, nullptr},
    {"script|load", 3, not_in_script, {}, script_load},
    {"script|exists", -3, not_in_script, {}, script_exists},
    {"script|flush", -2, not_in_script, {}, script_flush},
    {"multi", 1, not_in_script, {}, never_runs},
    {"subscribe", -2, not_in_script, {}, never_runs},
    {"ssubscribe", -2, not_in_script, {}, never_runs},
};

}  // namespace

std::span<const command> script_commands() {
    return script_host_table;
}

}  // namespace holdfast::sim
