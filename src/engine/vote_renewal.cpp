// Keeping a vote: the watchdog, and telling when it is lost.
//
// While a Cluster moves the lock's slot, a mutex is renewed as always: that needs one key. A read-write lock is renewed
// with those of its keys that are there whenever it is held. That one is repeated below us for the moments in which
// even these are at two places. If something is unclear then, the renewal in full has to wait for the end of the move.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using wire::hold_answer;

// Other programs that share a read-write lock set one expiry for all. If that is over before our next renewal restores
// it, the hold is lost: so renewals come at a third of the shortest such expiry that was seen. Before one was seen, it
// is taken to be go-redislock's, whose hash it is.
constexpr milliseconds usual_foreign_ttl{5000};
// What was seen is what was left of an expiry, which may be next to nothing: no more renewals than these.
constexpr milliseconds shortest_foreign_pace{100};

// A renewal that failed for a reason that may pass is tried again after this part of the lease.
constexpr int retry_part = 10;

// Down to a common beat, so that the renewals of many holds go out together and wake nobody one by one.
instant on_the_beat(instant exactly, std::chrono::nanoseconds pace) {
    const auto beat = std::max(pace / 1000, std::chrono::nanoseconds(1));
    return exactly - exactly.time_since_epoch() % beat;
}

}  // namespace

// How long after the last proof the next renewal is due.
std::chrono::nanoseconds node_agent::renewal_pace(const node_hold& b) const {
    const hold_terms& terms = terms_of(b);
    milliseconds ttl = b.foreign_ttl_;
    if (terms.kind == lock_kind::read_write && terms.keys->is_raw()) ttl = std::min(ttl, usual_foreign_ttl);
    const milliseconds third = terms.lease / 3;
    return ttl < terms.lease ? std::min(third, std::max(ttl / 3, shortest_foreign_pace)) : third;
}

void node_agent::note_foreign_ttl(node_hold& b, std::optional<milliseconds> cut_to) {
    if (cut_to) b.foreign_ttl_ = std::min(b.foreign_ttl_, *cut_to);
}

void node_agent::extend_validity(node_hold& b, instant proved_at) {
    const hold_terms& terms = terms_of(b);
    b.valid_until_ = std::max(b.valid_until_, proved_at + terms.lease - drift(terms.lease));
    if (terms.renewing == renewal::automatic && b.kept_) {
        // A third of the lease, less up to a tenth of that, so that holds taken together do not renew together.
        const std::chrono::nanoseconds pace = renewal_pace(b);
        const auto jitter = static_cast<std::uint64_t>(pace.count()) / 10;
        const instant exactly =
            proved_at + pace - std::chrono::nanoseconds(static_cast<std::int64_t>(random_.next() % (jitter + 1)));
        b.renew_at_ = on_the_beat(exactly, pace);
    }
}

void node_agent::check_holding(node_hold& b, instant now) {
    if (now >= b.valid_until_ - margin(terms_of(b).lease)) return lose(b, errc::lost, now);
    if (now >= b.renew_at_ && b.in_flight().renewing == nullptr) renew_when_due(b, now);
    check_change(b, now);
    if (now >= b.in_flight().raise_again_at) send_raise(b, now);
    set_timer(b, now);
    if (b.acquisition().at != stage::none) check_waiting(b, now);
}

// Holds that were taken within a moment are to be renewed within a moment. If that is more than the node can do just
// then, some give way, or thousands of questions pile up here: by an eighth of the lease at most.
void node_agent::renew_when_due(node_hold& b, instant now) {
    const milliseconds lease = terms_of(b).lease;
    const instant proved_at = b.valid_until_ - lease + drift(lease);
    const std::chrono::nanoseconds pace = renewal_pace(b);
    const instant latest = on_the_beat(proved_at + pace + pace * 3 / 8, pace);
    if (renewals_under_way_ < settings_.most_renewals || now >= latest) return send_renewal(b, now);
    const auto room = static_cast<std::uint64_t>(std::chrono::nanoseconds(latest - now).count());
    const std::chrono::nanoseconds least = pace * 3 / 128;
    const std::chrono::nanoseconds chance(static_cast<std::int64_t>(random_.next() % room));
    b.renew_at_ = std::min(latest, on_the_beat(now + least + chance, pace));
}

void node_agent::let_run_out(node_hold& b, instant now) {
    if (b.acquisition().at != stage::none) give_up(b, now);
    if (b.state_ != state::held) return;
    drop_call(b, &in_flight::renewing);
    b.kept_ = false;
    b.renew_at_ = never;
    set_timer(b, now);
}

void node_agent::renew(node_hold& b, instant now) {
    if (b.in_flight().renewing == nullptr) send_renewal(b, now);
    set_timer(b, now);
}

