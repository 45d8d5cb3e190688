// Commands on single members of sorted sets. Ranges are in sorted_set_ranges.cpp.

#include <cmath>
#include <optional>
#include <utility>

#include "server_model/command.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

struct add_options {
    bool nx = false, xx = false, gt = false, lt = false, ch = false, incr = false;
    std::size_t first_score = 2;
};

add_options parse_add_options(arguments args) {
    add_options options;
    const std::pair<std::string_view, bool*> words[] = {{"nx", &options.nx}, {"xx", &options.xx},
                                                        {"gt", &options.gt}, {"lt", &options.lt},
                                                        {"ch", &options.ch}, {"incr", &options.incr}};
    for (; options.first_score < args.size(); ++options.first_score) {
        bool known = false;
        for (const auto& [word, flag] : words) {
            if (same_word(args[options.first_score], word)) known = *flag = true;
        }
        if (!known) break;
    }
    return options;
}

std::optional<value> conflict(const add_options& options, std::size_t given) {
    if (given == 0 || given % 2 != 0) return syntax_error();
    if (options.nx && options.xx) {
        return value::make_error("ERR XX and NX options at the same time are not compatible");
    }
    if ((options.gt && options.nx) || (options.lt && options.nx) || (options.gt && options.lt)) {
        return value::make_error("ERR GT, LT, and/or NX options at the same time are not compatible");
    }
    if (options.incr && given > 2) {
        return value::make_error("ERR INCR option supports a single increment-element pair");
    }
    return std::nullopt;
}

struct add_outcome {
    enum class change : std::uint8_t { nothing, kept, added, updated, not_a_number } what;
    double score = 0;
};

add_outcome add_one(sorted_set& set, std::string_view member, double score, const add_options& options) {
    using change = add_outcome::change;
    const auto current = set.score(member);
    if (!current) {
        if (options.xx) return {change::nothing};
        set.set(member, score);
        return {change::added, score};
    }
    if (options.nx) return {change::nothing};
    if (options.incr) {
        score += *current;
        if (std::isnan(score)) return {change::not_a_number};
    }
    if ((options.gt && score <= *current) || (options.lt && score >= *current)) return {change::nothing};
    set.set(member, score);
    return {score == *current ? change::kept : change::updated, score};
}

value add_with(context& ctx, arguments args, const add_options& options) {
    using change = add_outcome::change;
    std::vector<double> scores;
    for (std::size_t i = options.first_score; i < args.size(); i += 2) {
        const auto score = parse_score(args[i]);
        if (!score) return not_a_float_error();
        scores.push_back(*score);
    }
    auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (set == nullptr && options.xx) return options.incr ? value::make_nil() : value::make_integer(0);
    if (set == nullptr) set = ctx.find_or_create<sorted_set>(args[1]).data;
    std::int64_t added = 0;
    std::int64_t updated = 0;
    add_outcome last{};
    for (std::size_t i = 0; i < scores.size(); ++i) {
        last = add_one(*set, args[options.first_score + 2 * i + 1], scores[i], options);
        if (last.what == change::not_a_number) {
            return value::make_error("ERR resulting score is not a number (NaN)");
        }
        added += last.what == change::added ? 1 : 0;
        updated += last.what == change::updated ? 1 : 0;
    }
    if (!options.incr) return value::make_integer(options.ch ? added + updated : added);
    return last.what == change::nothing ? value::make_nil() : value::make_bulk(format_double(last.score));
}

value zadd(context& ctx, arguments args) {
    const add_options options = parse_add_options(args);
    if (auto error = conflict(options, args.size() - options.first_score)) return *error;
    return add_with(ctx, args, options);
}

value zincrby(context& ctx, arguments args) {
    add_options options;
    options.incr = true;
    return add_with(ctx, args, options);
}

value zrem(context& ctx, arguments args) {
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (set == nullptr) return value::make_integer(0);
    std::size_t removed = 0;
    for (const auto member : args.subspan(2)) removed += set->erase(member) ? 1U : 0U;
    ctx.drop_if_empty(args[1], *set);
    return integer_reply(removed);
}

value zscore(context& ctx, arguments args) {
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    const auto score = set == nullptr ? std::nullopt : set->score(args[2]);
    return score ? value::make_bulk(format_double(*score)) : value::make_nil();
}

value zcard(context& ctx, arguments args) {
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    return integer_reply(set == nullptr ? 0 : set->size());
}

value zrank(context& ctx, arguments args) {
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    const auto score = set == nullptr ? std::nullopt : set->score(args[2]);
    if (!score) return value::make_nil();
    const auto& order = set->in_order();
    return value::make_integer(std::distance(order.begin(), order.find({*score, args[2]})));
}

value zpopmin(context& ctx, arguments args) {
    if (args.size() > 3) return syntax_error();
    std::int64_t count = 1;
    if (args.size() == 3) {
        const auto given = parse_integer(args[2]);
        if (!given || *given < 0) return value::make_error("ERR value is out of range, must be positive");
        count = *given;
    }
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    std::vector<value> out;
    if (set == nullptr) return value::make_array(std::move(out));
    for (; count > 0 && !set->empty(); --count) {
        const auto [score, view] = *set->in_order().begin();
        const std::string member{view};
        set->erase(member);
        out.push_back(bulk_reply(member));
        out.push_back(value::make_bulk(format_double(score)));
    }
    ctx.drop_if_empty(args[1], *set);
    return value::make_array(std::move(out));
}

constexpr command sorted_set_commands_table[] = {
    {"zadd", -4, writes | adds_memory, one_key, zadd},
    {"zincrby", 4, writes | adds_memory, one_key, zincrby},
    {"zrem", -3, writes, one_key, zrem},
    {"zscore", 3, reads, one_key, zscore},
    {"zcard", 2, reads, one_key, zcard},
    {"zrank", 3, reads, one_key, zrank},
    {"zpopmin", -2, writes, one_key, zpopmin},
};

}  // namespace

std::span<const command> sorted_set_commands() {
    return sorted_set_commands_table;
}

}  // namespace holdfast::sim
