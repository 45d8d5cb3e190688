// Asking a node for a lock, or for an upgrade, and standing in line for it.

#include "engine/hold.hpp"
#include "engine/node_agent.hpp"
#include "engine/passing.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;
using wire::acquire_answer;
using wire::wish;

constexpr milliseconds longest_poll_interval{10'000};
// A foreign holder publishes nothing when it releases: the first in line polls, soon at first, because many hold for a
// moment only and come again at once, then more and more rarely.
constexpr milliseconds foreign_poll_shortest{10};
constexpr milliseconds foreign_poll_longest{250};
// After a holder's lease has ended the first in line looks first; the others leave it time to.
constexpr milliseconds after_deadline{2};
constexpr milliseconds stagger{25};
constexpr std::size_t most_staggered = 9;

milliseconds poll_interval(milliseconds lease) {
    return std::clamp(lease / 3, 1ms, longest_poll_interval);
}

errc code_for(acquire_answer::reason why) {
    switch (why) {
        case acquire_answer::reason::reading:
            return errc::read_held;
        case acquire_answer::reason::writing:
            return errc::write_held;
        case acquire_answer::reason::reserved:
            return errc::reserved;
        case acquire_answer::reason::deadlock:
            return errc::would_deadlock;
        case acquire_answer::reason::other_mode:
            return errc::held_other_mode;
        case acquire_answer::reason::held:
            break;
    }
    return errc::busy;
}

}  // namespace

void node_agent::ask(node_hold& b, patience limit, instant now) {
    if (b.state_ == state::gone) {
        node_holds_.push_back(b);
        // Of an undo: until when the server may remember it, which is longer than anybody may believe.
        b.valid_until_ = {};
        b.cancelling_ = false;
    }
    b.state_ = state::wanted;
    b.kept_ = true;
    b.raise_to_ = 0;
    b.at_most_ = terms_of(b).want == access::shared ? shape::reading : shape::both;
    begin_acquisition(b, limit, now);
}

void node_agent::upgrade(node_hold& b, patience limit, instant now) {
    // An answer to a poll of the acquisition would be taken for one to the upgrade.
    drop_ask(b);
    begin_acquisition(b, limit, now);
}

void node_agent::begin_acquisition(node_hold& b, patience limit, instant now, fencing_token gives_way) {
    node_hold::acquisition_state& q = busy(b).acquisition;
    // A place in line, and so a ticket, is kept across what is asked again at this node.
    q.clear_but_for_ticket();
    if (b.state_ != state::wanted) q.ticket.clear();
    q.at = is_being_changed(b) ? stage::deferred : stage::asking;
    q.limit = limit;
    q.gives_way = gives_way;
    if (limit.wait == waiting::in_queue) listen(b);
    set_timer(b, now);
    if (b.acquisition().at == stage::asking) send_ask(b, now);
}

// What is being made less must be less before it is asked to be more, and the node must know it by the token that the
// question names.
bool node_agent::is_being_changed(const node_hold& b) noexcept {
    return b.in_flight().changing != nullptr || b.in_flight().change_again_at != never ||
           b.in_flight().raising != nullptr || b.in_flight().raise_again_at != never;
}

void node_agent::start_deferred(node_hold& b, instant now) {
    if (b.acquisition().at != stage::deferred || is_being_changed(b)) return;
    busy(b).acquisition.at = stage::asking;
    send_ask(b, now);
}

void node_agent::send_ask(node_hold& b, instant now) {
    const bool waits = b.acquisition().limit.wait == waiting::in_queue;
    if (!is_trusted(b, now)) {
        if (!waits) return refuse(b, recovering(b, now), now);
        busy(b).acquisition.poll_at = out_.trusted_from(keys_of(b));
        return set_timer(b, now);
    }
    const hold_terms& terms = terms_of(b);
    const bool upgrades = b.state_ == state::held;
    // Not before: a change that the upgrade waits for may have to be sent again.
    if (upgrades) b.at_most_ = shape::both;
    call& question = start_call(purpose::acquire, b);
    const std::string_view common = b.whole().ticket();  // where several nodes are asked
    const milliseconds interval = poll_interval(terms.lease);
    const wire::lock_terms lock = lock_of(b, now);
    wire::write(question, lock,
                wire::acquire_request{.id = id_of(b),
                                      .wants = upgrades                       ? wish::upgrade
                                               : terms.want == access::shared ? wish::read
                                                                              : wish::write,
                                      .lease = terms.lease,
                                      .token_floor = told_.floor(),
                                      .channel = waits ? wakes_.of(keys_of(b)) : std::string_view(),
                                      .ticket = common.empty() ? std::string_view(b.acquisition().ticket) : common,
                                      .poll_interval = interval,
                                      .queue_retention = 6 * interval + 1s,
                                      .upgrading = upgrades ? b.token_ : 0,
                                      .gives_way = b.acquisition().gives_way});
    question.give_up_at(b.acquisition().limit.deadline);
    if (waits) question.wait_for_first_link();
    busy(b).asking = &question;
    busy(b).acquisition.asked_before = false;
    out_.submit(question);
}

