#include "scripts/mutex.hpp"

#include "redis/command_writer.hpp"
#include "scripts/registry.hpp"

namespace holdfast::scripts::mutex {
namespace {

using redis::reply_view;

// A script's keys and arguments, numkeys first, one after the other.
class payload {
public:
    payload(redis::command& out, const script& source, std::uint32_t arguments)
        : writer_(out.script_payload(source, arguments), arguments, redis::command_writer::part::rest) {}

    payload& add(std::string_view text) {
        writer_.arg(text);
        return *this;
    }
    payload& add(std::int64_t number) {
        writer_.arg(number);
        return *this;
    }
    payload& add(milliseconds span) { return add(std::int64_t{span.count()}); }
    payload& add_token(std::uint64_t token) { return add(static_cast<std::int64_t>(token)); }
    payload& add(const lock_keys& keys) {
        return add(std::int64_t{4}).add(keys.lock).add(keys.queue).add(keys.waiters).add(keys.fence);
    }

private:
    redis::command_writer writer_;
};

std::optional<std::uint64_t> to_token(const reply_view& value) {
    // Beyond 2^53 Lua's numbers have gaps: no script of ours gives such a token, and it would poison our floor.
    constexpr std::int64_t end_of_tokens = std::int64_t{1} << 53;
    const auto number = value.to_integer();
    if (!number || *number < 0 || *number >= end_of_tokens) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
}

std::optional<milliseconds> to_left(std::int64_t ms) {
    return ms < 0 ? std::nullopt : std::optional<milliseconds>(ms);
}

bool is_list(const reply_view& reply, std::size_t least) {
    return reply.type() == redis::resp_type::array && reply.size() >= least;
}

}  // namespace

void write(redis::command& out, const lock_keys& keys, const acquire_question& question) {
    static const script& source = find("mutex/acquire");
    payload(out, source, 13)
        .add(keys)
        .add(question.id)
        .add(question.lease)
        .add_token(question.token_floor)
        .add(question.fence_retention)
        .add(question.channel)
        .add(question.ticket.empty() ? "0" : question.ticket)
        .add(question.poll_interval)
        .add(question.queue_retention);
}

void write(redis::command& out, const lock_keys& keys, const release_question& question) {
    static const script& source = find("mutex/release");
    payload(out, source, 8).add(keys).add(question.id).add_token(question.token).add(question.fence_retention);
}

void write(redis::command& out, const lock_keys& keys, const renew_question& question) {
    static const script& source = find("mutex/renew");
    payload(out, source, 4).add(std::int64_t{1}).add(keys.lock).add(question.id).add(question.lease);
}

std::optional<acquire_answer> read_acquire(const reply_view& reply) {
    using verdict = acquire_answer::verdict;
    if (!is_list(reply, 2)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code == 1) {
        const auto token = to_token(reply[1]);
        if (!token || *token == 0) return std::nullopt;
        return acquire_answer{.what = verdict::held, .token = *token, .holder_left = {}, .holder = {}, .ticket = {}};
    }
    const auto left = reply[1].to_integer();
    if (!left || reply.size() < 3) return std::nullopt;
    acquire_answer answer{
        .what = verdict::refused, .holder_left = to_left(*left), .holder = reply[2].text(), .ticket = {}};
    if (code == 0) return answer;
    if (code != 2 || reply.size() < 6) return std::nullopt;
    const auto place = reply[4].to_integer();
    const auto fence = to_token(reply[5]);
    if (!place || *place < 0 || !fence || reply[3].text().empty()) return std::nullopt;
    answer.what = verdict::queued;
    answer.ticket = reply[3].text();
    answer.place = static_cast<std::size_t>(*place);
    answer.fence = *fence;
    return answer;
}

std::optional<hold_answer> read_hold(const reply_view& reply) {
    using verdict = hold_answer::verdict;
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code == 1) {
        const std::int64_t waiters = reply.size() > 1 ? reply[1].to_integer().value_or(0) : 0;
        return hold_answer{
            .what = verdict::done, .holder_left = {}, .holder = {}, .waiters = static_cast<std::size_t>(waiters)};
    }
    if (code == 0) return hold_answer{.what = verdict::not_held, .holder_left = {}, .holder = {}};
    if (code != -1 || reply.size() < 3) return std::nullopt;
    const auto left = reply[1].to_integer();
    if (!left) return std::nullopt;
    return hold_answer{.what = verdict::held_by_other, .holder_left = to_left(*left), .holder = reply[2].text()};
}

}  // namespace holdfast::scripts::mutex
