// Acquiring and upgrading: all nodes are asked at once, and their votes are counted.

#include "engine/engine.hpp"

#include "base/assert.hpp"
#include "engine/passing.hpp"
#include "redis/url/duration.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace holdfast::engine {
namespace {

// Of what is asked for: an upgrade is had where it writes.
bool is_in_favour(const node_hold& vote, bool upgrades) {
    return upgrades ? vote.writes() && !vote.asks() : vote.counts();
}

}  // namespace

bool engine::reads_a_stripe(const acquire_terms& terms) {
    if (terms.want != access::exclusive || terms.owner == owner_id::nobody) return false;
    const std::span stripes(terms.keys.get(), terms.stripes);
    return std::any_of(stripes.begin(), stripes.end(), [&](const lock_keys& stripe) {
        const hold* const mine = find(terms.owner, stripe);
        return mine != nullptr && mine->exclusive_ == 0;
    });
}

void engine::acquire(acquire_completion& request, acquire_terms terms, instant now) {
    if (reads_a_stripe(terms)) {
        return request.refused(
            {errc::would_deadlock, "the caller reads it, and a striped lock cannot be upgraded", {}, {}});
    }
    if (hold* const mine = find(terms.owner, *terms.keys)) return reenter(*mine, request, terms, now);
    hold& h = make_hold(hold_terms(terms));
    begin_acquisition(h, request, terms.limit, now);
    if (!hold_back(h)) ask_all(h, now);
}

hold& engine::make_hold(hold_terms terms) {
    hold& h = *hold::make(hold_id(++next_counter_, random_), std::move(terms), agents_.size()).release();
    holds_.push_back(h);
    return h;
}

// Of several nodes none says when it is too late: the engine does.
patience engine::patience_of_votes(const hold& h) const noexcept {
    const patience limit = h.pending_ ? h.pending_->acquisition.limit : patience();
    return several() ? patience{limit.wait, never} : limit;
}

void engine::ask_all(hold& h, instant now) {
    h.withdrawn_ = false;
    h.opening_ = true;
    for (std::size_t i = 0; i < agents_.size(); ++i) agents_[i]->ask(h.vote(i), patience_of_votes(h), now);
    h.opening_ = false;
    set_timer(h);
    check_hope(h, now);
}

void engine::reenter(hold& mine, acquire_completion& request, const acquire_terms& terms, instant now) {
    // After a sleep the caller may be here before the timer: what ran out meanwhile is not entered again.
    if (mine.state_ == state::held && ran_out(mine, now)) lose(mine, errc::lost, now);
    if (mine.state_ != state::held) {
        return request.refused({errc::lost, "the hold was lost; release it as often as it was taken first", {}, {}});
    }
    if (mine.terms_.kind != terms.kind) {
        return request.refused({errc::wrong_type, "the caller holds a lock of another kind by this name", {}, {}});
    }
    if (terms.acknowledged_by.replicas() > mine.terms_.acknowledged_by.replicas()) {
        return request.refused(
            {errc::not_replicated, "the caller holds it by a lock that asks for fewer replicas", {}, {}});
    }
    if (terms.want == access::exclusive) return upgrade(mine, request, terms.limit, now);
    if (is_too_deep(mine)) return request.refused({errc::too_deep, "", {}, {}});
    ++mine.shared_;
    reentered(mine, request, now);
}

bool engine::is_too_deep(const hold& h) const noexcept {
    return h.exclusive_ + h.shared_ >= settings_.max_depth;
}

void engine::reentered(hold& h, acquire_completion& request, instant now) {
    watcher_.on_reentered();
    if (h.terms_.renewing == renewal::none) renew_votes(h, now);
    request.acquired(h);
}

