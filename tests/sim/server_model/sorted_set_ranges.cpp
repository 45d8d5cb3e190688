// Commands on ranges of sorted sets: by rank and by score, in both directions.

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include "server_model/command.hpp"
#include "server_model/numbers.hpp"

namespace holdfast::sim {
namespace {

using order = sorted_set::order;
using slice = std::pair<order::const_iterator, order::const_iterator>;

struct score_range {
    score_bound low;
    score_bound high;
};

value bad_range_error() {
    return value::make_error("ERR min or max is not a float");
}

// `ends`: low and high, in this order.
std::optional<score_range> parse_score_range(arguments ends) {
    const auto low = parse_score_bound(ends[0]);
    const auto high = low ? parse_score_bound(ends[1]) : std::nullopt;
    if (!high) return std::nullopt;
    return score_range{*low, *high};
}

order::const_iterator first_with(const order& all, double score) {
    return all.lower_bound({score, {}});
}

// The first whose score is greater.
order::const_iterator first_after(const order& all, double score) {
    auto at = first_with(all, score);
    while (at != all.end() && at->first == score) ++at;
    return at;
}

slice slice_of(const order& all, const score_range& range) {
    const auto& [low, high] = range;
    if (low.score > high.score) return {all.end(), all.end()};
    const bool skip_low = low.at == score_bound::edge::excluded;
    const bool skip_high = high.at == score_bound::edge::excluded;
    if (low.score == high.score && (skip_low || skip_high)) return {all.end(), all.end()};
    return {skip_low ? first_after(all, low.score) : first_with(all, low.score),
            skip_high ? first_with(all, high.score) : first_after(all, high.score)};
}

enum class by : std::uint8_t { unsaid, rank, score };
enum class direction : std::uint8_t { unsaid, forward, reverse };

struct range_request {
    by rank_by = by::unsaid;
    direction scan_direction = direction::unsaid;
    bool with_scores = false;
    std::int64_t offset = 0;
    std::int64_t limit = -1;
};

// Reads the options after the two ends; returns nothing if they are valid.
std::optional<value> parse_words(range_request& request, arguments words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (same_word(words[i], "withscores")) {
            request.with_scores = true;
        } else if (same_word(words[i], "limit") && i + 2 < words.size()) {
            const auto offset = parse_integer(words[i + 1]);
            const auto limit = parse_integer(words[i + 2]);
            if (!offset || !limit) return not_an_integer_error();
            request.offset = *offset;
            request.limit = *limit;
            i += 2;
        } else if (request.scan_direction == direction::unsaid && same_word(words[i], "rev")) {
            request.scan_direction = direction::reverse;
        } else if (request.rank_by == by::unsaid && same_word(words[i], "byscore")) {
            request.rank_by = by::score;
        } else if (request.rank_by == by::unsaid && same_word(words[i], "bylex")) {
            throw std::logic_error("server model: ZRANGE BYLEX is not modelled");
        } else {
            return syntax_error();
        }
    }
    if (request.rank_by == by::unsaid) request.rank_by = by::rank;
    if (request.limit != -1 && request.rank_by == by::rank) {
        return value::make_error(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    }
    return std::nullopt;
}

class range_writer {
public:
    explicit range_writer(const range_request& request) : request_(request) {}

    template <class Iterator>
    value write(Iterator from, Iterator to) {
        std::vector<value> out;
        std::int64_t skip = request_.offset;
        std::int64_t left = request_.limit < 0 ? std::numeric_limits<std::int64_t>::max() : request_.limit;
        if (skip < 0) left = 0;  // a negative offset skips everything
        for (; from != to && left > 0; ++from) {
            if (skip > 0) {
                --skip;
                continue;
            }
            --left;
            out.push_back(bulk_reply(from->second));
            if (request_.with_scores) out.push_back(value::make_bulk(format_double(from->first)));
        }
        return value::make_array(std::move(out));
    }

