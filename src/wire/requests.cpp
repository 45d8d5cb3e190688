#include "wire/requests.hpp"

#include "redis/session/command_writer.hpp"
#include "wire/scripts.hpp"

#include <boost/container/static_vector.hpp>

namespace holdfast::wire {
namespace {

using redis::reply_view;

std::string_view word_of(preference chosen) {
    switch (chosen) {
        case preference::readers:
            return "readers";
        case preference::writers:
            return "writers";
        case preference::arrival:
            break;
    }
    return "arrival";
}

// A script's keys and arguments, numkeys first, one after the other.
class payload {
public:
    payload& add(const redis::argument& one) {
        all_.push_back(one);
        return *this;
    }
    payload& add(std::int64_t number) { return add(redis::argument::number(number)); }
    payload& add(milliseconds span) { return add(std::int64_t{span.count()}); }
    payload& add_token(std::uint64_t token) { return add(static_cast<std::int64_t>(token)); }
    payload& add(const lock_keys& keys, lock_keys::side which) { return add(keys.argument_for(which)); }
    payload& add_mutex_keys(const lock_keys& keys) {
        return add(std::int64_t{keys.is_raw() ? 5 : 4}).add_common_keys(keys).add_gap_key(keys);
    }
    // All read-write scripts begin alike.
    payload& begin_read_write(const lock_terms& lock, std::string_view id) {
        add(std::int64_t{lock.keys.is_raw() ? 7 : 6}).add_common_keys(lock.keys);
        add(lock.keys, lock_keys::side::leases).add(lock.keys, lock_keys::side::grants).add_gap_key(lock.keys);
        return add(id).add(lock.fence_retention).add(word_of(lock.prefer));
    }

    payload& add_yield(const lock_keys& keys, milliseconds after) { return keys.is_raw() ? add(after) : *this; }

    void write(redis::command& out, const script& source) const {
        redis::append_arguments(out.script_payload(source, static_cast<std::uint32_t>(all_.size())), all_);
    }

private:
    payload& add_common_keys(const lock_keys& keys) {
        using side = lock_keys::side;
        return add(keys.lock()).add(keys, side::queue).add(keys, side::waiters).add(keys, side::fence);
    }

    payload& add_gap_key(const lock_keys& keys) { return keys.is_raw() ? add(keys, lock_keys::side::gap) : *this; }