void engine::upgrade(hold& h, acquire_completion& request, patience limit, instant now) {
    if (h.state_ == state::held && ran_out(h, now)) lose(h, errc::lost, now);
    if (h.state_ != state::held) return request.refused({errc::lost, "", {}, {}});
    if (is_too_deep(h)) return request.refused({errc::too_deep, "", {}, {}});
    if (h.exclusive_ > 0) {
        ++h.exclusive_;
        return reentered(h, request, now);
    }
    if (h.terms_.upgrading == upgrades::refused) {
        return request.refused({errc::would_deadlock, "a striped lock cannot be upgraded", {}, {}});
    }
    if (h.is_asked_for()) {
        return request.refused({errc::too_many, "an upgrade of this hold is under way", {}, {}});
    }
    begin_acquisition(h, request, limit, now);
    h.opening_ = true;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (h.vote(i).counts()) agents_[i]->upgrade(h.vote(i), patience_of_votes(h), now);
    }
    h.opening_ = false;
    set_timer(h);
    check_hope(h, now);
}

void engine::begin_acquisition(hold& h, acquire_completion& request, patience limit, instant now) {
    pending_work& all = under_way(h);
    all.acquisition.clear();
    all.acquisition.request = &request;
    all.acquisition.limit = limit;
    all.acquisition.asked_at = now;
    const bool is_unbounded = limit.wait == waiting::in_queue && limit.deadline == never;
    if (is_unbounded && !was_reached()) all.acquisition.reach_by = now + settings_.first_connect;
    request.subject_ = &h;
    if (several()) all.ticket = make_ticket(now);
}

void engine::cancel(acquire_completion& request, errc why, instant now) {
    hold* const h = request.subject_;
    if (h == nullptr || !h->is_asked_for() || h->pending_->acquisition.request != &request) return;
    fail(*h, {why, "", {}, {}}, now);
}

// --- what the nodes say

void engine::granted(node_hold& b, how got, instant now) {
    hold& h = b.whole();
    check_pace(h);
    if (h.state_ == state::leaving || h.state_ == state::lost) return;  // release() is on its way to this node, too
    if (h.state_ == state::held && is_backed_by(h, b)) one_more(h);
    if (!h.is_asked_for()) return;
    // A node that has come back in the middle of an upgrade knows nothing of it.
    if (h.state_ == state::held && !b.writes()) return agent_of(b).upgrade(b, patience_of_votes(h), now);
    count(h, got, now);
}

// One vote more than needed: a slow node's, or one that has come back.
void engine::one_more(hold& h) {
    count_validity(h);
    tell_votes(h, votes_now::more);
}

void engine::raised(node_hold& b, instant now) {
    hold& h = b.whole();
    if (h.is_asked_for()) count(h, how::asked, now);
}

// A majority has it, and one token for it: so has the caller.
void engine::count(hold& h, how got, instant now) {
    const node_holds mine = in_favour(h);
    if (mine.size() < majority() || !agree_on_token(h, mine, now)) return gather(h, now);
    const bool upgrades = h.state_ == state::held;
    // A majority that came too late is none: its votes are about to be lost.
    if (validity_of(mine) - margin(h.terms_.lease) <= now) return;
    h.state_ = state::held;
    (upgrades || h.terms_.want == access::exclusive ? h.exclusive_ : h.shared_) = 1;
    count_validity(h);
    if (upgrades) {
        if (h.listener_ != nullptr) h.listener_->on_token(h.token_);
    } else {
        if (h.terms_.owner != owner_id::nobody) owned_.emplace(owned_lock{h.terms_.owner, h.terms_.keys->lock()}, &h);
        h.granted_at_ = now;
    }
    watcher_.on_acquired(now - h.pending_->acquisition.asked_at, got);
    acquire_completion* const request = end_acquisition(h);
    if (upgrades) leave_lines(h, now);
    if (several() && h.terms_.renewing == renewal::automatic) under_way(h).heal_at = now + h.terms_.lease / heal_part;
    set_timer(h);
    request->acquired(h);
}

node_holds engine::in_favour(const hold& h) const {
    node_holds found;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (is_in_favour(h.vote(i), h.state_ == state::held)) found.push_back(&h.vote(i));
    }
    return found;
}

