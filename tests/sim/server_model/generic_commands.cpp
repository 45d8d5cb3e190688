// Commands on keys of any type: existence, type, expiry, listing.

#include <limits>
#include <optional>

#include "server_model/command.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

value del(context& ctx, arguments args) {
    std::size_t removed = 0;
    for (const auto key : args.subspan(1)) {
        if (ctx.find(key) != nullptr && ctx.keys.erase(key)) ++removed;
    }
    return integer_reply(removed);
}

value exists(context& ctx, arguments args) {
    std::size_t count = 0;
    for (const auto key : args.subspan(1)) count += ctx.find(key) != nullptr ? 1U : 0U;
    return integer_reply(count);
}

value type(context& ctx, arguments args) {
    const entry* found = ctx.find(args[1]);
    return value::make_status(found == nullptr ? "none" : std::string{type_name(*found)});
}

struct expire_options {
    bool nx = false, xx = false, gt = false, lt = false;

    bool allow(std::int64_t current_ms, std::int64_t wanted_ms) const {
        if (nx && current_ms != no_expiry) return false;
        if (xx && current_ms == no_expiry) return false;
        if (gt && (current_ms == no_expiry || wanted_ms <= current_ms)) return false;
        return !(lt && current_ms != no_expiry && wanted_ms >= current_ms);
    }
};

std::optional<value> parse(expire_options& options, arguments words) {
    for (const auto word : words) {
        if (same_word(word, "nx"))
            options.nx = true;
        else if (same_word(word, "xx"))
            options.xx = true;
        else if (same_word(word, "gt"))
            options.gt = true;
        else if (same_word(word, "lt"))
            options.lt = true;
        else
            return value::make_error("ERR Unsupported option " + std::string{word});
    }
    if (options.nx && (options.xx || options.gt || options.lt)) {
        return value::make_error("ERR NX and XX, GT or LT options at the same time are not compatible");
    }
    if (options.gt && options.lt) {
        return value::make_error("ERR GT and LT options at the same time are not compatible");
    }
    return std::nullopt;
}

enum class unit : std::uint8_t { seconds, milliseconds };

struct expire_form {
    std::string_view command;
    unit in;
    std::int64_t base_ms;
};

// The requested time in absolute ms; nothing if it cannot be represented.
std::optional<std::int64_t> absolute_ms(std::int64_t amount, const expire_form& form) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    if (form.in == unit::seconds) {
        if (amount > most / 1000 || amount < least / 1000) return std::nullopt;
        amount *= 1000;
    }
    if (amount > most - form.base_ms) return std::nullopt;
    return amount + form.base_ms;
}

value expire_as(context& ctx, arguments args, const expire_form& form) {
    expire_options options;
    if (auto error = parse(options, args.subspan(3))) return *error;
    const auto amount = parse_integer(args[2]);
    if (!amount) return not_an_integer_error();
    const auto when_ms = absolute_ms(*amount, form);
    if (!when_ms) return expire_time_error(form.command);
    entry* found = ctx.find(args[1]);
    if (found == nullptr || !options.allow(found->expires_ms, *when_ms)) return value::make_integer(0);
    // A time that has passed means deletion.
    if (*when_ms <= ctx.now_ms())
        ctx.keys.erase(args[1]);
    else
        found->expires_ms = *when_ms;
    return value::make_integer(1);
}

value expire(context& ctx, arguments args) {
    return expire_as(ctx, args, {"expire", unit::seconds, ctx.now_ms()});
}
value pexpire(context& ctx, arguments args) {
    return expire_as(ctx, args, {"pexpire", unit::milliseconds, ctx.now_ms()});
}
value expireat(context& ctx, arguments args) {
    return expire_as(ctx, args, {"expireat", unit::seconds, 0});
}
value pexpireat(context& ctx, arguments args) {
    return expire_as(ctx, args, {"pexpireat", unit::milliseconds, 0});
}

enum class relative_to : std::uint8_t { now, epoch };

