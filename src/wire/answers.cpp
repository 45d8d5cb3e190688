// Reads the answers of the lock scripts. All kinds of lock answer in one form.
#include "wire/requests.hpp"

#include "wire/entry.hpp"

#include <utility>

namespace holdfast::wire {
namespace {

using redis::reply_view;

std::optional<acquire_answer::reason> to_reason(std::string_view word) {
    using reason = acquire_answer::reason;
    constexpr std::pair<std::string_view, reason> known[] = {
        {"held", reason::held},         {"reading", reason::reading},   {"writing", reason::writing},
        {"reserved", reason::reserved}, {"deadlock", reason::deadlock}, {"mode", reason::other_mode},
        {"limit", reason::other_limit}, {"permits", reason::over_limit}};
    for (const auto& [name, why] : known) {
        if (word == name) return why;
    }
    return std::nullopt;
}

// A token that no script grants would poison the client's token floor.
std::optional<std::uint64_t> to_token(const reply_view& value) {
    const auto number = value.to_integer();
    if (!number || *number < 0 || *number >= end_of_tokens) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
}

std::optional<std::chrono::microseconds> to_clock(const reply_view& reply, std::size_t at) {
    const auto us = reply.size() > at ? to_token(reply[at]) : std::nullopt;
    return us ? std::optional(std::chrono::microseconds(static_cast<std::int64_t>(*us))) : std::nullopt;
}

std::optional<milliseconds> to_left(std::int64_t ms) {
    return ms < 0 ? std::nullopt : std::optional<milliseconds>(ms);
}

std::optional<std::uint32_t> to_limit(const reply_view& value) {
    const auto number = value.to_integer();
    if (!number || *number < 1 || *number > most_permits) return std::nullopt;
    return static_cast<std::uint32_t>(*number);
}

std::size_t to_count(const reply_view& reply, std::size_t at) {
    const std::int64_t count = reply.size() > at ? reply[at].to_integer().value_or(0) : 0;
    return count < 0 ? 0 : static_cast<std::size_t>(count);
}

std::optional<milliseconds> to_cut(const reply_view& reply, std::size_t at) {
    return reply.size() > at ? to_left(reply[at].to_integer().value_or(-1)) : std::nullopt;
}

bool is_list(const reply_view& reply, std::size_t least) {
    return reply.type() == redis::resp_type::array && reply.size() >= least;
}

// The end of an answer about a marked id: ..., ceiling, waiters. False if they make no sense.
template <class Answer>
bool read_block(const reply_view& reply, std::size_t at, Answer& answer) {
    if (reply.size() < at + 2) return true;
    const auto ceiling = to_token(reply[at]);
    if (!ceiling || *ceiling == 0) return false;
    answer.ceiling = *ceiling;
    answer.waiters = to_count(reply, at + 1);
    return true;
}

// {0} or {-1, ms left, holder}: release, renew, cancel and raise share these.
std::optional<hold_answer> read_not_done(const reply_view& reply, std::int64_t code) {
    hold_answer answer;
    if (code == 0) return answer;
    if (code != -1 || reply.size() < 3) return std::nullopt;
    const auto left = reply[1].to_integer();
    if (!left) return std::nullopt;
    answer.what = hold_answer::verdict::held_by_other;
    answer.holder_left = to_left(*left);
    answer.holder = reply[2].text();
    return answer;
}

}  // namespace

std::optional<acquire_answer> read_acquire(const reply_view& reply) {
    using verdict = acquire_answer::verdict;
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    acquire_answer answer;
    if (code == -1) {
        answer.what = verdict::gone;
        return answer;
    }
    if (reply.size() < 2) return std::nullopt;
    if (code == 1) {
        const auto token = to_token(reply[1]);
        if (!token || *token == 0) return std::nullopt;
        answer.what = verdict::held;
        answer.token = *token;
        answer.clock = to_clock(reply, 2);
        answer.cut_to = to_cut(reply, 3);
        if (!read_block(reply, 4, answer) || (answer.ceiling != 0 && answer.ceiling < answer.token))
            return std::nullopt;
        return answer;
    }
    const auto left = reply[1].to_integer();
    if (!left || reply.size() < 3) return std::nullopt;
    answer.holder_left = to_left(*left);
    answer.holder = reply[2].text();
    if (code == 0) {
        if (reply.size() == 3) return answer;
        const auto why = to_reason(reply[3].text());
        if (!why) return std::nullopt;
        answer.why = *why;
        answer.is_kept = reply.size() > 4 && reply[4].text() == "kept";
        if (reply.size() > 5) answer.note = reply[5].text();
        if (*why >= acquire_answer::reason::other_limit) {
            const auto limit = reply.size() > 4 ? to_limit(reply[4]) : std::nullopt;
            if (!limit) return std::nullopt;
            answer.limit = *limit;
        }
        return answer;
    }
    if (code != 2 || reply.size() < 6) return std::nullopt;
    const auto position = reply[4].to_integer();
    const auto fence = to_token(reply[5]);
    if (!position || *position < 0 || !fence || reply[3].text().empty()) return std::nullopt;
    answer.what = verdict::queued;
    answer.ticket = reply[3].text();
    answer.position = static_cast<std::size_t>(*position);
    answer.fence = *fence;
    answer.soonest = answer.holder_left;
    if (reply.size() > 6) answer.soonest = to_left(reply[6].to_integer().value_or(-1));
    answer.clock = to_clock(reply, 7);
    answer.cut_to = to_cut(reply, 8);
    if (reply.size() > 9) answer.note = reply[9].text();
    return answer;
}

std::optional<hold_answer> read_release(const reply_view& reply) {
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code != 1) return code ? read_not_done(reply, *code) : std::nullopt;
    hold_answer answer;
    answer.what = hold_answer::verdict::done;
    answer.waiters = to_count(reply, 1);
    answer.holders = to_count(reply, 2);
    return answer;
}

std::optional<hold_answer> read_release_alone(const reply_view& reply) {
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code == 2) return hold_answer{.what = hold_answer::verdict::alone};
    return code ? read_not_done(reply, *code) : std::nullopt;
}

std::optional<hold_answer> read_hold(const reply_view& reply) {
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code != 1) return code ? read_not_done(reply, *code) : std::nullopt;
    hold_answer answer;
    answer.what = hold_answer::verdict::done;
    if (!read_block(reply, 4, answer)) return std::nullopt;
    if (reply.size() == 1 || (answer.ceiling != 0 && reply[1].text().empty())) return answer;  // of a mutex
    const auto held = shape_of(reply[1].text());
    const auto token = reply.size() > 2 ? to_token(reply[2]) : std::nullopt;
    if (!held || !token || *token == 0) return std::nullopt;
    answer.held = *held;
    answer.token = *token;
    answer.cut_to = to_cut(reply, 3);
    return answer;
}

std::optional<hold_answer> read_renew_alone(const reply_view& reply) {
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code == 3) return hold_answer{.what = hold_answer::verdict::unclear};
    return code == 1 && reply.size() > 1 ? read_hold(reply) : std::nullopt;
}

}  // namespace holdfast::wire