    static constexpr std::size_t most = 21;  // as rw/acquire has
    boost::container::static_vector<redis::argument, most> all_;
};

std::string_view word_of(wish wants) {
    switch (wants) {
        case wish::read:
            return "r";
        case wish::upgrade:
            return "u";
        case wish::write:
            break;
    }
    return "w";
}

std::string_view word_of(shape held) {
    switch (held) {
        case shape::nothing:
            return "";
        case shape::reading:
            return "r";
        case shape::writing:
            return "w";
        case shape::both:
            break;
    }
    return "b";
}

std::optional<shape> to_shape(std::string_view word) {
    for (const shape one : {shape::reading, shape::writing, shape::both}) {
        if (word == word_of(one)) return one;
    }
    return std::nullopt;
}

std::optional<acquire_answer::reason> to_reason(std::string_view word) {
    using reason = acquire_answer::reason;
    constexpr std::pair<std::string_view, reason> known[] = {{"reading", reason::reading},
                                                             {"writing", reason::writing},
                                                             {"reserved", reason::reserved},
                                                             {"deadlock", reason::deadlock},
                                                             {"mode", reason::other_mode}};
    for (const auto& [name, why] : known) {
        if (word == name) return why;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> to_token(const reply_view& value) {
    // Beyond 2^53 Lua's numbers have gaps: no script of ours gives such a token, and it would poison our floor.
    constexpr std::int64_t end_of_tokens = std::int64_t{1} << 53;
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

// {0} or {-1, ms left, holder}, as all of release, renew and cancel have it.
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

hold_answer only(hold_answer::verdict what) {
    hold_answer answer;
    answer.what = what;
    return answer;
}

}  // namespace

void write(redis::command& out, const lock_terms& lock, const acquire_request& question) {
    const std::string_view ticket = question.ticket.empty() ? "0" : question.ticket;
    if (lock.kind == lock_kind::mutex) {
        static const script& source = find("mutex/acquire");
        payload()
            .add_mutex_keys(lock.keys)
            .add(question.id)
            .add(question.lease)
            .add_token(question.token_floor)
            .add(lock.fence_retention)
            .add(question.channel)
            .add(ticket)
            .add(question.poll_interval)
            .add(question.queue_retention)
            .add_token(lock.proposal)
            .add_token(question.gives_way)
            .write(out, source);
        return;
    }
    static const script& source = find("rw/acquire");
    payload()
        .begin_read_write(lock, question.id)
        .add(word_of(question.wants))
        .add(question.lease)
        .add_token(question.token_floor)
        .add(question.channel)
        .add(ticket)
        .add(question.poll_interval)
        .add(question.queue_retention)
        .add_token(question.upgrading)
        .add_token(lock.proposal)
        .add_token(question.gives_way)
        .write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const release_request& question) {
    if (lock.kind == lock_kind::mutex) {
        static const script& source = find("mutex/release");
        payload()
            .add_mutex_keys(lock.keys)
            .add(question.id)
            .add_token(question.token)
            .add(lock.fence_retention)
            .add_token(lock.proposal)
            .add_yield(lock.keys, question.yield_after)
            .write(out, source);
        return;
    }
    static const script& source = find("rw/release");
    payload()
        .begin_read_write(lock, question.id)
        .add_token(question.token)
        .add(word_of(question.left_over))
        .add(question.lease)
        .add_token(lock.proposal)
        .add_yield(lock.keys, question.yield_after)
        .write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const renew_request& question) {
    if (lock.kind == lock_kind::mutex) {
        static const script& source = find("mutex/renew");
        payload().add(std::int64_t{1}).add(lock.keys.lock()).add(question.id).add(question.lease).write(out, source);
        return;
    }
    static const script& source = find("rw/renew");
    payload().begin_read_write(lock, question.id).add(question.lease).add_token(lock.proposal).write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const release_alone_request& question) {
    static const script& source = find("mutex/release_alone");
    payload().add(std::int64_t{1}).add(lock.keys.lock()).add(question.id).write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const renew_alone_request& question) {
    static const script& source = find("rw/renew_alone");
    payload()
        .add(std::int64_t{3})
        .add(lock.keys.lock())
        .add(lock.keys, lock_keys::side::leases)
        .add(lock.keys, lock_keys::side::grants)
        .add(question.id)
        .add(question.lease)
        .write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const cancel_request& question) {
    static const script& source = find("rw/cancel");
    payload().begin_read_write(lock, question.id).add_token(lock.proposal).write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const raise_request& question) {
    if (lock.kind == lock_kind::mutex) {
        static const script& source = find("mutex/raise");
        payload()
            .add_mutex_keys(lock.keys)
            .add(question.id)
            .add_token(question.token)
            .add_token(question.to)
            .add(lock.fence_retention)
            .write(out, source);
        return;
    }
    static const script& source = find("rw/raise");
    payload().begin_read_write(lock, question.id).add_token(question.token).add_token(question.to).write(out, source);
}

void write(redis::command& out, const lock_terms& lock, const confirm_request& question) {
    if (lock.kind == lock_kind::mutex) {
        static const script& source = find("mutex/confirm");
        if (question.token == 0) {
            payload().add(std::int64_t{1}).add(lock.keys.lock()).add(question.id).write(out, source);
            return;
        }
        payload()
            .add(std::int64_t{2})
            .add(lock.keys.lock())
            .add(lock.keys, lock_keys::side::fence)
            .add(question.id)
            .add_token(question.token)
            .write(out, source);
        return;
    }
    static const script& source = find("rw/confirm");
    payload()
        .add(std::int64_t{3})
        .add(lock.keys.lock())
        .add(lock.keys, lock_keys::side::leases)
        .add(lock.keys, lock_keys::side::grants)
        .add(question.id)
        .add_token(question.token)
        .write(out, source);
}

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
        return answer;
    }
    if (code != 2 || reply.size() < 6) return std::nullopt;
    const auto place = reply[4].to_integer();
    const auto fence = to_token(reply[5]);
    if (!place || *place < 0 || !fence || reply[3].text().empty()) return std::nullopt;
    answer.what = verdict::queued;
    answer.ticket = reply[3].text();
    answer.place = static_cast<std::size_t>(*place);
    answer.fence = *fence;
    answer.soonest = answer.holder_left;
    if (reply.size() > 6) answer.soonest = to_left(reply[6].to_integer().value_or(-1));
    answer.clock = to_clock(reply, 7);
    answer.cut_to = to_cut(reply, 8);
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
    if (code == 2) return only(hold_answer::verdict::alone);
    return code ? read_not_done(reply, *code) : std::nullopt;
}

std::optional<hold_answer> read_hold(const reply_view& reply) {
    if (!is_list(reply, 1)) return std::nullopt;
    const auto code = reply[0].to_integer();
    if (code != 1) return code ? read_not_done(reply, *code) : std::nullopt;
    hold_answer answer;
    answer.what = hold_answer::verdict::done;
    if (reply.size() == 1) return answer;  // a mutex
    const auto held = to_shape(reply[1].text());
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
    if (code == 3) return only(hold_answer::verdict::unclear);
    return code == 1 && reply.size() > 1 ? read_hold(reply) : std::nullopt;
}

}  // namespace holdfast::wire
