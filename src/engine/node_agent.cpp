#include "engine/node_agent.hpp"

#include "engine/hold.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::engine {

namespace {

std::chrono::microseconds since_boot(instant when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch());
}

}  // namespace

const node_hold::requests_in_flight node_hold::none{};

node_agent::node_agent(node_agent_settings settings, const client_id& client, outbox& out, random_source& random,
                       counter& told)
    : settings_(std::move(settings)),
      client_(client),
      out_(out),
      random_(random),
      told_(told),
      wakes_(settings_.listens, client.text(), out) {}

node_agent::~node_agent() {
    node_holds_.clear();
}

wire::lock_terms node_agent::lock_of(const node_hold& b, instant now) const {
    const hold_terms& terms = terms_of(b);
    return {.keys = *terms.keys,
            .kind = terms.kind,
            .prefer = terms.prefer,
            .fence_retention = settings_.fence_retention,
            .proposal = told_.proposal(now)};
}

// The clock was read after the question was written and before it was answered. What it was taken for is put right only
// as far as that proves it wrong: an answer that took long proves little.
void node_agent::learn_clock(std::chrono::microseconds shown, instant asked, instant answered) {
    const std::chrono::microseconds least = shown - since_boot(answered);
    const std::chrono::microseconds most = shown - since_boot(asked);
    clock_at_boot_ = std::clamp(clock_at_boot_.value_or(least), least, most);
}

hold_id::spelled node_agent::id_of(const node_hold& b) const noexcept {
    return b.whole().id().spell(client_);
}

std::uint64_t node_agent::number_of(const node_hold& b) const noexcept {
    return b.whole().id().counter();
}

const hold_terms& node_agent::terms_of(const node_hold& b) const noexcept {
    return b.whole().terms();
}

// Whatever is due first, of a node_hold that is wanted or held.
void node_agent::set_timer(node_hold& b, instant now) {
    rest_if_idle(b);
    instant due = std::min(b.acquisition().limit.deadline, b.acquisition().poll_at);
    if (b.state_ == state::held) {
        const instant last_moment = b.valid_until_ - margin(terms_of(b).lease);
        const instant renewal_due = b.in_flight().renewing == nullptr ? std::max(b.renew_at_, now) : never;
        due = std::min({due, last_moment, renewal_due, b.in_flight().change_again_at, b.in_flight().raise_again_at});
    }
    if (due == never) {
        timers_.cancel(b);
    } else {
        timers_.set(b, due);
    }
}

node_hold::requests_in_flight& node_agent::busy(node_hold& b) {
    if (!b.in_flight_) b.in_flight_ = spare_in_flight_.take();
    return *b.in_flight_;
}

// A node_hold that is simply held has no in_flight, and needs no memory for them.
void node_agent::rest_if_idle(node_hold& b) noexcept {
    if (b.in_flight_ && b.in_flight_->idle()) spare_in_flight_.give_back(std::move(b.in_flight_));
}

call& node_agent::start_call(purpose what, node_hold& b) {
    if (idle_calls_.empty()) {
        calls_.push_back(std::make_unique<call>(*this));
        idle_calls_.push_back(calls_.back().get());
    }
    call& fresh = *idle_calls_.back();
    idle_calls_.pop_back();
    fresh.begin(what, b);
    if (call::renews(what)) ++renewals_under_way_;
    return fresh;
}

void node_agent::finish_call(call& finished) {
    if (call::renews(finished.what())) --renewals_under_way_;
    idle_calls_.push_back(&finished);
}

// Takes a call back if it was not written yet; otherwise its answer will go nowhere.
void node_agent::drop_call(node_hold& b, call* in_flight::*which) {
    if (!b.in_flight_) return;
    call* const dropped = std::exchange((*b.in_flight_).*which, nullptr);
    if (dropped == nullptr) return;
    dropped->orphan();
    if (out_.withdraw(*dropped)) finish_call(*dropped);
}

failure node_agent::classify(const redis::reply_view& error_reply) {
    failure why = redis::classify_error(error_reply.text(), settings_.server);
    if (spoils_link(why.code)) out_.distrust(why);
    return why;
}

refusal node_agent::nonsense() const {
    return {errc::protocol_error, settings_.server + ": a lock script was answered with something else", {}, {}};
}

void node_agent::on_link_up(const node_facts& facts, const lock_set& which, instant now) {
    was_reached_ = true;
    if (facts.clock) clock_at_boot_ = *facts.clock - since_boot(now);
    for (auto next = node_holds_.begin(); next != node_holds_.end();) {
        node_hold& b = *next++;  // first: asking may end it
        if (b.acquisition().at == stage::none || b.acquisition().at == stage::deferred || !which.has(keys_of(b)))
            continue;
        if (!is_trusted(b, now)) {
            // Asked before we knew what server would answer. Where the lock's slot has moved, the former one may run
            // it.
            if (drop_ask(b)) {
                mark_stray(b);
                busy(b).acquisition.may_have_run = true;
            }
            if (b.acquisition().at == stage::confirming) busy(b).acquisition.at = stage::queued;
            send_ask(b, now);
        } else if (is_written(b.in_flight().asking)) {
            busy(b).acquisition.asked_before = true;
        } else if (b.acquisition().at == stage::queued ||
                   (b.acquisition().at == stage::asking && !b.is_being_asked())) {
            // What was pushed while the link was down is gone: everyone in line asks where they stand. And whoever
            // waits to be able to trust the server finds that it is another one.
            poll(b, now);
        }
    }
    told_.links_changed(which, now);
}

