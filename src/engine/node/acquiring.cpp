#include "engine/node/parts.hpp"

namespace holdfast::engine::acquiring {
namespace {

using namespace std::chrono_literals;
using stage = acquire_stage;
using wire::acquire_answer;
using wire::wish;

constexpr milliseconds longest_poll_interval{10'000};
// A foreign holder publishes nothing when it releases. The first waiter polls: soon at first, because many hold for a
// moment only and come again at once, then more and more rarely.
constexpr milliseconds foreign_poll_shortest{10};
constexpr milliseconds foreign_poll_longest{250};
// Where nobody can push.
constexpr milliseconds own_poll_shortest{50};
constexpr milliseconds own_poll_longest{250};  // for each waiter up to this one
// A waiter that polls counts as alive for two intervals, so they must be longer than most programs ever stall.
constexpr milliseconds least_told_interval{1000};
// After a holder's lease has ended the first waiter polls first; the others leave it time to.
constexpr milliseconds after_deadline{2};
// Beside holders that can be asked back the first waiter has to ask; and whoever stands in front may be dead.
constexpr milliseconds kept_poll_shortest{100};
// Marked holders refuse an acquisition that does not wait, and hear of it: it asks again after these times, each after
// the answer before.
constexpr std::array kept_tries{2ms, 4ms, 8ms, 16ms, 20ms};
// A waiter whose holder has a note asks for it soon.
constexpr milliseconds note_poll{10};
constexpr milliseconds stagger{25};
constexpr std::size_t most_staggered = 9;

milliseconds poll_interval(milliseconds lease) {
    return std::clamp(lease / 3, 1ms, longest_poll_interval);
}

// Of a waiter with that many before it, to which nobody can push.
milliseconds longest_own_poll(std::size_t before) {
    constexpr std::size_t most = longest_poll_interval / own_poll_longest;
    return own_poll_longest * (static_cast<int>(std::min(before, most)) + 1);
}
milliseconds told_interval(milliseconds lease, std::size_t before) {
    return std::min(std::max(longest_own_poll(before), least_told_interval), poll_interval(lease));
}

bool waits(const node_hold& n) {
    return n.acquisition().wait == waiting::in_queue;
}

errc code_for(acquire_answer::reason why) {
    // In the order of the reasons.
    constexpr std::array codes{errc::busy,           errc::read_held,       errc::write_held,    errc::reserved,
                               errc::would_deadlock, errc::held_other_mode, errc::limit_differs, errc::over_limit};
    return codes[static_cast<std::size_t>(why)];
}

refusal recovering(node_agent& agent, const node_hold& n, instant now) {
    return {errc::recovering, agent.server(), {}, {}, agent.recovers_in(agent.keys_of(n), now)};
}

refusal too_late(node_agent& agent, const node_hold& n, instant now) {
    if (n.acquisition().trouble) return *n.acquisition().trouble;
    if (!agent.link_is_up(n)) return {errc::unreachable, agent.server(), {}, {}};
    if (!agent.is_trusted(n, now)) return recovering(agent, n, now);
    return {waits(n) ? errc::timed_out : errc::request_timed_out, agent.server(), {}, {}};
}

void refuse(node_agent& agent, node_hold& n, refusal why, instant now) {
    const node_acquisition& a = n.acquisition();
    if (why.code == errc::timed_out && !a.holder.empty()) a.tell_holder(why, now);
    // What it still writes is from before: the node has not heard of a downgrade. That does not count for the upgrade.
    if (n.writes()) n.at_most = shape::reading;
    give_up(agent, n, now);
    agent.tell_failed(node_event::kind::refused, n, std::move(why));
}

// A waiter keeps its position while the server is in trouble for a moment: after a failover the new primary may lack
// replicas, after a restart a server reads its data. An error means that the script changed nothing.
void refuse_or_stay(node_agent& agent, node_hold& n, refusal why, instant now) {
    const bool stays = may_pass(why.code) && waits(n) && n.whole->is_asked_for();
    if (!stays) return refuse(agent, n, std::move(why), now);
    agent.busy(n).acquisition.trouble = std::make_unique<refusal>(std::move(why));
    agent.busy(n).acquisition.poll_at = now + again_after;
    agent.set_timer(n, now);
}

void send(node_agent& agent, node_hold& n, instant now) {
    if (!agent.is_trusted(n, now)) {
        if (!waits(n)) return refuse(agent, n, recovering(agent, n, now), now);
        agent.busy(n).acquisition.poll_at = agent.node().trusted_from(agent.keys_of(n));
        return agent.set_timer(n, now);
    }
    const hold_terms& terms = agent.terms_of(n);
    const bool upgrades = n.counts();
    // Not before: a change that the upgrade waits for may have to be sent again.
    if (upgrades) n.at_most = shape::both;
    call& request = agent.start(purpose::acquire, n, &node_requests::asking);
    const std::string_view common = n.whole->ticket();  // where several nodes are asked
    const woken_by wakes = waits(n) ? agent.wakes(n) : woken_by::push;
    const bool polls = wakes == woken_by::poll;
    if (wakes == woken_by::hint) agent.expect_push(n);  // it may overtake the answer
    node_acquisition& a = agent.busy(n).acquisition;
    a.was_hinted = false;
    a.polls_within = polls ? told_interval(terms.options.lease, a.before) : milliseconds(0);
    const milliseconds interval = polls ? a.polls_within : poll_interval(terms.options.lease);
    wire::write(request, agent.lock_of(n, now),
                wire::acquire_request{.id = agent.id_of(n),
                                      .wants = upgrades                       ? wish::upgrade
                                               : terms.want == access::shared ? wish::read
                                                                              : wish::write,
                                      .lease = terms.options.lease_at_server(),
                                      .token_floor = agent.clock().floor(),
                                      .channel = polls      ? wire::by_polls
                                                 : waits(n) ? agent.wakes().of(agent.keys_of(n))
                                                            : std::string_view(),
                                      .ticket = common.empty() ? std::string_view(n.acquisition().ticket) : common,
                                      .poll_interval = interval,
                                      .queue_retention = 6 * interval + 1s,
                                      .upgrading = upgrades ? n.token : 0,
                                      .gives_way = n.acquisition().gives_way,
                                      .ceiling = n.acquisition().gives_way == 0 ? 0 : keeping::ceiling_of(n),
                                      .asks_back = n.whole->is_asked_for(),
                                      .permits = terms.options.permits,
                                      .note = terms.options.note ? std::string_view(*terms.options.note) : "",
                                      .asks_for_note = wire::is_noted(a.holder)});
    if (waits(n)) request.wait_for_first_link();
    a.asked_before = false;
    agent.send(request, n.whole->deadline_at_node());
}

void begin(node_agent& agent, node_hold& n, waiting wait, instant now, fencing_token gives_way = 0) {
    node_acquisition& a = agent.busy(n).acquisition;
    if (n.asks()) a.end();
    // What is being made less must be less before it is asked to be more, and the node must know the hold by the token
    // that the request names.
    a.at = n.is_being_changed() || n.is_being_raised() ? stage::deferred : stage::asking;
    a.wait = wait;
    a.gives_way = gives_way;
    if (wait == waiting::in_queue) agent.listen(n);
    agent.set_timer(n, now);
    if (n.acquisition().at == stage::asking) send(agent, n, now);
}

milliseconds next_poll(node_agent& agent, node_hold& n, const acquire_answer& answer, bool same_holder) {
    node_acquisition& a = agent.busy(n).acquisition;
    milliseconds wait = poll_interval(agent.options_of(n).lease);
    const bool in_gap = answer.holder.empty() && answer.soonest;  // its end is told
    if (answer.position == 0 && !is_ours(answer.holder) && !in_gap) {
        a.foreign_poll = same_holder ? std::clamp(2 * a.foreign_poll, foreign_poll_shortest, foreign_poll_longest)
                                     : foreign_poll_shortest;
        const auto half = static_cast<std::uint64_t>(a.foreign_poll.count() / 2);
        const milliseconds earlier(static_cast<std::int64_t>(agent.random().next() % (half + 1)));
        wait = std::min(wait, a.foreign_poll - earlier);
    }
    if (a.polls_within > 0ms) {
        a.own_poll = std::clamp(2 * a.own_poll, own_poll_shortest, longest_own_poll(answer.position));
        wait = std::min({wait, a.polls_within, a.own_poll});
    } else if (agent.wakes(n) == woken_by::poll) {
        wait = 0ms;  // it told a channel, and nobody listens there
    }
    if (wire::mark_of(answer.holder) != wire::mark::none) {
        a.kept_poll = std::max(2 * a.kept_poll, kept_poll_shortest);
        wait = std::min(wait, a.kept_poll + stagger * static_cast<int>(std::min(answer.position, most_staggered)));
    }
    if (answer.soonest) {
        const auto steps = static_cast<int>(std::min(answer.position, most_staggered));
        wait = std::min(wait, *answer.soonest + after_deadline + stagger * steps);
    }
    return wait;
}

// The request was made before this holder was known, so it did not ask for its note.
bool lacks_note(const node_hold& n, const acquire_answer& answer) {
    return answer.note.empty() && wire::is_noted(answer.holder) && !wire::is_noted(n.acquisition().holder) &&
           n.whole->is_asked_for();
}

void on_queued(node_agent& agent, node_hold& n, const call& asked, const acquire_answer& answer, instant now) {
    if (waits(n)) agent.expect_push(n);
    node_acquisition& a = agent.busy(n).acquisition;
    a.at = stage::queued;
    a.gives_way = 0;
    a.trouble.reset();
    a.unknown_since = never;
    a.ticket = answer.ticket;
    a.before = answer.position;
    a.fence_then = answer.fence;
    a.last_answered_poll = asked.written_at();
    a.polled_on_this_link = !a.asked_before;
    const bool same_holder = a.holder == answer.holder;
    const bool has_unread_note = lacks_note(n, answer);
    a.holder = answer.holder;
    a.note = answer.note;
    a.holder_until = answer.holder_left ? std::optional(now + *answer.holder_left) : std::nullopt;
    milliseconds wait = next_poll(agent, n, answer, same_holder);
    if (has_unread_note) wait = std::min(wait, note_poll);
    a.poll_at = a.polled_on_this_link && !a.was_hinted ? now + wait : now;
    agent.set_timer(n, now);
    agent.tell(node_event::kind::queued, n);
}

// The answer took as long as the lease. A waiter asks again; one that does not wait gives the grant back.
void ask_after_late_grant(node_agent& agent, node_hold& n, instant now) {
    agent.busy(n).acquisition.at = stage::queued;
    if (waits(n)) return poll(agent, n, now);
    const std::string& server = agent.server();
    refuse(agent, n, {errc::request_timed_out, server + ": the answer took as long as the lease", {}, {}}, now);
}

void confirm_grant(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    // A poll is in flight. It runs after the grant that was pushed, so its answer proves more.
    if (n.is_being_asked()) return;
    const milliseconds lease = agent.options_of(n).lease;
    const instant last_moment = shown.at + lease - agent.drift(lease) - agent.margin(lease);
    if (last_moment <= now) return ask_after_late_grant(agent, n, now);
    node_acquisition& a = agent.busy(n).acquisition;
    a.at = stage::confirming;
    a.trouble = std::make_unique<refusal>(confirming::too_few(agent));  // to tell, should it end here
    a.poll_at = std::min(last_moment, now + agent.settings().request_timeout);
    agent.set_timer(n, now);
    confirming::ask(agent, n, &node_requests::asking, purpose::confirm_grant, shown);
}

// The answer to a poll that was in flight when the grant was pushed: a renewal, if it is the same grant.
void proved_again(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    if (!keeping::is_same_grant(n, shown)) return agent.lose(n, errc::held_by_other);
    if (n.ran_out(now)) return agent.lose(n, errc::lost);
    renewing::extend_validity(agent, n, shown.at);
    keeping::proved(agent, n, shown);
    agent.set_timer(n, now);
    agent.tell(node_event::kind::extended, n);
}

void upgraded(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    if (n.ran_out(now)) return agent.lose(n, errc::lost);
    // A grant from before a downgrade of this hold, of which the node has not heard, or not any more. Others may read
    // since then, by larger tokens.
    if (shown.token <= n.token) return agent.lose(n, errc::not_held);
    agent.adopt(n, shown.token);
    n.has = shape::both;
    renewing::extend_validity(agent, n, shown.at);
    keeping::proved(agent, n, shown);
    agent.end_acquisition(n);
    agent.set_timer(n, now);
    agent.tell({.what = node_event::kind::granted, .granted_how = shown.granted_how, .at = &n});
}

void believe(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    if (n.counts()) return n.asks() ? upgraded(agent, n, shown, now) : proved_again(agent, n, shown, now);
    n.token = shown.token;
    n.valid_until = {};  // that of another grant
    renewing::extend_validity(agent, n, shown.at);
    const hold_terms& terms = agent.terms_of(n);
    if (n.valid_until - agent.margin(terms.options.lease) <= now) return ask_after_late_grant(agent, n, now);
    n.phase = node_phase::held;
    n.has = terms.want == access::shared ? shape::reading : shape::writing;
    keeping::proved(agent, n, shown);
    agent.end_acquisition(n);
    agent.set_timer(n, now);
    if (keeping::lacks_proof(n)) renewing::prove_anew(agent, n, now);
    agent.tell({.what = node_event::kind::granted, .granted_how = shown.granted_how, .at = &n});
}

void granted(node_agent& agent, node_hold& n, const proof& shown, instant now) {
    agent.clock().saw(shown.token);
    if (n.asks()) keeping::note_ceiling(n, shown.ceiling);
    if (n.asks() && confirming::is_wanted(n)) return confirm_grant(agent, n, shown, now);
    believe(agent, n, shown, now);
}

void on_refused(node_agent& agent, node_hold& n, const acquire_answer& answer, instant now) {
    refusal why{code_for(answer.why), "", answer.holder_left, std::string(answer.holder)};
    if (answer.limit != 0) why.detail = "its limit is " + std::to_string(answer.limit);
    why.note = answer.note;
    why.kept = wire::mark_of(answer.holder) != wire::mark::none;
    node_acquisition& a = agent.busy(n).acquisition;
    const bool asks_for_note = lacks_note(n, answer);
    const bool asks_again = answer.is_kept && a.kept_tries < kept_tries.size() && n.whole->is_asked_for();
    if (!asks_again && !asks_for_note) return refuse(agent, n, std::move(why), now);
    a.trouble = std::make_unique<refusal>(std::move(why));  // to tell, should its deadline come first
    a.holder = answer.holder;
    a.poll_at = asks_again ? now + kept_tries[a.kept_tries++] : now;
    agent.set_timer(n, now);
}

void on_answer(node_agent& agent, node_hold& n, const call& asked, const acquire_answer& answer, instant now) {
    if (answer.what == acquire_answer::verdict::held) {
        keeping::note_waiters(agent, n, answer.waiters);
        return granted(agent, n, {.token = answer.token, .at = asked.written_at(), .ceiling = answer.ceiling}, now);
    }
    // A poll that overlapped with a pushed grant answers "you hold"; anything else means that the grant is over.
    if (!n.asks()) return agent.lose(n, errc::held_by_other);
    switch (answer.what) {
        case acquire_answer::verdict::queued:
            return on_queued(agent, n, asked, answer, now);
        case acquire_answer::verdict::refused:
            agent.busy(n).acquisition.may_have_run = false;  // it ran, and left nothing behind
            agent.busy(n).acquisition.at = stage::asking;
            return on_refused(agent, n, answer, now);
        case acquire_answer::verdict::gone:
        case acquire_answer::verdict::held:
            return agent.lose(n, errc::not_held);
    }
}

// The node is asked again, and what it then says is confirmed anew. Not for ever: meanwhile nobody has the lock.
void grant_not_known(node_agent& agent, node_hold& n, const failure& why, instant now) {
    node_acquisition& a = agent.busy(n).acquisition;
    a.at = stage::queued;
    a.unknown_since = std::min(a.unknown_since, now);
    refusal reason{why.code, why.detail, {}, {}};
    // The lock was granted: that it is not known to be replicated is the reason, not the link at this moment.
    if (why.code == errc::outcome_unknown || is_silence(why.code)) reason = confirming::too_few(agent);
    const hold_terms& terms = agent.terms_of(n);
    const bool too_long = now >= a.unknown_since + terms.options.lease;
    if (too_long || a.repeats++ >= terms.options.max_repeats) return refuse(agent, n, std::move(reason), now);
    a.trouble = std::make_unique<refusal>(std::move(reason));
    a.poll_at = now + (n.whole->is_asked_for() ? again_after : std::max(again_after, terms.options.lease / 10));
    agent.set_timer(n, now);
}

}  // namespace

void ask(node_agent& agent, node_hold& n, waiting wait, instant now) {
    if (n.is_gone()) {
        agent.holds().push_back(n);
        if (n.whole->kept) keeping::mark(agent, n);
        // Clear the end of an earlier undo: it is later than any validity of the new acquisition.
        n.valid_until = {};
        n.cancelling = false;
    }
    n.phase = node_phase::wanted;
    n.is_renewed = true;
    n.raise_to = 0;
    n.at_most = agent.terms_of(n).want == access::shared ? shape::reading : shape::both;
    begin(agent, n, wait, now);
}

void upgrade(node_agent& agent, node_hold& n, waiting wait, instant now) {
    // An answer to a poll of the acquisition would be taken for one to the upgrade.
    agent.drop_ask(n);
    begin(agent, n, wait, now);
}

void yield(node_agent& agent, node_hold& n, instant now) {
    agent.drop(n, &node_requests::renewing);
    agent.drop(n, &node_requests::raising);
    if (n.requests) n.requests->raise_again_at = never;
    // An answer to a poll in flight would be taken for one to this.
    agent.drop_ask(n);
    n.phase = node_phase::wanted;
    begin(agent, n, waiting::in_queue, now, n.token);
}

void extend(node_agent& agent, node_hold& n, instant now) {
    call* const asking = n.pending().asking;
    // If it is not written yet, it waits for the link until then.
    if (asking != nullptr && asking->what() == purpose::acquire) asking->give_up_at(n.whole->deadline_at_node());
    // If it was to wake up at the former deadline, it would not poll again, and the server would take it for dead.
    agent.set_timer(n, now);
}

void start_deferred(node_agent& agent, node_hold& n, instant now) {
    if (n.acquisition().at != stage::deferred || n.is_being_changed() || n.is_being_raised()) return;
    agent.busy(n).acquisition.at = stage::asking;
    send(agent, n, now);
}

void poll(node_agent& agent, node_hold& n, instant now) {
    agent.busy(n).acquisition.poll_at = never;
    agent.set_timer(n, now);
    if (!n.is_being_asked() && n.acquisition().at != stage::deferred) send(agent, n, now);
}

// If anything of the acquisition may be on the server, it is undone there; what was held before stays held.
void give_up(node_agent& agent, node_hold& n, instant now) {
    const node_acquisition& a = n.acquisition();
    const bool was_told = a.may_have_run || a.at == stage::queued || a.at == stage::confirming;
    const bool left_something = agent.drop_ask(n) || was_told || n.stray_copies;
    agent.end_acquisition(n);
    if (n.counts()) {
        // No replica has acknowledged what the node may have granted: that does not count for the upgrade, and is made
        // less.
        if (confirming::is_wanted(n)) n.at_most = shape::reading;
        if (left_something) changing::cancel_upgrade(agent, n, now);
        agent.set_timer(n, now);
    } else if (left_something) {
        n.token = 0;  // any grant: nobody believes in this id any more
        releasing::leave(agent, n, now);
    } else {
        agent.forget(n);
    }
}

void on_reply(node_agent& agent, node_hold& n, const call& asked, const redis::reply_view& reply, instant now) {
    if (n.phase == node_phase::leaving || n.phase == node_phase::lost) return;  // undone or released meanwhile
    if (reply.is_error()) {
        const failure why = agent.classify(n, reply);
        if (n.asks()) refuse_or_stay(agent, n, {why.code, why.detail, {}, {}}, now);
        return;
    }
    const auto answer = wire::read_acquire(reply);
    if (!answer || (answer->what == acquire_answer::verdict::gone && !n.counts())) {
        if (n.asks()) refuse(agent, n, agent.nonsense(), now);
        return;
    }
    renewing::note_foreign_ttl(n, answer->cut_to);
    if (answer->clock) agent.clock().learn(n.node, *answer->clock, {asked.written_at(), now});
    on_answer(agent, n, asked, *answer, now);
    if (answer->clock) agent.tell({.what = node_event::kind::clock_read});
}

void on_failure(node_agent& agent, node_hold& n, const failure& why, instant now) {
    const bool unknown = why.code == errc::outcome_unknown;
    if (unknown) n.stray_copies = true;
    // What does not listen is told by its undo, or by its next answer.
    if (unknown && (n.listens || !n.asks())) agent.expect_push(n);
    if (!n.asks()) return;
    if (!unknown) return refuse(agent, n, {why.code, why.detail, {}, {}}, now);
    node_acquisition& a = agent.busy(n).acquisition;
    a.may_have_run = true;
    const bool may_repeat = a.repeats++ < agent.options_of(n).max_repeats;
    if (now < n.whole->deadline_at_node() && may_repeat) return send(agent, n, now);  // goes out on the next link
    // Not "outcome unknown" to the caller: what may have been granted is given back.
    refuse(agent, n, {waits(n) ? errc::timed_out : errc::request_timed_out, why.detail, {}, {}}, now);
}

void on_push(node_agent& agent, node_hold& n, const wire::push_reader::item& pushed, instant now) {
    const fencing_token token = pushed.token;
    const bool proves = agent.wakes(n) == woken_by::push;
    if (n.phase == node_phase::leaving) return releasing::give_back(agent, n, token, now);
    if (n.counts() && !n.asks()) {
        if (token <= n.token || !proves) return;  // a renewal shows it, too
        hold_answer unasked;
        unasked.held = shape::both;
        unasked.token = token;
        return changing::notice(agent, n, unasked, now);
    }
    if (!proves) return on_hint(agent, n, now);
    const node_acquisition& a = n.acquisition();
    if (a.at != stage::queued || !a.polled_on_this_link || token <= a.fence_then) return;
    if (n.counts() && token <= n.token) return;  // of the lock's former server, from before
    const milliseconds lease = agent.options_of(n).lease;
    const instant end = a.last_answered_poll + lease - agent.drift(lease);
    // The lease is fresh, but by our cautious reckoning little of it is left: a poll makes it full and proves it.
    if (end - now < lease / 3) return poll(agent, n, now);
    granted(agent, n, {token, a.last_answered_poll, how::handed_over, pushed.ceiling}, now);
}

void on_hint(node_agent& agent, node_hold& n, instant now) {
    if (!n.asks() || !waits(n)) return;
    if (!n.is_being_asked()) return n.is_queued() ? poll(agent, n, now) : void();
    // Where messages come on the link of the requests, what is in flight runs after whatever sent this one.
    agent.busy(n).acquisition.was_hinted = agent.wakes(n) != woken_by::push;
}

void on_renewed(node_agent& agent, node_hold& n, const hold_answer& answer, instant proved_at, instant now) {
    // The script that served the queue tells its caller only by this. Not if the token is the old one: that is the
    // answer of the lock's former server, which took longer than a downgrade at the new one.
    const bool shows_upgrade = n.counts() && n.is_queued() && answer.held == shape::both && answer.token > n.token;
    if (!shows_upgrade || !n.acquisition().polled_on_this_link || !agent.is_trusted(n, now)) return;
    granted(agent, n, {answer.token, proved_at, how::handed_over, answer.ceiling}, now);
}

void on_confirmation(node_agent& agent, node_hold& n, const call& asked, const confirmation& said, instant now) {
    if (!said.why_not) return believe(agent, n, asked.shown(), now);
    if (said.is_unknown) return grant_not_known(agent, n, *said.why_not, now);
    refuse(agent, n, {said.why_not->code, said.why_not->detail, {}, {}}, now);
}

bool is_confirming(const node_hold& n, fencing_token token) noexcept {
    const call* const asking = n.pending().asking;
    return asking != nullptr && asking->what() == purpose::confirm_grant && asking->shown().token == token;
}

void on_revoked(node_agent& agent, node_hold& n, instant now) {
    agent.drop_ask(n);
    agent.busy(n).acquisition.at = stage::queued;
    poll(agent, n, now);
}

void on_timer(node_agent& agent, node_hold& n, instant now) {
    if (!n.asks()) return;
    if (now >= n.whole->deadline_at_node()) return refuse(agent, n, too_late(agent, n, now), now);
    if (now < n.acquisition().poll_at) return;
    if (n.acquisition().at == stage::confirming) return refuse(agent, n, confirming::too_few(agent), now);
    poll(agent, n, now);
}

void on_link_up(node_agent& agent, node_hold& n, instant now) {
    const stage at = n.acquisition().at;
    if (at == stage::none || at == stage::deferred) return;
    if (!agent.is_trusted(n, now)) {
        // It was asked before we knew what server would answer. Where the slot has moved, the former owner may run it.
        if (agent.drop_ask(n)) {
            agent.mark_stray(n);
            agent.busy(n).acquisition.may_have_run = true;
        }
        if (at == stage::confirming) agent.busy(n).acquisition.at = stage::queued;
        send(agent, n, now);
    } else if (n.is_being_asked() && n.pending().asking->may_run()) {
        agent.busy(n).acquisition.asked_before = true;
    } else if (at == stage::queued || (at == stage::asking && !n.is_being_asked())) {
        // What was pushed while the link was down is gone: every waiter asks for its position. And one that waits until
        // the server can be trusted finds that it is another server.
        poll(agent, n, now);
    }
}

void on_subscription_refused(node_agent& agent, node_hold& n, const failure& why, instant now) {
    if (n.asks() && waits(n)) refuse(agent, n, {why.code, why.detail, {}, {}}, now);
}

}  // namespace holdfast::engine::acquiring
