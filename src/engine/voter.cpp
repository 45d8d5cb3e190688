#include "engine/voter.hpp"

#include "engine/hold.hpp"
#include "redis/error_reply.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::engine {

namespace {

std::chrono::microseconds since_boot(instant when) {
    return std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch());
}

}  // namespace

const ballot::errands_state ballot::none{};

voter::voter(voter_settings settings, const client_id& client, outbox& out, random_source& random, counter& told)
    : settings_(std::move(settings)),
      client_(client),
      out_(out),
      random_(random),
      told_(told),
      wakes_(settings_.listens, client.text(), out) {}

voter::~voter() {
    ballots_.clear();
}

scripts::lock_terms voter::lock_of(const ballot& b, instant now) const {
    const hold_terms& terms = terms_of(b);
    return {.keys = *terms.keys,
            .kind = terms.kind,
            .prefer = terms.prefer,
            .fence_retention = settings_.fence_retention,
            .proposal = told_.proposal(now)};
}

// The clock was read after the question was written and before it was answered. What it was taken for is put right only
// as far as that proves it wrong: an answer that took long proves little.
void voter::learn_clock(std::chrono::microseconds shown, instant asked, instant answered) {
    const std::chrono::microseconds least = shown - since_boot(answered);
    const std::chrono::microseconds most = shown - since_boot(asked);
    clock_at_boot_ = std::clamp(clock_at_boot_.value_or(least), least, most);
}

hold_id::spelled voter::id_of(const ballot& b) const noexcept {
    return b.whole().id().spell(client_);
}

std::uint64_t voter::number_of(const ballot& b) const noexcept {
    return b.whole().id().counter();
}

const hold_terms& voter::terms_of(const ballot& b) const noexcept {
    return b.whole().terms();
}

// Whatever is due first, of a ballot that is wanted or held.
void voter::set_timer(ballot& b, instant now) {
    rest_if_idle(b);
    instant due = std::min(b.quest().limit.deadline, b.quest().poll_at);
    if (b.state_ == state::held) {
        const instant last_moment = b.valid_until_ - margin(terms_of(b).lease);
        const instant renewal_due = b.errands().renewing == nullptr ? std::max(b.renew_at_, now) : never;
        due = std::min({due, last_moment, renewal_due, b.errands().change_again_at, b.errands().raise_again_at});
    }
    if (due == never) {
        timers_.cancel(b);
    } else {
        timers_.set(b, due);
    }
}

ballot::errands_state& voter::busy(ballot& b) {
    if (!b.errands_) b.errands_ = spare_errands_.take();
    return *b.errands_;
}

// A ballot that is simply held has no errands, and needs no memory for them.
void voter::rest_if_idle(ballot& b) noexcept {
    if (b.errands_ && b.errands_->idle()) spare_errands_.give_back(std::move(b.errands_));
}