void node_agent::on_link_down(const lock_set& which, instant now) {
    for (node_hold& b : node_holds_) {
        if ((!b.in_flight_ && !b.orphaned_ask_) || !which.has(keys_of(b))) continue;
        if (b.in_flight_) b.in_flight_->acquisition.polled_on_this_link = false;
        if (b.orphaned_ask_) mark_stray(b);
    }
    told_.links_changed(which, now);
}

void node_agent::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    wakes_.refused(which);
    for (auto next = node_holds_.begin(); next != node_holds_.end();) {
        node_hold& b = *next++;  // before refuse(), which may end it
        const bool waits = b.acquisition().at != stage::none && b.acquisition().limit.wait == waiting::in_queue;
        if (waits && which.has(keys_of(b))) {
            refuse(b, {why.code, why.detail, {}, {}}, now);
        }
    }
}

// ["message" or "smessage", channel, text], the text being "grant <hold id> <token> ...", as many as there are, "poll
// <hold id>", "revoked <hold id> <token>" or "recall <hold id> <token>".
void node_agent::on_push(const redis::reply_view& message, instant now) {
    if (message.size() < 3 || message[0].text() != wakes_.push_kind()) return;
    const std::string_view channel = message[1].text();
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
        node_hold* const found = find_waiter(id);
        node_hold* const meant = found != nullptr && wakes_.of(keys_of(*found)) == channel ? found : nullptr;
        if (verb == "poll") {
            if (meant != nullptr && meant->is_queued()) poll(*meant, now);
            return;
        }
        const std::string_view number = next_word();
        fencing_token token = 0;
        const auto [end, bad] = std::from_chars(number.data(), number.data() + number.size(), token);
        if (bad != std::errc() || end != number.data() + number.size()) return;
        if (verb == "revoked") return revoked({channel, id, token}, now);
        if (verb == "recall") return recalled({channel, id, token}, now);
        if (verb != "grant") return;
        if (meant != nullptr) believe_push(*meant, token, now);
    }
}

void node_agent::expect_push(node_hold& b) {
    if (b.expects_push_) return;
    waiters_.emplace(number_of(b), &b);
    b.expects_push_ = true;
    wakes_.enter(keys_of(b));
}

void node_agent::listen(node_hold& b) {
    expect_push(b);
    wakes_.subscribe(keys_of(b));
}

void node_agent::stop_listening(node_hold& b) {
    if (!b.expects_push_) return;
    waiters_.erase(number_of(b));
    b.expects_push_ = false;
    wakes_.leave(keys_of(b));
}

node_hold* node_agent::find_waiter(std::string_view id) const {
    const auto number = wire::counter_of(id);
    const auto found = number ? waiters_.find(*number) : waiters_.end();
    return found != waiters_.end() && std::string_view(id_of(*found->second)) == id ? found->second : nullptr;
}

// An operator has ended this grant. One that replicas are being asked about is not believed in yet: where it stands now
// is asked.
void node_agent::revoked(const pushed_grant& which, instant now) {
    for (node_hold& b : node_holds_) {
        const bool believed = is_token_of(b, which.token) && b.state_ == state::held;
        if (!believed && !is_confirming(b, which.token)) continue;
        if (!is_meant(b, which)) continue;
        return believed ? lose(b, errc::not_held, now) : ask_instead(b, now);
    }
}

// An operator wants this grant back, and waits for its holder to stop and release it.
void node_agent::recalled(const pushed_grant& which, instant now) {
    for (node_hold& b : node_holds_) {
        if (!is_token_of(b, which.token) || b.state_ != state::held || !is_meant(b, which)) continue;
        return told_.recalled(b, now);
    }
}

bool node_agent::is_meant(const node_hold& b, const pushed_grant& which) {
    return std::string_view(id_of(b)) == which.id && wakes_.of(keys_of(b)) == which.channel;
}

void node_agent::keep_listening(const lock_keys& lock) {
    wakes_.enter(lock);
    wakes_.subscribe(lock);
}

milliseconds node_agent::recovers_in(const lock_keys& lock, instant now) const {
    return std::chrono::ceil<milliseconds>(std::max(out_.trusted_from(lock) - now, std::chrono::nanoseconds(0)));
}

void node_agent::on_timer(instant now) {
    while (timed* const due = timers_.take_due(now)) {
        node_hold& b = static_cast<node_hold&>(*due);
        switch (b.state_) {
            case state::wanted:
                check_waiting(b, now);
                break;
            case state::held:
                check_holding(b, now);
                break;
            case state::leaving:
                check_leaving(b, now);
                break;
            case state::lost:
            case state::gone:
                break;
        }
    }
}

}  // namespace holdfast::engine