void node_agent::send_renewal(node_hold& b, instant now, purpose how_asked) {
    const hold_terms& terms = terms_of(b);
    call& question = start_call(how_asked, b);
    if (how_asked == purpose::renew_alone) {
        wire::write(question, lock_of(b, now), wire::renew_alone_request{.id = id_of(b), .lease = terms.lease});
    } else {
        wire::write(question, lock_of(b, now), wire::renew_request{.id = id_of(b), .lease = terms.lease});
    }
    if (how_asked == purpose::renew) question.tell_if_moving();
    if (how_asked != purpose::renew_again) question.pass_others();
    // What was unclear may be plain by then.
    const bool waits = how_asked == purpose::renew_again;
    question.give_up_at(waits ? std::min(b.valid_until_, now + terms.lease / retry_part) : b.valid_until_);
    busy(b).renewing = &question;
    out_.submit(question);
}

void node_agent::answered_renew(node_hold& b, const call& asked, const redis::reply_view& reply, instant now) {
    if (b.state_ != state::held) return;
    const bool was_alone = asked.what() == purpose::renew_alone;
    if (reply.is_error()) {
        const failure why = classify(reply);
        const bool goes_alone = why.code == errc::moving && terms_of(b).kind == lock_kind::read_write && !was_alone;
        return goes_alone ? send_renewal(b, now, purpose::renew_alone) : failed_renew(b, why, now);
    }
    const auto answer = was_alone ? wire::read_renew_alone(reply) : wire::read_hold(reply);
    if (!answer) return failed_renew(b, {nonsense().code, nonsense().detail}, now);
    // A slot that moves back and forth: the member to which it is moving again may not have the key yet.
    const bool is_loss =
        answer->what == hold_answer::verdict::not_held || answer->what == hold_answer::verdict::held_by_other;
    if (is_loss && asked.was_redirected() && asked.what() == purpose::renew) {
        return send_renewal(b, now, purpose::renew_again);
    }
    switch (answer->what) {
        case hold_answer::verdict::done:
            return found_held(b, asked, *answer, now);
        case hold_answer::verdict::not_held:
            return lose(b, errc::not_held, now);
        case hold_answer::verdict::held_by_other:
            return lose(b, errc::held_by_other, now);
        case hold_answer::verdict::unclear:
            return send_renewal(b, now, purpose::renew_again);
        case hold_answer::verdict::alone:
            break;  // the answer to another question
    }
}

void node_agent::found_held(node_hold& b, const call& asked, const hold_answer& answer, instant now) {
    // Never revived, not even by an answer that was late.
    if (ran_out(b, now)) return lose(b, errc::lost, now);
    const instant proved_at = asked.written_at();
    note_foreign_ttl(b, answer.cut_to);
    if (!wants_replicas(b)) extend_validity(b, proved_at);
    notice(b, answer, now);
    if (b.state_ != state::held) return;
    if (wants_replicas(b)) {
        confirm_renewal(b, {.token = answer.token, .at = proved_at}, now);
    } else {
        tell_renewed(b, now);
    }
    // The upgrade that is waited for has come: the script that served the line tells its caller only by this. Not so by
    // the old token: that is the answer of the lock's former server, which took longer than a downgrade at the new one.
    if (b.state_ == state::held && b.acquisition().at == stage::queued && answer.held == shape::both &&
        answer.token > b.token_ && b.acquisition().polled_on_this_link && is_trusted(b, now)) {
        granted(b, {answer.token, proved_at, how::handed_over}, now);
    }
}

void node_agent::tell_renewed(node_hold& b, instant now) {
    b.renewed_blindly_ = false;
    set_timer(b, now);
    told_.renewed(b, {}, now);
}

void node_agent::failed_renew(node_hold& b, const failure& why, instant now) {
    if (b.state_ != state::held) return;
    told_.renewal_failed(why);
    // Repeatable, so the unknown outcome of a lost link is simply asked again, on the next one.
    const bool unknown = why.code == errc::outcome_unknown;
    const milliseconds lease = terms_of(b).lease;
    const std::chrono::nanoseconds rest = std::min(std::chrono::nanoseconds(lease) / retry_part, renewal_pace(b));
    // A link that was lost slows down what is sent on the next. Where it was not, that is for us to do, or whoever
    // knows nothing again and again is asked as fast as it says so.
    const bool at_once = unknown && !(link_is_up(b) && std::exchange(b.renewed_blindly_, true));
    b.renew_at_ = at_once ? now : now + (unknown ? std::min<std::chrono::nanoseconds>(again_after, rest) : rest);
    if (terms_of(b).renewing == renewal::none) b.renew_at_ = never;
    set_timer(b, now);
    told_.renewed(b, {refusal{why.code, why.detail, {}, {}}}, now);
}

void node_agent::lose(node_hold& b, errc why, instant now) {
    b.state_ = state::lost;
    timers_.cancel(b);
    drop_call(b, &in_flight::renewing);
    drop_ask(b);
    drop_call(b, &in_flight::changing);
    drop_call(b, &in_flight::raising);
    if (b.in_flight_) b.in_flight_->change_again_at = never;
    if (b.in_flight_) b.in_flight_->raise_again_at = never;
    b.cancelling_ = false;
    end_acquisition(b);
    rest_if_idle(b);
    told_.lost(b, why, now);
}

}  // namespace holdfast::engine
