// Commands on strings. The most important is SET: the plain mutex is one SET NX PX.

#include <limits>
#include <optional>

#include "server_model/command.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

struct set_options {
    bool nx = false, xx = false, get = false, keep_ttl = false;
    enum class expiry : std::uint8_t { none, ex, px, exat, pxat } form = expiry::none;
    std::string_view amount;

    bool may_expire_as(expiry wanted) const { return !keep_ttl && (form == expiry::none || form == wanted); }
};

// The expiry forms exclude each other, but one form may be repeated; the last one counts.
std::optional<set_options> parse_set_options(arguments words) {
    using expiry = set_options::expiry;
    static constexpr std::pair<std::string_view, expiry> forms[] = {
        {"ex", expiry::ex}, {"px", expiry::px}, {"exat", expiry::exat}, {"pxat", expiry::pxat}};
    set_options options;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (same_word(words[i], "nx") && !options.xx) {
            options.nx = true;
            continue;
        }
        if (same_word(words[i], "xx") && !options.nx) {
            options.xx = true;
            continue;
        }
        if (same_word(words[i], "get")) {
            options.get = true;
            continue;
        }
        if (same_word(words[i], "keepttl") && options.form == expiry::none) {
            options.keep_ttl = true;
            continue;
        }
        bool taken = false;
        for (const auto& [word, form] : forms) {
            if (!same_word(words[i], word) || !options.may_expire_as(form) || i + 1 == words.size()) continue;
            options.form = form;
            options.amount = words[++i];
            taken = true;
            break;
        }
        if (!taken) return std::nullopt;
    }
    return options;
}

// Absolute ms; an error if the amount is not a positive integer or out of range.
std::variant<std::int64_t, value> expiry_of(const set_options& options, std::int64_t now_ms) {
    using expiry = set_options::expiry;
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const auto amount = parse_integer(options.amount);
    if (!amount) return not_an_integer_error();
    const bool seconds = options.form == expiry::ex || options.form == expiry::exat;
    if (*amount <= 0 || (seconds && *amount > most / 1000)) return expire_time_error("set");
    std::int64_t ms = seconds ? *amount * 1000 : *amount;
    if (options.form == expiry::ex || options.form == expiry::px) {
        if (ms > most - now_ms) return expire_time_error("set");
        ms += now_ms;
    }
    return ms;
}

value set(context& ctx, arguments args) {
    const auto options = parse_set_options(args.subspan(3));
    if (!options) return syntax_error();
    std::int64_t expires_ms = no_expiry;
    if (options->form != set_options::expiry::none) {
        auto parsed = expiry_of(*options, ctx.now_ms());
        if (auto* error = std::get_if<value>(&parsed)) return std::move(*error);
        expires_ms = std::get<std::int64_t>(parsed);
    }
    entry* found = ctx.find(args[1]);
    value before;
    if (options->get && found != nullptr) {
        const auto* text = std::get_if<std::string>(&found->data);
        if (text == nullptr) return wrong_type_error();
        before = bulk_reply(*text);
    }
    if ((options->nx && found != nullptr) || (options->xx && found == nullptr)) return before;
    if (found == nullptr) {
        ctx.keys.insert(args[1], {std::string{args[2]}, expires_ms});
    } else {
        found->data = std::string{args[2]};
        if (!options->keep_ttl) found->expires_ms = expires_ms;
    }
    return options->get ? before : value::make_status("OK");
}

value get(context& ctx, arguments args) {
    const auto [text, wrong_type] = ctx.find_as<std::string>(args[1]);
    if (wrong_type) return wrong_type_error();
    return text == nullptr ? value::make_nil() : bulk_reply(*text);
}

value getdel(context& ctx, arguments args) {
    value before = get(ctx, args);
    if (before.type == value::kind::bulk) ctx.keys.erase(args[1]);
    return before;
}

value strlen(context& ctx, arguments args) {
    const auto [text, wrong_type] = ctx.find_as<std::string>(args[1]);
    if (wrong_type) return wrong_type_error();
    return integer_reply(text == nullptr ? 0 : text->size());
}

value increment(context& ctx, std::string_view key, std::int64_t by) {
    const auto [text, wrong_type] = ctx.find_as<std::string>(key);
    if (wrong_type) return wrong_type_error();
    std::int64_t number = 0;
    if (text != nullptr) {
        const auto parsed = parse_integer(*text);
        if (!parsed) return not_an_integer_error();
        number = *parsed;
    }
    if (__builtin_add_overflow(number, by, &number)) {
        return value::make_error("ERR increment or decrement would overflow");
    }
    if (text != nullptr)
        *text = std::to_string(number);
    else
        ctx.keys.insert(key, {std::to_string(number)});
    return value::make_integer(number);
}

value incr(context& ctx, arguments args) {
    return increment(ctx, args[1], 1);
}

value incrby(context& ctx, arguments args) {
    const auto by = parse_integer(args[2]);
    return by ? increment(ctx, args[1], *by) : not_an_integer_error();
}

constexpr command string_commands_table[] = {
    {"get", 2, reads, one_key, get},
    {"set", -3, writes | adds_memory, one_key, set},
    {"getdel", 2, writes, one_key, getdel},
    {"strlen", 2, reads, one_key, strlen},
    {"incr", 2, writes | adds_memory, one_key, incr},
    {"incrby", 3, writes | adds_memory, one_key, incrby},
};

}  // namespace

std::span<const command> string_commands() {
    return string_commands_table;
}

}  // namespace holdfast::sim