refusal node_agent::recovering(const node_hold& b, instant now) const {
    return {errc::recovering, settings_.server, {}, {}, recovers_in(keys_of(b), now)};
}

void node_agent::yield(node_hold& b, instant now) {
    drop_call(b, &in_flight::renewing);
    drop_call(b, &in_flight::raising);
    if (b.in_flight_) b.in_flight_->raise_again_at = never;
    // An answer to a poll under way would be taken for one to this.
    drop_ask(b);
    b.state_ = state::wanted;
    begin_acquisition(b, {waiting::in_queue, never}, now, b.token_);
}

void node_agent::poll(node_hold& b, instant now) {
    busy(b).acquisition.poll_at = never;
    set_timer(b, now);
    if (b.in_flight().asking == nullptr && b.acquisition().at != stage::deferred) send_ask(b, now);
}

void node_agent::answered_acquire(node_hold& b, const call& asked, const redis::reply_view& reply, instant now) {
    if (b.state_ == state::leaving || b.state_ == state::lost) return;  // undone or released meanwhile
    const bool wanted = b.acquisition().at != stage::none;
    if (reply.is_error()) {
        const failure why = classify(reply);
        if (wanted) refuse_or_stay(b, {why.code, why.detail, {}, {}}, now);
        return;
    }
    const auto answer = wire::read_acquire(reply);
    if (!answer || (answer->what == acquire_answer::verdict::gone && b.state_ != state::held)) {
        if (wanted) refuse(b, nonsense(), now);
        return;
    }
    note_foreign_ttl(b, answer->cut_to);
    const bool tells_time = answer->clock.has_value();
    if (tells_time) learn_clock(*answer->clock, asked.written_at(), now);
    heed_acquire(b, asked, *answer, now);
    if (tells_time) told_.clock_told(now);  // last: whoever waits may be moved
}

void node_agent::heed_acquire(node_hold& b, const call& asked, const acquire_answer& answer, instant now) {
    if (answer.what == acquire_answer::verdict::held) return granted(b, {answer.token, asked.written_at()}, now);
    // A poll that overlapped with a pushed grant answers "you hold"; anything else means that grant is over.
    if (b.acquisition().at == stage::none) return lose(b, errc::held_by_other, now);
    switch (answer.what) {
        case acquire_answer::verdict::queued:
            return stand_in_line(b, asked, answer, now);
        case acquire_answer::verdict::refused:
            busy(b).acquisition.may_have_run = false;  // it ran, and left nothing behind
            busy(b).acquisition.at = stage::asking;
            return refuse(b, {code_for(answer.why), "", answer.holder_left, std::string(answer.holder)}, now);
        case acquire_answer::verdict::gone:
        case acquire_answer::verdict::held:
            return lose(b, errc::not_held, now);
    }
}

