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
bool engine::agree_on_token(hold& h, instant now) {
    const ballots mine = in_favour(h);
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
    if (!several() || h.state_ != state::wanted || h.gather_until_ != never) return;
    if (h.limit_.wait != waiting::in_line || in_favour(h).empty()) return;
    if (h.gather_for_ == milliseconds(0)) h.gather_for_ = first_gathering;
    h.gather_until_ = now + h.gather_for_;
    set_timer(h);
}

void engine::check_gathering(hold& h, instant now) {
    if (now < h.gather_until_) return;
    h.gather_until_ = never;
    const ballots mine = in_favour(h);
    if (mine.empty() || h.state_ != state::wanted) return;
    if (links_up() < majority()) return withdraw(h, now);
    // Enough, once they agree on a token; or there may be enough when those have answered that are asked now.
    const std::size_t answers_due = votes(h, [this](const ballot& b) {
        return b.asks() && b.is_being_asked() && !b.in_line() && voters_[b.node()]->link_is_up();
    });
    if (mine.size() + answers_due >= majority()) return gather(h, now);
    h.gather_for_ = std::min<milliseconds>(h.gather_for_ * 2, h.terms_.lease / longest_gathering_part);
    for (ballot* const vote : mine) voter_of(*vote).yield(*vote, now);
}

// No majority can be reached: nobody should have to wait for what this one has. It is asked for anew, by another id and
// in its old place, when enough nodes can be reached again.
void engine::withdraw(hold& h, instant now) {
    hold& later = make_hold(h.terms_);
    later.limit_ = h.limit_;
    later.asked_at_ = h.asked_at_;
    later.ticket_ = h.ticket_;
    later.said_no_ = h.said_no_;
    later.withdrawn_ = true;
    later.quest_ = end_quest(h);
    later.quest_->subject_ = &later;
    set_timer(later);
    h.state_ = state::leaving;
    const in_hand kept(h);
    undo_votes(h, now);
    set_timer(h);
    kept.let_go();
    forget_if_gone(h);
}

void engine::links_changed(instant now) {
    if (!several() || links_up() < majority()) return;
    for (auto next = holds_.begin(); next != holds_.end();) {
        hold& h = *next++;  // first: asking may end it
        if (h.withdrawn_ && h.quest_ != nullptr) {
            ask_all(h, now);
        } else if (h.state_ == state::wanted && h.quest_ != nullptr) {
            ask_those_who_refused(h, now);
        }
    }
}

// Whoever waits in line wants every vote there is: also of a node that was out of reach, or in trouble, before.
void engine::ask_those_who_refused(hold& h, instant now) {
    if (h.limit_.wait != waiting::in_line || h.withdrawn_) return;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        const bool can = voters_[i]->link_is_up() && h.ballots_[i].can_be_asked_again();
        if (can) voters_[i]->ask(h.ballots_[i], patience_of_votes(h), now);
    }
}

}  // namespace holdfast::engine
