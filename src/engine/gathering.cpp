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

}  // namespace

// What the clocks of the nodes show: the middle one, which a minority of wrong ones cannot move out of the right ones.
std::optional<std::chrono::microseconds> engine::common_clock(instant now) const {
    std::vector<std::chrono::microseconds> shown;
    for (const auto& one : voters_) {
        if (const auto clock = one->clock(now)) shown.push_back(*clock);
    }
    if (shown.empty()) return std::nullopt;
    const auto middle = shown.begin() + static_cast<std::ptrdiff_t>(shown.size() / 2);
    std::nth_element(shown.begin(), middle, shown.end());
    return *middle;
}

fencing_token engine::proposal(instant now) const {
    if (!several()) return 0;
    const auto clock = common_clock(now);
    return clock ? std::max(static_cast<fencing_token>(clock->count()), floor_ + 1) : 0;
}

std::string engine::make_ticket(instant now) {
    const auto clock = common_clock(now);
    if (!clock) return {};
    last_ticket_ = std::max(static_cast<std::uint64_t>(clock->count()), last_ticket_ + 1);
    return std::to_string(last_ticket_);
}

// True when a majority knows the hold by a token that is greater than all that were given before. A token that a
// majority of the votes shares is: one of these nodes was in every earlier majority, and gave a greater one. So is the
// greatest of a majority, once a majority has it.
bool engine::agree_on_token(hold& h, const ballots& mine, instant now) {
    fencing_token greatest = 0;
    for (const ballot* const vote : mine) {
        const auto same = [vote](const ballot* other) { return other->token() == vote->token(); };
        if (static_cast<std::size_t>(std::count_if(mine.begin(), mine.end(), same)) >= majority()) {
            h.token_ = vote->token();
            return true;
        }
        greatest = std::max(greatest, vote->token());
    }
    for (ballot* const vote : mine) {
        if (vote->token() < greatest && !vote->is_being_raised()) voter_of(*vote).raise(*vote, greatest, now);
    }
    return false;
}

// Not enough yet: what there is will not be kept for ever.
void engine::gather(hold& h, instant now) {
    if (!several() || h.state_ != state::wanted) return;
    affairs::search& quest = under_way(h).quest;
    if (quest.gather_until != never || quest.limit.wait != waiting::in_line || in_favour(h).empty()) return;
    if (quest.gather_for == milliseconds(0)) quest.gather_for = first_gathering;
    quest.gather_until = now + quest.gather_for;
    set_timer(h);
}

void engine::check_gathering(hold& h, instant now) {
    if (!h.affairs_ || now < h.affairs_->quest.gather_until) return;
    affairs::search& quest = h.affairs_->quest;
    quest.gather_until = never;
    const ballots mine = in_favour(h);
    if (mine.empty() || h.state_ != state::wanted) return;
    if (links_up(h) < majority()) return withdraw(h, now);
    // Enough, once they agree on a token; or there may be enough when those have answered that are asked now.
    const std::size_t answers_due = votes(h, [this](const ballot& b) {
        return b.asks() && b.is_being_asked() && !b.in_line() && voters_[b.node()]->link_is_up(b);
    });
    if (mine.size() + answers_due >= majority()) return gather(h, now);
    quest.gather_for = std::min<milliseconds>(quest.gather_for * 2, h.terms_.lease / longest_gathering_part);
    for (ballot* const vote : mine) voter_of(*vote).yield(*vote, now);
}

// No majority can be reached: nobody should have to wait for what this one has. It is asked for anew, by another id and
// in its old place, when enough nodes can be reached again.
void engine::withdraw(hold& h, instant now) {
    hold& later = make_hold(h.terms_);
    affairs& kept = under_way(later);
    const affairs& until_now = *h.affairs_;
    kept.quest.limit = until_now.quest.limit;
    if (until_now.quest.said_no) kept.quest.said_no = *until_now.quest.said_no;
    kept.quest.asked_at = until_now.quest.asked_at;
    kept.ticket = until_now.ticket;
    kept.quest.request = end_quest(h);
    kept.quest.request->subject_ = &later;
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
    for (std::size_t i = 0; i < voters_.size(); ++i) voters_[i]->want_link(h.vote(i));
}

void engine::owners_changed() {
    if (!several()) return;
    for (const hold& h : holds_) {
        if (waits(h)) want_links(h);
    }
}

void engine::links_changed(const lock_set& which, instant now) {
    if (!several()) return;
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // first: asking may end it
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
    if (h.affairs_->quest.limit.wait != waiting::in_line || h.withdrawn_) return;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        const bool can = voters_[i]->link_is_up(h.vote(i)) && h.vote(i).can_be_asked_again();
        if (can) voters_[i]->ask(h.vote(i), patience_of_votes(h), now);
    }
}

}  // namespace holdfast::engine