void node_agent::stand_in_line(node_hold& b, const call& asked, const acquire_answer& answer, instant now) {
    node_hold::acquisition_state& q = busy(b).acquisition;
    q.at = stage::queued;
    q.gives_way = 0;
    q.trouble.reset();
    q.unknown_since = never;
    q.ticket = answer.ticket;
    q.fence_then = answer.fence;
    q.last_answered_poll = asked.written_at();
    q.polled_on_this_link = !q.asked_before;
    const bool same_holder = q.holder == answer.holder;
    q.holder = answer.holder;
    q.holder_until = answer.holder_left ? std::optional(now + *answer.holder_left) : std::nullopt;
    milliseconds wait = poll_interval(terms_of(b).lease);
    const bool in_gap = answer.holder.empty() && answer.soonest;  // its end is told
    if (answer.place == 0 && !is_ours(answer.holder) && !in_gap) {
        q.foreign_poll = same_holder ? std::clamp(2 * q.foreign_poll, foreign_poll_shortest, foreign_poll_longest)
                                     : foreign_poll_shortest;
        const auto half = static_cast<std::uint64_t>(q.foreign_poll.count() / 2);
        wait = std::min(wait, q.foreign_poll - milliseconds(static_cast<std::int64_t>(random_.next() % (half + 1))));
    }
    if (answer.soonest) {
        const auto place = static_cast<int>(std::min(answer.place, most_staggered));
        wait = std::min(wait, *answer.soonest + after_deadline + stagger * place);
    }
    q.poll_at = q.polled_on_this_link ? now + wait : now;
    set_timer(b, now);
    told_.queued(b, now);
}

void node_agent::believe_push(node_hold& b, fencing_token token, instant now) {
    if (b.state_ == state::leaving) return give_back(b, token, now);
    if (b.state_ == state::held && b.acquisition().at == stage::none) {
        if (token <= b.token_) return;
        wire::hold_answer unasked;
        unasked.held = shape::both;
        unasked.token = token;
        return notice(b, unasked, now);
    }
    const node_hold::acquisition_state& q = b.acquisition();
    if (q.at != stage::queued || !q.polled_on_this_link || token <= q.fence_then) return;
    if (b.state_ == state::held && token <= b.token_) return;  // of the lock's former server, from before
    const milliseconds lease = terms_of(b).lease;
    const instant end = q.last_answered_poll + lease - drift(lease);
    // Little is left by our cautious reckoning, though the lease is fresh: a poll makes it full and proves it.
    if (end - now < lease / 3) return poll(b, now);
    granted(b, {token, q.last_answered_poll, how::handed_over}, now);
}

void node_agent::granted(node_hold& b, const proof& shown, instant now) {
    told_.saw(shown.token);
    if (b.acquisition().at != stage::none && wants_replicas(b)) return confirm_grant(b, shown, now);
    believe(b, shown, now);
}

void node_agent::believe(node_hold& b, const proof& shown, instant now) {
    if (b.state_ == state::held && b.acquisition().at != stage::none) return upgraded(b, shown, now);
    if (b.state_ == state::held) {
        // The answer to a poll that was under way when the grant was pushed: a renewal, if it is the same grant.
        if (shown.token != b.token_) return lose(b, errc::held_by_other, now);
        if (ran_out(b, now)) return lose(b, errc::lost, now);
        extend_validity(b, shown.at);
        set_timer(b, now);
        return told_.extended(b, now);
    }
    b.token_ = shown.token;
    b.valid_until_ = {};  // that of another grant
    extend_validity(b, shown.at);
    if (b.valid_until_ - margin(terms_of(b).lease) <= now) return ask_after_late_grant(b, now);
    b.state_ = state::held;
    b.shape_ = terms_of(b).want == access::shared ? shape::reading : shape::writing;
    end_acquisition(b);
    set_timer(b, now);
    told_.granted(b, shown.got, now);
}

// The answer took as long as the lease. One who waits asks again; one who does not gives it back.
void node_agent::ask_after_late_grant(node_hold& b, instant now) {
    busy(b).acquisition.at = stage::queued;
    if (b.acquisition().limit.wait == waiting::in_queue) return poll(b, now);
    refuse(b, {errc::request_timed_out, settings_.server + ": the answer took as long as the lease", {}, {}}, now);
}

void node_agent::upgraded(node_hold& b, const proof& shown, instant now) {
    if (ran_out(b, now)) return lose(b, errc::lost, now);
    // A grant from before a downgrade of this hold, of which the node has not heard, or not any more. Others may read
    // since then, by larger tokens.
    if (shown.token <= b.token_) return lose(b, errc::not_held, now);
    adopt(b, shown.token);
    b.shape_ = shape::both;
    extend_validity(b, shown.at);
    end_acquisition(b);
    set_timer(b, now);
    told_.granted(b, shown.got, now);
}

