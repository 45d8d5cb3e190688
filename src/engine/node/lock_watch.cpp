#include "engine/node/lock_watch.hpp"

#include "engine/node/parts.hpp"
#include "redis/resp/error_reply.hpp"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

// The node writes a watcher down for three of these.
constexpr milliseconds poll_interval{10'000};
// Where nobody can push.
constexpr milliseconds own_poll{250};
// Where the node has no room for another watcher, or refuses the subscription.
constexpr milliseconds untold_poll{1000};
constexpr milliseconds after_trouble{1000};
constexpr milliseconds after_deadline{2};

}  // namespace

bool is_same(const wire::watch_answer& a, const wire::watch_answer& b) {
    // The fence of a holder that can be asked back moves with its renewals.
    const bool same_grant = a.token == b.token || wire::mark_of(a.holder) != wire::mark::none;
    return a.holder == b.holder && a.note == b.note && (a.is_free() || same_grant);
}

lock_watch::lock_watch(node_agent& agent, std::shared_ptr<const lock_keys> keys, hold_id id,
                       std::shared_ptr<watch_listener> listener, telling what)
    : agent_(agent), keys_(std::move(keys)), id_(id), listener_(std::move(listener)), telling_(what) {}

bool lock_watch::has_id(std::string_view text) const noexcept {
    return std::string_view(id_.spell(agent_.client())) == text;
}

void lock_watch::ask(instant now) {
    if (!listener_) return;
    if (in_flight_) {
        again_ = true;
        return;
    }
    agent_.wakes().subscribe(*keys_);
    send(true, now);
}

void lock_watch::stop(instant now) {
    listener_.reset();
    agent_.watch_timers().cancel(*this);
    if (!in_flight_) send(false, now);  // otherwise the answer leads on
}

void lock_watch::on_link_down() {
    if (telling_ == telling::answers) tell_trouble({errc::unreachable, agent_.server()});
}

void lock_watch::on_subscription_refused(const failure& why, instant now) {
    if (!listener_) return;
    is_deaf_ = true;
    tell_trouble(why);
    if (!in_flight_) agent_.watch_timers().set(*this, now + untold_poll);
}

bool lock_watch::polls() {
    return is_deaf_ || agent_.node().wakes(agent_.wakes().of(*keys_)) == woken_by::poll;
}

void lock_watch::send(bool goes_on, instant now) {
    agent_.watch_timers().cancel(*this);
    again_ = false;
    in_flight_ = true;
    said_goodbye_ = !goes_on;
    const std::string& channel = agent_.wakes().of(*keys_);
    wire::write_watch(*this, *keys_,
                      {.id = id_.spell(agent_.client()),
                       .channel = !goes_on  ? std::string_view()
                                  : polls() ? wire::by_polls
                                            : std::string_view(channel),
                       .lasts = 3 * poll_interval});
    wait_for_first_link();
    give_up_at(now + agent_.settings().request_timeout);
    agent_.ask_watched(*this);
}

void lock_watch::on_reply(const redis::reply_view& reply, instant now) {
    if (reply.is_error()) {
        tell_trouble(redis::classify_error(reply.text(), agent_.server()));
        agent_.watch_timers().set(*this, now + after_trouble);
    } else if (auto seen = wire::read_watch(reply); seen && may_have_forgotten(*seen, now)) {
        tell_trouble({errc::recovering, agent_.server()});
        agent_.watch_timers().set(*this, now + after_trouble);
    } else if (seen) {
        if (is_deaf_ && agent_.node().hears(agent_.wakes().of(*keys_))) {
            is_deaf_ = false;
            again_ = true;  // the node has not written it down
        }
        was_told_trouble_ = is_deaf_;
        agent_.watch_timers().set(*this, now + next_poll(*seen));
        tell(std::move(*seen));
    } else {
        const refusal why = agent_.nonsense();
        tell_trouble({why.code, why.detail});
        agent_.watch_timers().set(*this, now + after_trouble);
    }
    ended(now);
}

void lock_watch::on_failure(const failure& why, instant now) {
    // A broken link says nothing about the lock; the next link asks again.
    if (why.code != errc::outcome_unknown) tell_trouble(why);
    agent_.watch_timers().set(*this, now + after_trouble);
    said_goodbye_ = true;  // what the node has written down ends by itself
    ended(now);
}

void lock_watch::ended(instant now) {
    in_flight_ = false;
    if (!listener_ && said_goodbye_) {
        agent_.watch_timers().cancel(*this);
        agent_.forget_watch(*this);
    } else if (!listener_) {
        send(false, now);
    } else if (again_) {
        ask(now);
    }
    agent_.todo().run(now);
}

void lock_watch::tell(wire::watch_answer seen) {
    if (!listener_) return;
    // The node may forget a token before the hold is over: it expired, or was evicted.
    if (seen.token == 0 && last_ && last_->holder == seen.holder) seen.token = last_->token;
    if (seen.is_free()) seen.token = std::max(seen.token, greatest_);
    if (seen.token != 0 && seen.token < greatest_) return;  // (2)
    greatest_ = std::max(greatest_, seen.token);
    if (telling_ == telling::changes && last_ && is_same(*last_, seen)) return;
    last_ = seen;
    agent_.todo().add(effects::sighted{this, agent_.todo().keep(std::move(seen))});
}

void lock_watch::tell_trouble(const failure& why) {
    // One node among several tells it each time: what it said before does not count any more.
    if (!listener_ || (std::exchange(was_told_trouble_, true) && telling_ == telling::changes)) return;
    agent_.todo().add(effects::watch_troubled{this, agent_.todo().keep(why)});
}

// One node among several that does not vote yet: that it has the lock free says nothing.
bool lock_watch::may_have_forgotten(const wire::watch_answer& seen, instant now) const {
    return telling_ == telling::answers && seen.is_free() && agent_.recovers_in(*keys_, now) > 0ms;
}

milliseconds lock_watch::next_poll(const wire::watch_answer& seen) {
    const bool is_foreign = !seen.is_free() && !is_ours(seen.holder);  // it announces nothing
    milliseconds usual = polls() || is_foreign ? own_poll : poll_interval;
    if (is_deaf_ || (seen.is_untold && !is_foreign)) usual = untold_poll;
    return seen.left ? std::min(usual, *seen.left + after_deadline) : usual;
}

}  // namespace holdfast::engine