call& voter::start_call(purpose what, ballot& b) {
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

void voter::finish_call(call& finished) {
    if (call::renews(finished.what())) --renewals_under_way_;
    idle_calls_.push_back(&finished);
}

// Takes a call back if it was not written yet; otherwise its answer will go nowhere.
void voter::drop_call(ballot& b, call* errands::*which) {
    if (!b.errands_) return;
    call* const dropped = std::exchange((*b.errands_).*which, nullptr);
    if (dropped == nullptr) return;
    dropped->orphan();
    if (out_.withdraw(*dropped)) finish_call(*dropped);
}

failure voter::classify(const redis::reply_view& error_reply) {
    failure why = redis::classify_error(error_reply.text(), settings_.server);
    if (redis::spoils_link(why.code)) out_.distrust(why);
    return why;
}

refusal voter::nonsense() const {
    return {errc::protocol_error, settings_.server + ": a lock script was answered with something else", {}, {}};
}

void voter::on_link_up(const node_facts& facts, const lock_set& which, instant now) {
    was_reached_ = true;
    if (facts.clock) clock_at_boot_ = *facts.clock - since_boot(now);
    for (auto next = ballots_.begin(); next != ballots_.end();) {
        ballot& b = *next++;  // first: asking may end it
        if (b.quest().at == stage::none || b.quest().at == stage::deferred || !which.has(keys_of(b))) continue;
        if (!is_trusted(b, now)) {
            // Asked before we knew what server would answer. Where the lock's slot has moved, the former one may run
            // it.
            if (drop_ask(b)) {
                mark_stray(b);
                busy(b).quest.may_have_run = true;
            }
            if (b.quest().at == stage::confirming) busy(b).quest.at = stage::in_line;
            send_ask(b, now);
        } else if (is_written(b.errands().asking)) {
            busy(b).quest.asked_before = true;
        } else if (b.quest().at == stage::in_line || (b.quest().at == stage::asking && !b.is_being_asked())) {
            // What was pushed while the link was down is gone: everyone in line asks where they stand. And whoever
            // waits to be able to trust the server finds that it is another one.
            poll(b, now);
        }
    }
    told_.links_changed(which, now);
}

void voter::on_link_down(const lock_set& which, instant now) {
    for (ballot& b : ballots_) {
        if ((!b.errands_ && !b.orphaned_ask_) || !which.has(keys_of(b))) continue;
        if (b.errands_) b.errands_->quest.polled_on_this_link = false;
        if (b.orphaned_ask_) mark_stray(b);
    }
    told_.links_changed(which, now);
}

void voter::on_subscription_refused(const failure& why, const lock_set& which, instant now) {
    wakes_.refused(which);
    for (auto next = ballots_.begin(); next != ballots_.end();) {
        ballot& b = *next++;  // before refuse(), which may end it
        const bool waits = b.quest().at != stage::none && b.quest().limit.wait == waiting::in_line;
        if (waits && which.has(keys_of(b))) {
            refuse(b, {why.code, why.detail, {}, {}}, now);
        }
    }
}

// ["message" or "smessage", channel, text], the text being "grant <hold id> <token> ...", as many as there are, "poll
// <hold id>", "revoked <hold id> <token>" or "recall <hold id> <token>".
void voter::on_push(const redis::reply_view& message, instant now) {
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
        ballot* const found = find_in_line(id);
        ballot* const meant = found != nullptr && wakes_.of(keys_of(*found)) == channel ? found : nullptr;
        if (verb == "poll") {
            if (meant != nullptr && meant->in_line()) poll(*meant, now);
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

void voter::expect_push(ballot& b) {
    if (b.expects_push_) return;
    in_line_.emplace(number_of(b), &b);
    b.expects_push_ = true;
    wakes_.enter(keys_of(b));
}

void voter::listen(ballot& b) {
    expect_push(b);
    wakes_.subscribe(keys_of(b));
}

void voter::stop_listening(ballot& b) {
    if (!b.expects_push_) return;
    in_line_.erase(number_of(b));
    b.expects_push_ = false;
    wakes_.leave(keys_of(b));
}

ballot* voter::find_in_line(std::string_view id) const {
    const auto number = counter_of(id);
    const auto found = number ? in_line_.find(*number) : in_line_.end();
    return found != in_line_.end() && std::string_view(id_of(*found->second)) == id ? found->second : nullptr;
}

// An operator has ended this grant. One that replicas are being asked about is not believed in yet: where it stands now
// is asked.
void voter::revoked(const pushed_grant& which, instant now) {
    for (ballot& b : ballots_) {
        const bool believed = is_token_of(b, which.token) && b.state_ == state::held;
        if (!believed && !is_confirming(b, which.token)) continue;
        if (!is_meant(b, which)) continue;
        return believed ? lose(b, errc::not_held, now) : ask_instead(b, now);
    }
}

// An operator wants this grant back, and waits for its holder to stop and release it.
void voter::recalled(const pushed_grant& which, instant now) {
    for (ballot& b : ballots_) {
        if (!is_token_of(b, which.token) || b.state_ != state::held || !is_meant(b, which)) continue;
        return told_.recalled(b, now);
    }
}

bool voter::is_meant(const ballot& b, const pushed_grant& which) {
    return std::string_view(id_of(b)) == which.id && wakes_.of(keys_of(b)) == which.channel;
}

void voter::keep_listening(const lock_keys& lock) {
    wakes_.enter(lock);
    wakes_.subscribe(lock);
}

milliseconds voter::recovers_in(const lock_keys& lock, instant now) const {
    return std::chrono::ceil<milliseconds>(std::max(out_.trusted_from(lock) - now, std::chrono::nanoseconds(0)));
}

void voter::on_timer(instant now) {
    while (timed* const due = timers_.take_due(now)) {
        ballot& b = static_cast<ballot&>(*due);
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