void node_agent::end_acquisition(node_hold& b) {
    if (b.in_flight_) b.in_flight_->acquisition.clear();
    if (!b.stray_copies_) stop_listening(b);
}

bool node_agent::is_written(const call* asked) noexcept {
    return asked != nullptr && asked->life() == redis::command::state::written;
}

// Nobody listens to its answer any more. True if it may run all the same.
bool node_agent::drop_ask(node_hold& b) {
    const bool written = is_written(b.in_flight().asking);
    if (written) b.orphaned_ask_ = true;
    drop_call(b, &in_flight::asking);
    return written;
}

errc node_agent::too_late(const node_hold& b) noexcept {
    return b.acquisition().limit.wait == waiting::in_queue ? errc::timed_out : errc::request_timed_out;
}

void node_agent::mark_stray(node_hold& b) {
    b.stray_copies_ = true;
    expect_push(b);  // a grant that such a copy gets is pushed to this id, and given back
}

void node_agent::failed_acquire(node_hold& b, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (unknown) b.stray_copies_ = true;
    if (b.acquisition().at == stage::none) {
        if (unknown) mark_stray(b);
        return;
    }
    if (unknown) {
        busy(b).acquisition.may_have_run = true;
        const bool may_repeat = busy(b).acquisition.repeats++ < terms_of(b).max_repeats;
        if (now < b.acquisition().limit.deadline && may_repeat) return send_ask(b, now);  // goes out on the next link
        // Not "outcome unknown" to the caller: what may have been got is given back.
        return refuse(b, {too_late(b), why.detail, {}, {}}, now);
    }
    refuse(b, {why.code, why.detail, {}, {}}, now);
}

// Whoever waits in line keeps the place there while the server is in trouble for a moment: after a failover the new
// primary may lack replicas, after a restart a server reads its data. An error means that the script changed nothing.
void node_agent::refuse_or_stay(node_hold& b, refusal why, instant now) {
    const bool stays = may_pass(why.code) && b.acquisition().limit.wait == waiting::in_queue && told_.is_asked_for(b);
    if (!stays) return refuse(b, std::move(why), now);
    busy(b).acquisition.trouble = std::move(why);
    busy(b).acquisition.poll_at = now + again_after;
    set_timer(b, now);
}

// Ends the acquisition, and tells.
void node_agent::refuse(node_hold& b, refusal why, instant now) {
    const node_hold::acquisition_state& q = b.acquisition();
    if (why.code == errc::timed_out && !q.holder.empty()) {
        why.holder = q.holder;
        if (q.holder_until) {
            why.holder_left = std::chrono::duration_cast<milliseconds>(std::max(*q.holder_until, now) - now);
        }
    }
    // What it still writes is from before: the node has not heard of a downgrade. That is no vote for the upgrade.
    if (b.writes()) b.at_most_ = shape::reading;
    give_up(b, now);
    told_.refused(b, why, now);
}

// If anything of the acquisition may be on the server, it is undone there; what was held before stays held.
void node_agent::give_up(node_hold& b, instant now) {
    const node_hold::acquisition_state& q = b.acquisition();
    const bool left_something =
        drop_ask(b) || q.may_have_run || b.stray_copies_ || q.at == stage::queued || q.at == stage::confirming;
    end_acquisition(b);
    if (b.state_ == state::held) {
        // What it may have got no replica has acknowledged: it is no vote for the upgrade, and is made less.
        if (wants_replicas(b)) b.at_most_ = shape::reading;
        if (left_something) cancel_upgrade(b, now);
        set_timer(b, now);
    } else if (left_something) {
        b.token_ = 0;  // any grant: nobody believes in this id any more
        leave(b, now);
    } else {
        forget(b);
    }
}

void node_agent::check_waiting(node_hold& b, instant now) {
    if (now >= b.acquisition().limit.deadline) {
        if (b.acquisition().trouble) return refuse(b, *b.acquisition().trouble, now);
        if (link_is_up(b) && !is_trusted(b, now)) return refuse(b, recovering(b, now), now);
        return refuse(b, {link_is_up(b) ? too_late(b) : errc::unreachable, settings_.server, {}, {}}, now);
    }
    if (now < b.acquisition().poll_at) return;
    if (b.acquisition().at == stage::confirming) return refuse(b, too_few_replicas(), now);
    poll(b, now);
}

}  // namespace holdfast::engine