    value write_in_direction(slice part) {
        if (request_.scan_direction != direction::reverse) return write(part.first, part.second);
        return write(std::make_reverse_iterator(part.second), std::make_reverse_iterator(part.first));
    }

private:
    const range_request& request_;
};

struct rank_range {
    std::int64_t start;
    std::int64_t stop;
};

value by_rank(const order& all, rank_range ranks, const range_request& request) {
    const auto size = static_cast<std::int64_t>(all.size());
    auto [start, stop] = ranks;
    if (start < 0) start = std::max<std::int64_t>(0, start + size);
    if (stop < 0) stop += size;
    stop = std::min(stop, size - 1);
    if (start > stop || start >= size) return value::make_array({});
    range_writer writer{request};
    if (request.scan_direction == direction::reverse) {
        return writer.write(std::next(all.rbegin(), start), std::next(all.rbegin(), stop + 1));
    }
    return writer.write(std::next(all.begin(), start), std::next(all.begin(), stop + 1));
}

value range(context& ctx, arguments args, range_request request) {
    if (auto error = parse_words(request, args.subspan(4))) return *error;
    std::optional<score_range> scores;
    rank_range ranks{0, 0};
    if (request.rank_by == by::score) {
        std::string_view ends[] = {args[2], args[3]};
        if (request.scan_direction == direction::reverse) std::swap(ends[0], ends[1]);
        scores = parse_score_range(ends);
        if (!scores) return bad_range_error();
    } else {
        const auto start = parse_integer(args[2]);
        const auto stop = parse_integer(args[3]);
        if (!start || !stop) return not_an_integer_error();
        ranks = {*start, *stop};
    }
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (set == nullptr) return value::make_array({});
    if (!scores) return by_rank(set->in_order(), ranks, request);
    return range_writer{request}.write_in_direction(slice_of(set->in_order(), *scores));
}

value zrange(context& ctx, arguments args) {
    return range(ctx, args, {});
}
value zrevrange(context& ctx, arguments args) {
    return range(ctx, args, {by::rank, direction::reverse});
}
value zrangebyscore(context& ctx, arguments args) {
    return range(ctx, args, {by::score, direction::forward});
}
value zrevrangebyscore(context& ctx, arguments args) {
    return range(ctx, args, {by::score, direction::reverse});
}

value zcount(context& ctx, arguments args) {
    const auto scores = parse_score_range(args.subspan(2));
    if (!scores) return bad_range_error();
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (set == nullptr) return value::make_integer(0);
    const auto [from, to] = slice_of(set->in_order(), *scores);
    return value::make_integer(std::distance(from, to));
}

value zremrangebyscore(context& ctx, arguments args) {
    const auto scores = parse_score_range(args.subspan(2));
    if (!scores) return bad_range_error();
    const auto [set, wrong_type] = ctx.find_as<sorted_set>(args[1]);
    if (wrong_type) return wrong_type_error();
    if (set == nullptr) return value::make_integer(0);
    const auto [from, to] = slice_of(set->in_order(), *scores);
    std::vector<std::string> doomed;
    for (auto at = from; at != to; ++at) doomed.emplace_back(at->second);
    for (const auto& member : doomed) set->erase(member);
    ctx.drop_if_empty(args[1], *set);
    return integer_reply(doomed.size());
}

constexpr command sorted_set_ranges_table[] = {
    {"zrange", -4, reads, one_key, zrange},
    {"zrevrange", -4, reads, one_key, zrevrange},
    {"zrangebyscore", -4, reads, one_key, zrangebyscore},
    {"zrevrangebyscore", -4, reads, one_key, zrevrangebyscore},
    {"zcount", 4, reads, one_key, zcount},
    {"zremrangebyscore", 4, writes, one_key, zremrangebyscore},
};

}  // namespace

std::span<const command> sorted_set_range_commands() {
    return sorted_set_ranges_table;
}

}  // namespace holdfast::sim
