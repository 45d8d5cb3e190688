#include "engine/quorum/acquisitions.hpp"

#include "base/errc_table.hpp"
#include "engine/node/parts.hpp"

namespace holdfast::engine {
namespace {

// How long a minority of node holds is kept because it may become a majority: first and longest (part of a lease).
constexpr milliseconds first_gathering{10};
constexpr int longest_gathering_part = 3;

bool waits_in_queue(const hold& h) noexcept {
    return h.is_asked_for() && h.pending->asked.limit.wait == waiting::in_queue;
}

// It is asked for anew when links come up.
bool waits_for_links(const hold& h) noexcept {
    return h.is_asked_for() && (h.withdrawn || h.phase == hold_phase::wanted);
}

}  // namespace

// --- requests

void acquisitions::begin(hold& h, acquire_completion& request, patience limit, instant now) {
    pending_work& work = holds_.pending(h);
    work.asked = {.request = &request, .limit = limit, .asked_at = now};
    const bool is_unbounded = limit.wait == waiting::in_queue && limit.deadline == never;
    if (is_unbounded && !nodes_.was_reached()) work.asked.reach_by = now + settings_.first_connect;
    request.pending_hold = &h;
    if (nodes_.several()) work.ticket = clock_.make_ticket(now);
    todo_.add(effects::seen_asked{&h});
}

void acquisitions::acquire(hold& h, acquire_completion& request, patience limit, instant now) {
    begin(h, request, limit, now);
    if (!pacing_.hold_back(h)) ask_all(h, now);
}

void acquisitions::upgrade(hold& h, acquire_completion& request, patience limit, instant now) {
    begin(h, request, limit, now);
    for (node_hold& n : h.nodes()) {
        if (n.counts()) acquiring::upgrade(nodes_.of(n), n, h.wait(), now);
    }
    holds_.set_timer(h);
}

void acquisitions::extend(hold& h, instant deadline, instant now) {
    if (h.pending->asked.limit.deadline >= deadline) return;
    const bool was_held_back = h.held_back;
    if (was_held_back) pacing_.stop_holding_back(h);  // it is sorted by its deadline
    h.pending->asked.limit.deadline = deadline;
    if (was_held_back && !pacing_.hold_back(h)) return ask_all(h, now);
    holds_.set_timer(h);
    for (node_hold& n : h.nodes()) {
        if (n.asks()) acquiring::extend(nodes_.of(n), n, now);
    }
}

void acquisitions::ask_all(hold& h, instant now) {
    h.withdrawn = false;
    for (node_hold& n : h.nodes()) acquiring::ask(nodes_.of(n), n, h.wait(), now);
    holds_.set_timer(h);
}

// --- results of nodes

bool acquisitions::on_granted(node_hold& n, how granted_how, instant now) {
    hold& h = *n.whole;
    if (h.phase == hold_phase::leaving || h.phase == hold_phase::lost) return false;  // its release is on its way
    const bool was_held = h.phase == hold_phase::held;
    if (was_held && nodes_.is_backed_by(h, n)) held_.one_more(h);
    if (!h.is_asked_for()) return false;
    if (was_held && n.counts() && !n.writes()) {
        // A node that has come back in the middle of an upgrade knows nothing of it.
        acquiring::upgrade(nodes_.of(n), n, h.wait(), now);
        return false;
    }
    return count(h, granted_how, now);
}

bool acquisitions::on_raised(node_hold& n, instant now) {
    return n.whole->is_asked_for() && count(*n.whole, how::asked, now);
}

bool acquisitions::recount(hold& h, instant now) {
    if (!h.is_asked_for()) return false;
    if (nodes_.in_favour(h).size() >= nodes_.majority() && count(h, how::asked, now)) return true;
    check_hope(h, now);
    return false;
}

bool acquisitions::count(hold& h, how granted_how, instant now) {
    const node_holds mine = nodes_.in_favour(h);
    if (mine.size() < nodes_.majority() || !agree_on_token(h, mine, now)) {
        gather(h, now);
        return false;
    }
    // A majority that came too late is none: its node holds are about to be lost.
    const milliseconds margin = h.options().lease * settings_.lost_margin_percent / 100;
    if (nodes_.validity_of(mine) - margin <= now) return false;
    complete(h, granted_how, now);
    return true;
}

void acquisitions::complete(hold& h, how granted_how, instant now) {
    const bool upgrades = h.phase == hold_phase::held;
    h.phase = hold_phase::held;
    (upgrades || h.terms().want == access::exclusive ? h.exclusive : h.shared) = 1;
    if (!upgrades) h.granted_at = now;
    const std::chrono::nanoseconds waited = now - h.pending->asked.asked_at;
    acquire_completion* const request = holds_.end_acquisition(h);
    if (upgrades && h.listener() != nullptr) todo_.add(effects::token{&h});
    held_.begin(h, now);
    if (upgrades) leave_queues(h, now);
    holds_.set_timer(h);
    todo_.add(effects::acquired{request, &h, waited, granted_how, upgrades});
}

// A node that has not granted an upgrade by now may go on as it was. What a node that has not answered yet will say is
// heard: it may grant it, too.
void acquisitions::leave_queues(hold& h, instant now) {
    for (node_hold& n : h.nodes()) {
        if (n.is_queued() && n.counts()) acquiring::give_up(nodes_.of(n), n, now);
    }
}

void acquisitions::on_queued(node_hold& n, instant now) {
    if (!nodes_.several()) return;
    hold& h = *n.whole;
    const pending_work& work = holds_.pending(h);
    if (work.ticket.empty()) {
        // It was asked for before enough clocks were known, and has its position by the node's own. If there are still
        // too few, the next node's answer brings the ticket.
        give_ticket(h, clock_.ticket_of(work.asked.asked_at), now);
    } else if (n.acquisition().ticket != work.ticket) {
        if (n.is_queued()) acquiring::poll(nodes_.of(n), n, now);
        return;
    }
    // The upgrade was acquired without this node.
    if (h.phase == hold_phase::held && !h.is_asked_for() && n.counts()) return acquiring::give_up(nodes_.of(n), n, now);
    if (h.phase == hold_phase::wanted) gather(h, now);
}

void acquisitions::on_refused(node_hold& n, const refusal& why, instant now) {
    hold& h = *n.whole;
    if (!h.is_asked_for()) return;
    rare_refusal& said_no = h.pending->asked.said_no;
    if (!said_no || is_silence(said_no->code) || is_of_the_lock(why.code)) {
        said_no = std::make_unique<refusal>(why);
    }
    check_hope(h, now);
}

void acquisitions::on_lost(node_hold& n, instant now) {
    if (n.phase == node_phase::lost) acquiring::ask(nodes_.of(n), n, n.whole->wait(), now);
}

// --- one token

// True when a majority knows the hold by a token that is greater than all that were given before. A token that a
// majority of the node holds shares is: one of these nodes was in every earlier majority, and gave a greater one. So is
// the greatest of a majority, once a majority has it.
bool acquisitions::agree_on_token(hold& h, const node_holds& mine, instant now) {
    fencing_token greatest = 0;
    for (const node_hold* const n : mine) {
        const auto same = [n](const node_hold* other) { return other->token == n->token; };
        if (static_cast<std::size_t>(std::ranges::count_if(mine, same)) >= nodes_.majority()) {
            h.token_now = n->token;
            return true;
        }
        greatest = std::max(greatest, n->token);
    }
    for (node_hold* const n : mine) {
        if (n->token < greatest && !n->is_being_raised()) raising::raise(nodes_.of(*n), *n, greatest, now);
    }
    return false;
}

// --- split majorities

// Not enough yet: what there is will not be kept for ever.
void acquisitions::gather(hold& h, instant now) {
    if (!nodes_.several() || h.phase != hold_phase::wanted) return;
    acquisition& asked = holds_.pending(h).asked;
    if (asked.gather_until != never || asked.limit.wait != waiting::in_queue || nodes_.in_favour(h).empty()) return;
    if (asked.gather_for == milliseconds(0)) asked.gather_for = first_gathering;
    asked.gather_until = now + asked.gather_for;
    holds_.set_timer(h);
}

void acquisitions::check_gathering(hold& h, instant now) {
    if (!h.pending || now < h.pending->asked.gather_until) return;
    acquisition& asked = h.pending->asked;
    asked.gather_until = never;
    const node_holds mine = nodes_.in_favour(h);
    if (mine.empty() || h.phase != hold_phase::wanted) return;
    if (nodes_.links_up(h) < nodes_.majority()) return withdraw(h, now);
    // Enough, once they agree on a token; or there may be enough when those have answered that are asked now.
    const std::size_t answers_due = nodes_.count(h, [this](const node_hold& n) {
        return n.asks() && n.is_being_asked() && !n.is_queued() && nodes_.of(n).link_is_up(n);
    });
    if (mine.size() + answers_due >= nodes_.majority()) return gather(h, now);
    asked.gather_for = std::min<milliseconds>(asked.gather_for * 2, h.options().lease / longest_gathering_part);
    for (node_hold* const n : mine) acquiring::yield(nodes_.of(*n), *n, now);
}

// No majority can be reached: nobody should have to wait for what this one has. It is asked for anew, by another id and
// in its old position, when enough nodes can be reached again.
void acquisitions::withdraw(hold& h, instant now) {
    hold& later = holds_.make(h.terms());
    pending_work& work = holds_.pending(later);
    work.ticket = h.pending->ticket;
    work.asked = std::move(h.pending->asked);
    work.asked.gather_until = never;
    work.asked.gather_for = milliseconds(0);
    work.asked.request->pending_hold = &later;
    h.pending->asked = {};
    later.withdrawn = true;
    want_links(later);
    holds_.set_timer(later);
    h.phase = hold_phase::leaving;
    undo_nodes(h, now);
    holds_.set_timer(h);
}

// --- links and clocks

// Links come by themselves where something is sent. Whoever waits for links before it sends anything has to ask for
// them: a Cluster has many members, and none is dialled for nothing.
void acquisitions::want_links(const hold& h) {
    for (const node_hold& n : h.nodes()) nodes_.of(n).want_link(n);
}

void acquisitions::on_owners_changed() {
    if (!nodes_.several()) return;
    for (const hold& h : holds_.all()) {
        if (waits_for_links(h)) want_links(h);
    }
}

void acquisitions::on_links_changed(instant now) {
    if (!nodes_.several()) return;
    move_tickets(now);
    for (hold& h : holds_.all()) {
        const bool concerned = std::exchange(h.links_changed, false);
        if (waits_in_queue(h) && h.pending->ticket.empty()) {
            give_ticket(h, clock_.ticket_of(h.pending->asked.asked_at), now);
        }
        if (!concerned || !waits_for_links(h) || nodes_.links_up(h) < nodes_.majority()) continue;
        h.withdrawn ? ask_all(h, now) : ask_those_who_refused(h, now);
    }
}

// A waiter asks every node for a hold: also a node that was out of reach, or in trouble, before.
void acquisitions::ask_those_who_refused(hold& h, instant now) {
    if (!waits_in_queue(h) || h.held_back) return;
    for (node_hold& n : h.nodes()) {
        node_agent& agent = nodes_.of(n);
        if (agent.link_is_up(n) && n.can_be_asked_again()) acquiring::ask(agent, n, h.wait(), now);
    }
}

void acquisitions::on_clock_read(instant now) {
    if (clock_.may_move_tickets(now)) move_tickets(now);
}

void acquisitions::move_tickets(instant now) {
    const auto by = clock_.move_tickets(now);
    if (!by) return;
    for (hold& h : holds_.all()) {
        if (!waits_in_queue(h) || h.pending->ticket.empty()) continue;
        give_ticket(h, std::to_string(std::stoull(h.pending->ticket) + *by), now);
    }
}

void acquisitions::give_ticket(hold& h, std::string ticket, instant now) {
    h.pending->ticket = std::move(ticket);
    if (h.pending->ticket.empty()) return;
    for (node_hold& n : h.nodes()) {
        if (n.is_queued() && n.acquisition().ticket != h.pending->ticket) acquiring::poll(nodes_.of(n), n, now);
    }
}

// --- no majority

// Ends an acquisition that cannot succeed any more.
void acquisitions::check_hope(hold& h, instant now) {
    if (!h.is_asked_for() || !h.pending->asked.said_no) return;
    const refusal& said_no = *h.pending->asked.said_no;
    // One node's refusal of an upgrade is final: two upgrades must not each wait for nodes that the other has.
    const bool final = h.phase == hold_phase::held && is_of_the_lock(said_no.code);
    const std::size_t hope = nodes_.count(h, [&](const node_hold& n) { return nodes_.is_in_favour(h, n) || n.asks(); });
    if (!final && hope >= nodes_.majority()) return;
    refusal told = said_no.code == errc::recovering ? nodes_.recovering(*h.terms().keys, now) : said_no;
    if (nodes_.several() && is_silence(said_no.code)) told.code = errc::no_quorum;
    fail(h, std::move(told), now);
}

void acquisitions::fail(hold& h, refusal why, instant now) {
    pacing_.stop_holding_back(h);
    const std::chrono::nanoseconds waited = now - h.pending->asked.asked_at;
    acquire_completion* const request = holds_.end_acquisition(h);
    if (h.phase == hold_phase::held) {
        undo_upgrade(h, now);
    } else {
        h.phase = hold_phase::leaving;
        undo_nodes(h, now);
        pacing_.given_up(h);
    }
    holds_.set_timer(h);
    todo_.add(effects::seen_refused{&h, waited});
    todo_.add(effects::refused{request, todo_.keep(std::move(why))});
}

void acquisitions::undo_nodes(hold& h, instant now) {
    for (node_hold& n : h.nodes()) {
        n.asks() && !n.counts() ? acquiring::give_up(nodes_.of(n), n, now) : releasing::release(nodes_.of(n), n, now);
    }
}

void acquisitions::undo_upgrade(hold& h, instant now) {
    for (node_hold& n : h.nodes()) {
        if (n.asks() && n.counts()) acquiring::give_up(nodes_.of(n), n, now);
        nodes_.of(n).make_less(n, shape::reading, now);
    }
}

// Why nothing came of it by its deadline.
refusal acquisitions::too_late(const hold& h, instant now) const {
    const std::size_t heard_from = nodes_.count(h, [](const node_hold& n) { return n.counts() || n.is_queued(); });
    if (heard_from < nodes_.majority()) {
        const std::size_t mistrusted = nodes_.count(
            h, [&](const node_hold& n) { return (n.asks() || h.held_back) && !nodes_.of(n).is_trusted(n, now); });
        if (heard_from + mistrusted >= nodes_.majority()) return nodes_.recovering(*h.terms().keys, now);
        return out_of_reach(h, heard_from);
    }
    const bool waited = h.pending->asked.limit.wait == waiting::in_queue;
    refusal why{waited ? errc::timed_out : errc::request_timed_out, "", {}, {}};
    const auto knows = [](const node_hold& n) { return n.is_queued() && !n.acquisition().holder.empty(); };
    const auto found = std::ranges::find_if(h.nodes(), knows);
    if (found != h.nodes().end()) found->acquisition().tell_holder(why, now);
    return why;
}

refusal acquisitions::out_of_reach(const hold& h, std::size_t heard_from) const {
    for (const node_hold& n : h.nodes()) {
        if (n.acquisition().trouble) return *n.acquisition().trouble;
    }
    if (nodes_.several()) {
        return {errc::no_quorum,
                std::to_string(heard_from) + " of " + std::to_string(nodes_.size()) + " servers answered" +
                    (h.held_back ? ", earlier attempts are still unanswered" : "") + nodes_.why_out_of_reach(h),
                {},
                {}};
    }
    if (nodes_.links_up(h) > 0) {
        const bool waited = h.pending->asked.limit.wait == waiting::in_queue;
        return {waited ? errc::timed_out : errc::request_timed_out, nodes_[0].server(), {}, {}};
    }
    const failure down = nodes_[0].node().why_not_up(*h.terms().keys);  // as a request that was not sent would be told
    return {down.code, down.detail, {}, {}};
}

// If the caller sets no limit, lost links are waited for without one. A server that was never reached may be one that
// the caller did not mean.
void acquisitions::check_reach(hold& h, instant now) {
    h.pending->asked.reach_by = never;
    if (nodes_.was_reached()) return holds_.set_timer(h);
    if (nodes_.several()) return fail(h, too_late(h, now), now);
    const failure why = nodes_[0].node().why_not_up(*h.terms().keys);
    fail(h, {why.code, why.detail, {}, {}}, now);
}

void acquisitions::on_timer(hold& h, instant now) {
    const bool decides = nodes_.several() || h.held_back;
    if (h.is_asked_for() && decides && now >= h.pending->asked.limit.deadline) return fail(h, too_late(h, now), now);
    if (h.is_asked_for() && now >= h.pending->asked.reach_by) return check_reach(h, now);
    if (!h.held_back) return check_gathering(h, now);
    if (pacing_.take_room(h)) ask_all(h, now);
}

}  // namespace holdfast::engine