value expiry_in(context& ctx, std::string_view key, unit in, relative_to from) {
    const entry* found = ctx.find(key);
    if (found == nullptr) return value::make_integer(-2);
    if (found->expires_ms == no_expiry) return value::make_integer(-1);
    std::int64_t ms = found->expires_ms;
    if (from == relative_to::now) ms = std::max<std::int64_t>(0, ms - ctx.now_ms());
    // Unsigned, so that rounding the last representable time does not overflow.
    const auto rounded_s = static_cast<std::int64_t>((static_cast<std::uint64_t>(ms) + 500) / 1000);
    return value::make_integer(in == unit::seconds ? rounded_s : ms);
}

value ttl(context& ctx, arguments args) {
    return expiry_in(ctx, args[1], unit::seconds, relative_to::now);
}
value pttl(context& ctx, arguments args) {
    return expiry_in(ctx, args[1], unit::milliseconds, relative_to::now);
}
value expiretime(context& ctx, arguments args) {
    return expiry_in(ctx, args[1], unit::seconds, relative_to::epoch);
}
value pexpiretime(context& ctx, arguments args) {
    return expiry_in(ctx, args[1], unit::milliseconds, relative_to::epoch);
}

value persist(context& ctx, arguments args) {
    entry* found = ctx.find(args[1]);
    if (found == nullptr || found->expires_ms == no_expiry) return value::make_integer(0);
    found->expires_ms = no_expiry;
    return value::make_integer(1);
}

std::vector<value> living_matches(context& ctx, std::string_view pattern, std::string_view only_type) {
    std::vector<value> out;
    for (const keyspace::item* each : ctx.keys.living_entries(ctx.instant())) {
        const auto& [key, found] = *each;
        if (!glob_matches(pattern, key)) continue;
        if (only_type.empty() || same_word(only_type, type_name(found))) out.push_back(bulk_reply(key));
    }
    return out;
}

value keys(context& ctx, arguments args) {
    return value::make_array(living_matches(ctx, args[1], {}));
}

// Returns everything at once, with cursor 0: a real server may do so too.
value scan(context& ctx, arguments args) {
    const auto cursor = parse_integer(args[1]);
    if (!cursor || *cursor < 0) return value::make_error("ERR invalid cursor");
    std::string_view pattern = "*";
    std::string_view only_type;
    for (std::size_t i = 2; i < args.size(); i += 2) {
        if (i + 1 == args.size()) return syntax_error();
        if (same_word(args[i], "count")) {
            const auto count = parse_integer(args[i + 1]);
            if (!count) return not_an_integer_error();
            if (*count < 1) return syntax_error();
        } else if (same_word(args[i], "match")) {
            pattern = args[i + 1];
        } else if (same_word(args[i], "type")) {
            only_type = args[i + 1];
        } else {
            return syntax_error();
        }
    }
    if (ctx.state.as == role::primary) ctx.keys.remove_expired(ctx.instant());
    return value::make_array({bulk_reply("0"), value::make_array(living_matches(ctx, pattern, only_type))});
}

constexpr key_positions all_keys{1, -1, 1};

constexpr command generic_commands_table[] = {
    {"del", -2, writes, all_keys, del},
    {"unlink", -2, writes, all_keys, del},
    {"exists", -2, reads, all_keys, exists},
    {"type", 2, reads, one_key, type},
    {"expire", -3, writes, one_key, expire},
    {"pexpire", -3, writes, one_key, pexpire},
    {"expireat", -3, writes, one_key, expireat},
    {"pexpireat", -3, writes, one_key, pexpireat},
    {"ttl", 2, reads, one_key, ttl},
    {"pttl", 2, reads, one_key, pttl},
    {"expiretime", 2, reads, one_key, expiretime},
    {"pexpiretime", 2, reads, one_key, pexpiretime},
    {"persist", 2, writes, one_key, persist},
    {"keys", 2, reads | whole_keyspace, {}, keys},
    {"scan", -2, reads | whole_keyspace, {}, scan},
};

}  // namespace

std::span<const command> generic_commands() {
    return generic_commands_table;
}

}  // namespace holdfast::sim