void engine::queued(node_hold& b, instant now) {
    hold& h = b.whole();
    check_pace(h);
    if (!several()) return;
    const pending_work& all = under_way(h);
    // It was asked before enough clocks were known, and has its place by the node's own. If there are still too few,
    // the next node's answer brings the ticket.
    if (all.ticket.empty()) {
        give_ticket(h, ticket_of(all.acquisition.asked_at), now);
    } else if (b.ticket() != all.ticket) {
        return agent_of(b).ask_again(b, now);
    }
    // The upgrade was got without this node.
    if (h.state_ == state::held && !h.is_asked_for() && b.counts()) return agent_of(b).give_up(b, now);
    if (h.state_ == state::wanted && !h.opening_) gather(h, now);
}

// A node that has not granted an upgrade by now may go on as it was. What one that has not answered yet will say is
// heard: it may grant it, too.
void engine::leave_lines(hold& h, instant now) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (h.vote(i).is_queued() && h.vote(i).counts()) agents_[i]->give_up(h.vote(i), now);
    }
}

void engine::refused(node_hold& b, const refusal& why, instant now) {
    hold& h = b.whole();
    check_pace(h);
    // Not of the upgrade that may be under way: a node was asked to vote for the hold, or could not keep its vote.
    if (h.state_ == state::held && !b.counts()) {
        const node_answer no{why};
        take(b, answer_to::renewal, no);
        take(b, answer_to::change, no);
        return one_less(h, why.code, now);
    }
    if (!h.is_asked_for()) return forget_if_gone(h);
    rare_refusal& said_no = h.pending_->acquisition.said_no;
    if (!said_no || is_silence(said_no->code) || is_of_the_lock(why.code)) said_no = why;
    if (!h.opening_) check_hope(h, now);
}

// Ends a acquisition that cannot succeed any more.
void engine::check_hope(hold& h, instant now) {
    if (!h.is_asked_for() || !h.pending_->acquisition.said_no) return;
    const refusal& said_no = *h.pending_->acquisition.said_no;
    const bool silence = is_silence(said_no.code);
    // One node's refusal of an upgrade is final: two upgrades must not each wait for nodes that the other has.
    const bool upgrades = h.state_ == state::held;
    const bool final = upgrades && is_of_the_lock(said_no.code);
    const std::size_t hope = votes(h, [&](const node_hold& one) { return is_in_favour(one, upgrades) || one.asks(); });
    if (!final && hope >= majority()) return;
    refusal told = said_no.code == errc::recovering ? recovering(*h.terms_.keys, now) : said_no;
    if (several() && silence) told.code = errc::no_quorum;
    fail(h, std::move(told), now);
}

// Ends the acquisition and undoes what there is of it; what was held before stays held.
void engine::fail(hold& h, refusal why, instant now) {
    acquire_completion* const request = end_acquisition(h);
    const in_hand kept(h);
    if (h.state_ == state::held) {
        undo_upgrade(h, now);
    } else {
        h.state_ = state::leaving;
        undo_votes(h, now);
        slow_down_if_unanswered(h);
    }
    watcher_.on_refused();
    kept.let_go();
    forget_if_gone(h);
    request->refused(why);
}

void engine::undo_votes(hold& h, instant now) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        node_hold& b = h.vote(i);
        if (b.asks() && !b.counts()) {
            agents_[i]->give_up(b, now);
        } else {
            agents_[i]->release(b, now);
        }
    }
}

void engine::undo_upgrade(hold& h, instant now) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (h.vote(i).asks() && h.vote(i).counts()) agents_[i]->give_up(h.vote(i), now);
        agents_[i]->make_less(h.vote(i), shape::reading, now);
    }
}

