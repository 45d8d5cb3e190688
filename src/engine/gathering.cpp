// What only several nodes need: one clock, one ticket and one token for all, and how a split vote ends.
//
// A ticket is the same at every node, so that all lines have the same order. Whoever has some votes and no majority
// gives them up for whoever is first in line, and keeps its place. The one with the smallest ticket gets every vote
// that is given up and never loses one: it has its majority as soon as the others have given way once.

#include "engine/engine.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

// How long votes are kept that may become a majority, the first time and at most (part of a lease).
constexpr milliseconds first_gathering{10};
constexpr int longest_gathering_part = 3;

// By so much tickets may be off, because clocks were read with a delay, and how often they are put right at most.
constexpr milliseconds tickets_agree_within{100};
constexpr std::chrono::seconds tickets_rest_for{1};
// No node takes that for its next token; all tell what time it is.
constexpr fencing_token no_idea_of_the_time = 1;

}  // namespace

// What the clocks of the nodes showed when ours began: the middle one, which a minority of wrong ones cannot move out
// of the right ones. Unless a majority is known, nothing can be said: all of them might be wrong.
std::optional<std::chrono::microseconds> engine::common_clock_at_boot() const {
    boost::container::small_vector<std::chrono::microseconds, 7> known;
    for (const auto& one : agents_) {
        if (const auto clock = one->clock_at_boot()) known.push_back(*clock);
    }
    if (known.size() < majority()) return std::nullopt;
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    return *middle;
}

std::optional<std::uint64_t> engine::common_clock_us(instant now) const {
    const auto at_boot = common_clock_at_boot();
    if (!at_boot) return std::nullopt;
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
    return static_cast<std::uint64_t>((*at_boot + since).count());
}

fencing_token engine::proposal(instant now) const {
    if (!several()) return 0;
    const auto clock = common_clock_us(now);
    return clock ? std::max(*clock, floor_ + 1) : no_idea_of_the_time;
}

// Of the next one that comes: above all that this client has made.
std::string engine::make_ticket(instant now) {
    const auto clock = common_clock_us(now);
    if (!clock) return {};
    if (!tickets_by_) tickets_by_ = common_clock_at_boot();
    last_ticket_ = std::max(*clock, last_ticket_ + 1);
    return std::to_string(last_ticket_);
}

// Of one that came when too few clocks were known. Empty: there still are.
std::string engine::ticket_of(instant asked) {
    const auto clock = common_clock_us(asked);
    if (!clock) return {};
    if (!tickets_by_) tickets_by_ = common_clock_at_boot();
    last_ticket_ = std::max(*clock, last_ticket_);
    return std::to_string(*clock);
}

// A ticket is the time at which somebody began to wait, by the common clock. That may turn out to be another than it
// was taken for: more nodes' clocks are known now, or they were set. By its old ticket a waiter would stand before or
// behind everybody else, perhaps for hours.
void engine::move_tickets(instant now) {
    const auto clock = common_clock_at_boot();
    if (!clock || !tickets_by_) return;
    const auto by = static_cast<std::uint64_t>((*clock - *tickets_by_).count());
    if (std::chrono::abs(*clock - *tickets_by_) <= tickets_agree_within) return;
    tickets_by_ = clock;
    tickets_moved_ = now;
    last_ticket_ += by;
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // first: asking may end it
        if (!is_queued(h) || h.pending_->ticket.empty()) continue;
        give_ticket(h, std::to_string(std::stoull(h.pending_->ticket) + by), now);
    }
}

void engine::give_ticket(hold& h, std::string ticket, instant now) {
    h.pending_->ticket = std::move(ticket);
    if (h.pending_->ticket.empty()) return;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        node_hold& b = h.vote(i);
        if (b.is_queued() && b.ticket() != h.pending_->ticket) agents_[i]->ask_again(b, now);
    }
}

bool engine::is_queued(const hold& h) noexcept {
    return h.is_asked_for() && h.pending_->acquisition.limit.wait == waiting::in_queue;
}

// Once a second at most: a Cluster is one node, and its members may have clocks that differ.
void engine::clock_told(instant now) {
    if (several() && now >= tickets_moved_ + tickets_rest_for) move_tickets(now);
}

// True when a majority knows the hold by a token that is greater than all that were given before. A token that a
// majority of the votes shares is: one of these nodes was in every earlier majority, and gave a greater one. So is the
// greatest of a majority, once a majority has it.
bool engine::agree_on_token(hold& h, const node_holds& mine, instant now) {
    fencing_token greatest = 0;
    for (const node_hold* const vote : mine) {
        const auto same = [vote](const node_hold* other) { return other->token() == vote->token(); };
        if (static_cast<std::size_t>(std::count_if(mine.begin(), mine.end(), same)) >= majority()) {
            h.token_ = vote->token();
            return true;
        }
        greatest = std::max(greatest, vote->token());
    }
    for (node_hold* const vote : mine) {
        if (vote->token() < greatest && !vote->is_being_raised()) agent_of(*vote).raise(*vote, greatest, now);
    }
    return false;
}

