#include "scripts/mutex.hpp"

#include "redis/command_writer.hpp"
#include "scripts/registry.hpp"

#include <array>
#include <charconv>

namespace holdfast::scripts::mutex {
namespace {

using redis::reply_view;

// Appends arguments to a script's payload, numkeys first.
class payload {
public:
    payload(redis::command& out, const script& source, std::uint32_t arguments)
        : bytes_(out.script_payload(source, arguments)) {}

    payload& add(std::string_view text) {
        append_length('$', text.size());
        bytes_ += text;
        bytes_ += "\r\n";
        return *this;
    }
    template <typename Number>
    requires std::integral<Number> payload& add(Number number) {
        std::array<char, 24> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
        return add(std::string_view(digits.data(), end));
    }
    payload& add(milliseconds span) { return add(span.count()); }

private:
    void append_length(char mark, std::size_t length) {
        std::array<char, 24> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), length).ptr;
        bytes_ += mark;
        bytes_.append(digits.data(), end);
        bytes_ += "\r\n";
    }

    std::string& bytes_;
};

payload& add_keys(payload& out, const lock_keys& keys) {
    return out.add(4).add(keys.lock).add(keys.queue).add(keys.waiters).add(keys.fence);
}

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
    payload args(out, source, 13);
    add_keys(args, keys)
        .add(question.id)
        .add(question.lease)
        .add(question.token_floor)
        .add(question.fence_retention)
        .add(question.channel)
        .add(question.ticket.empty() ? "0" : question.ticket)
        .add(question.poll_interval)
        .add(question.queue_retention);
}

void write(redis::command& out, const lock_keys& keys, const release_question& question) {
    static const script& source = find("mutex/release");
    payload args(out, source, 8);
    add_keys(args, keys).add(question.id).add(question.token).add(question.fence_retention);
}

void write(redis::command& out, const lock_keys& keys, const renew_question& question) {
    static const script& source = find("mutex/renew");
    payload(out, source, 4).add(1).add(keys.lock).add(question.id).add(question.lease);
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