recovery engine::recovery_of(const lock_keys& lock, instant now) const {
    recovery found;
    std::vector<milliseconds> waits;  // of nodes that vote, or will: one that is out of reach may never do so
    for (const auto& each : agents_) {
        const milliseconds wait = each->recovers_in(lock, now);
        if (wait > milliseconds(0)) found.nodes.push_back({each->server(), wait});
        if (wait > milliseconds(0) || each->link_is_up(lock)) waits.push_back(wait);
    }
    std::ranges::sort(waits);
    if (waits.size() >= majority()) found.enough_in = waits[majority() - 1];
    return found;
}

refusal engine::recovering(const lock_keys& lock, instant now) const {
    const recovery found = recovery_of(lock, now);
    refusal why{errc::recovering, "", {}, {}, found.enough_in};
    for (const recovery::node& each : found.nodes) {
        const auto rounded = std::chrono::ceil<std::chrono::seconds>(each.votes_in);
        why.detail += (why.detail.empty() ? "" : ", ") + each.server + " votes in " + redis::format_duration(rounded);
    }
    return why;
}

errc engine::code_when_late(const hold& h) noexcept {
    return h.pending_->acquisition.limit.wait == waiting::in_queue ? errc::timed_out : errc::request_timed_out;
}

// Why nothing came of it by its deadline.
refusal engine::too_late(const hold& h, instant now) const {
    refusal why{errc::no_quorum, "", {}, {}};
    const std::size_t heard_from = votes(h, [](const node_hold& b) { return b.counts() || b.is_queued(); });
    const auto mistrusted = [&](const node_hold& b) {
        return (b.asks() || h.held_back_) && !agents_[b.node()]->is_trusted(b, now);
    };
    if (heard_from < majority() && heard_from + votes(h, mistrusted) >= majority()) {
        return recovering(*h.terms_.keys, now);
    }
    if (heard_from < majority()) {
        for (const node_hold& b : h.votes()) {
            if (b.trouble()) return *b.trouble();
        }
        if (!several() && links_up(h) > 0) return {code_when_late(h), agents_.front()->server(), {}, {}};
        if (!several()) {  // as a request that was not sent would be told
            const failure down = agents_.front()->why_not_up(h.vote(0));
            return {down.code, down.detail, {}, {}};
        }
        why.detail = std::to_string(heard_from) + " of " + std::to_string(agents_.size()) + " servers answered" +
                     (h.held_back_ ? ", earlier attempts are still unanswered" : "") + why_out_of_reach(h);
        return why;
    }
    why.code = code_when_late(h);
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        const node_hold& b = h.vote(i);
        if (!b.is_queued() || b.holder().empty()) continue;
        why.holder = b.holder();
        if (b.holder_until()) {
            why.holder_left = std::chrono::duration_cast<milliseconds>(std::max(*b.holder_until(), now) - now);
        }
        break;
    }
    return why;
}

// Of each node whose link is not up.
std::string engine::why_out_of_reach(const hold& h) const {
    std::string reasons;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (!agents_[i]->link_is_up(h.vote(i))) reasons += "; " + agents_[i]->why_not_up(h.vote(i)).detail;
    }
    return reasons;
}

// Links that were lost are waited for without a limit, if the caller sets none. A server that was never there may be
// one that the caller did not mean.
void engine::check_reach(hold& h, instant now) {
    h.pending_->acquisition.reach_by = never;
    if (was_reached()) return set_timer(h);
    if (several()) return fail(h, too_late(h, now), now);
    const failure why = agents_.front()->why_not_up(h.vote(0));
    fail(h, {why.code, why.detail, {}, {}}, now);
}

acquire_completion* engine::end_acquisition(hold& h) {
    if (!h.pending_) return nullptr;
    stop_holding_back(h);
    acquire_completion* const request = std::exchange(h.pending_->acquisition.request, nullptr);
    if (request != nullptr) request->subject_ = nullptr;
    h.pending_->acquisition.reach_by = h.pending_->acquisition.gather_until = never;
    return request;
}

}  // namespace holdfast::engine