// Not enough yet: what there is will not be kept for ever.
void engine::gather(hold& h, instant now) {
    if (!several() || h.state_ != state::wanted) return;
    pending_work::search& acquisition = under_way(h).acquisition;
    if (acquisition.gather_until != never || acquisition.limit.wait != waiting::in_queue || in_favour(h).empty())
        return;
    if (acquisition.gather_for == milliseconds(0)) acquisition.gather_for = first_gathering;
    acquisition.gather_until = now + acquisition.gather_for;
    set_timer(h);
}

void engine::check_gathering(hold& h, instant now) {
    if (!h.pending_ || now < h.pending_->acquisition.gather_until) return;
    pending_work::search& acquisition = h.pending_->acquisition;
    acquisition.gather_until = never;
    const node_holds mine = in_favour(h);
    if (mine.empty() || h.state_ != state::wanted) return;
    if (links_up(h) < majority()) return withdraw(h, now);
    // Enough, once they agree on a token; or there may be enough when those have answered that are asked now.
    const std::size_t answers_due = votes(h, [this](const node_hold& b) {
        return b.asks() && b.is_being_asked() && !b.is_queued() && agents_[b.node()]->link_is_up(b);
    });
    if (mine.size() + answers_due >= majority()) return gather(h, now);
    acquisition.gather_for =
        std::min<milliseconds>(acquisition.gather_for * 2, h.terms_.lease / longest_gathering_part);
    for (node_hold* const vote : mine) agent_of(*vote).yield(*vote, now);
}

// No majority can be reached: nobody should have to wait for what this one has. It is asked for anew, by another id and
// in its old place, when enough nodes can be reached again.
void engine::withdraw(hold& h, instant now) {
    hold& later = make_hold(h.terms_);
    pending_work& kept = under_way(later);
    const pending_work& until_now = *h.pending_;
    kept.acquisition.limit = until_now.acquisition.limit;
    if (until_now.acquisition.said_no) kept.acquisition.said_no = *until_now.acquisition.said_no;
    kept.acquisition.asked_at = until_now.acquisition.asked_at;
    kept.acquisition.reach_by = until_now.acquisition.reach_by;
    kept.ticket = until_now.ticket;
    kept.acquisition.request = end_acquisition(h);
    kept.acquisition.request->subject_ = &later;
    later.withdrawn_ = true;
    want_links(later);
    set_timer(later);
    h.state_ = state::leaving;
    const in_hand not_yet_forgotten(h);
    undo_votes(h, now);
    set_timer(h);
    not_yet_forgotten.let_go();
    forget_if_gone(h);
}

bool engine::waits(const hold& h) noexcept {
    return h.is_asked_for() && (h.withdrawn_ || h.state_ == state::wanted);
}

// Links come by themselves where something is sent. Whoever waits for links before it sends anything has to ask for
// them: a Cluster has many members, and none is dialled for nothing.
void engine::want_links(const hold& h) {
    for (std::size_t i = 0; i < agents_.size(); ++i) agents_[i]->want_link(h.vote(i));
}

void engine::owners_changed() {
    if (!several()) return;
    for (const hold& h : holds_) {
        if (waits(h)) want_links(h);
    }
}

void engine::links_changed(const lock_set& which, instant now) {
    if (!several()) return;
    move_tickets(now);
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // first: asking may end it
        if (is_queued(h) && h.pending_->ticket.empty())
            give_ticket(h, ticket_of(h.pending_->acquisition.asked_at), now);
        if (!waits(h) || !which.has(*h.terms_.keys) || links_up(h) < majority()) continue;
        if (h.withdrawn_) {
            ask_all(h, now);
        } else {
            ask_those_who_refused(h, now);
        }
    }
}

// Whoever waits in line wants every vote there is: also of a node that was out of reach, or in trouble, before.
void engine::ask_those_who_refused(hold& h, instant now) {
    if (h.pending_->acquisition.limit.wait != waiting::in_queue || h.withdrawn_ || h.held_back_) return;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        const bool can = agents_[i]->link_is_up(h.vote(i)) && h.vote(i).can_be_asked_again();
        if (can) agents_[i]->ask(h.vote(i), patience_of_votes(h), now);
    }
}

}  // namespace holdfast::engine
