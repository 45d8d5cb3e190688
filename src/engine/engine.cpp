#include "engine/engine.hpp"

#include "base/assert.hpp"
#include "redis/error_reply.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

namespace holdfast::engine {

engine::engine(engine_settings settings, outbox& out, random_source& random, observer& watcher)
    : settings_(std::move(settings)), out_(out), random_(random), watcher_(watcher), client_(random) {}

engine::~engine() = default;

std::size_t engine::owned_lock_hash::operator()(const owned_lock& key) const noexcept {
    const auto owner = std::hash<std::uint64_t>{}(static_cast<std::uint64_t>(key.owner));
    return std::hash<std::string>{}(key.lock) ^ (owner * 0x9e3779b97f4a7c15U);
}

hold* engine::find(owner_id owner, const lock_keys& keys) {
    if (owner == owner_id::nobody) return nullptr;
    const auto found = owned_.find(owned_lock{owner, keys.lock});
    return found == owned_.end() ? nullptr : found->second;
}

scripts::lock_terms engine::lock_of(const hold& h) const noexcept {
    return {.keys = *h.terms_.keys,
            .kind = h.terms_.kind,
            .prefer = h.terms_.prefer,
            .fence_retention = settings_.fence_retention};
}

// Whatever is due first, of a hold that is wanted or held.
void engine::set_timer(hold& h, instant now) {
    instant due = std::min(h.quest_.limit.deadline, h.quest_.poll_at);
    if (h.state_ == state::held) {
        const instant last_moment = h.valid_until_ - margin(h.terms_.lease);
        const instant renewal_due = h.renewing_ == nullptr ? std::max(h.renew_at_, now) : never;
        due = std::min({due, last_moment, renewal_due, h.answer_renew_by_, h.answer_change_by_, h.change_again_at_});
    }
    if (due == never) {
        timers_.cancel(h);
    } else {
        timers_.set(h, due);
    }
}

call& engine::start_call(purpose what, hold& h) {
    if (idle_calls_.empty()) {
        calls_.push_back(std::make_unique<call>(*this));
        idle_calls_.push_back(calls_.back().get());
    }
    call& fresh = *idle_calls_.back();
    idle_calls_.pop_back();
    fresh.begin(what, h);
    return fresh;
}

void engine::finish_call(call& finished) {
    idle_calls_.push_back(&finished);
}

// Takes a call back if it was not written yet; otherwise its answer will go nowhere.
void engine::drop_call(call*& under_way) {
    call* const dropped = std::exchange(under_way, nullptr);
    if (dropped == nullptr) return;
    dropped->orphan();
    if (out_.withdraw(*dropped)) finish_call(*dropped);
}

void engine::forget(hold& h) {
    drop_call(h.asking_);
    drop_call(h.renewing_);
    drop_call(h.changing_);
    drop_call(h.leaving_);
    timers_.cancel(h);
    in_line_.erase(h.id_.text());
    const auto owned = h.terms_.owner == owner_id::nobody
                           ? owned_.end()
                           : owned_.find(owned_lock{h.terms_.owner, h.terms_.keys->lock});
    if (owned != owned_.end() && owned->second == &h) owned_.erase(owned);
    HOLDFAST_ASSERT(h.quest_.request == nullptr && h.release_ == nullptr && h.renew_ == nullptr &&
                    h.change_ == nullptr);
    holds_.erase(h.self_);
}

failure engine::classify(const redis::reply_view& error_reply) {
    failure why = redis::classify_error(error_reply.text(), settings_.server);
    if (redis::spoils_link(why.code)) out_.distrust(why);
    return why;
}

refusal engine::nonsense() const {
    return {errc::protocol_error, settings_.server + ": a lock script was answered with something else", {}, {}};
}

void engine::abandon(owner_id owner) {
    std::vector<hold*> left;
    for (const auto& [key, held] : owned_) {
        if (key.owner == owner) left.push_back(held);
    }
    for (hold* const held : left) {
        if (held->state_ == state::held) lose(*held, errc::not_held);
        forget(*held);
    }
}

void engine::on_link_up(instant trusted_from, instant now) {
    trusted_from_ = trusted_from;
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // first: asking may end it
        if (h.quest_.at == stage::none || h.quest_.at == stage::deferred) continue;
        if (now < trusted_from_) {
            // Asked before we knew what server would answer, and not written yet.
            drop_call(h.asking_);
            ask(h, now);
        } else if (h.quest_.at == stage::in_line) {
            // What was pushed while the link was down is gone: everyone in line asks where they stand.
            poll(h, now);
        }
    }
}

void engine::on_link_down(instant) {
    for (hold& h : holds_) {
        h.quest_.polled_on_this_link = false;
        if (h.orphaned_ask_) mark_stray(h);
    }
}

void engine::on_subscription_refused(const failure& why, instant now) {
    subscribed_ = false;  // the next who wants to wait tries again: rights may have been given meanwhile
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // before refuse(), which may erase it
        if (h.quest_.at != stage::none && h.quest_.limit.wait == waiting::in_line)
            refuse(h, {why.code, why.detail, {}, {}}, now);
    }
}

// ["message", channel, text], the text being "grant <hold id> <token> ...", as many as there are, "poll <hold id>" or
// "revoked <hold id> <token>".
void engine::on_push(const redis::reply_view& message, instant now) {
    if (message.size() < 3 || message[0].text() != "message" || message[1].text() != channel()) return;
    std::string_view text = message[2].text();
    const auto next_word = [&text] {
        const auto end = text.find(' ');
        const std::string_view word = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        return word;
    };
    const std::string_view verb = next_word();
    while (!text.empty()) {
        const std::string_view id = next_word();
        const auto found = in_line_.find(id);
        if (verb == "poll") {
            if (found != in_line_.end() && found->second->quest_.at == stage::in_line) poll(*found->second, now);
            return;
        }
        const std::string_view number = next_word();
        fencing_token token = 0;
        const auto [end, bad] = std::from_chars(number.data(), number.data() + number.size(), token);
        if (bad != std::errc() || end != number.data() + number.size()) return;
        if (verb == "revoked") return revoked(id, token);
        if (verb != "grant") return;
        if (found != in_line_.end()) believe_push(*found->second, token, now);
    }
}

// An operator has ended this grant.
void engine::revoked(std::string_view id, fencing_token token) {
    for (hold& h : holds_) {
        if (h.id_.text() == id && h.token_ == token && h.state_ == state::held) return lose(h, errc::not_held);
    }
}

void engine::on_timer(instant now) {
    while (timed* const due = timers_.take_due(now)) {
        hold& h = static_cast<hold&>(*due);
        switch (h.state_) {
            case state::wanted:
                check_waiting(h, now);
                break;
            case state::held:
                check_holding(h, now);
                break;
            case state::leaving:
                check_leaving(h, now);
                break;
            case state::lost:
                break;
        }
    }
}

}  // namespace holdfast::engine
