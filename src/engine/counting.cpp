// Acquiring and upgrading: all nodes are asked at once, and their votes are counted.

#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {
namespace {

// Of what is asked for: an upgrade is had where it writes.
bool is_in_favour(const ballot& vote, bool upgrades) {
    return upgrades ? vote.writes() : vote.counts();
}

// Says nothing of the lock, only of the way to the node.
bool is_silence(errc code) {
    return code == errc::unreachable || code == errc::request_timed_out;
}

}  // namespace

bool engine::reads_a_stripe(const acquire_terms& terms) {
    if (!terms.stripes || terms.want != access::exclusive || terms.owner == owner_id::nobody) return false;
    return std::any_of(terms.stripes->begin(), terms.stripes->end(), [&](const lock_keys& stripe) {
        const hold* const mine = find(terms.owner, stripe);
        return mine != nullptr && mine->exclusive_ == 0;
    });
}

void engine::acquire(acquire_request& request, acquire_terms terms, instant now) {
    if (reads_a_stripe(terms)) {
        return request.refused(
            {errc::would_deadlock, "the caller reads it, and a striped lock cannot be upgraded", {}, {}});
    }
    if (hold* const mine = find(terms.owner, *terms.keys)) return reenter(*mine, request, terms, now);
    hold& h = holds_.emplace_back();
    h.self_ = std::prev(holds_.end());
    h.id_ = hold_id(client_, ++next_counter_, random_);
    h.terms_ = std::move(terms);
    h.ballots_ = std::make_unique<ballot[]>(voters_.size());
    for (std::size_t i = 0; i < voters_.size(); ++i) h.ballots_[i].belong(h, i);
    begin_quest(h, request, h.terms_.limit, now);
    h.opening_ = true;
    for (std::size_t i = 0; i < voters_.size(); ++i) voters_[i]->ask(h.ballots_[i], h.limit_, now);
    h.opening_ = false;
    check_hope(h, now);
}

void engine::reenter(hold& mine, acquire_request& request, const acquire_terms& terms, instant now) {
    // After a sleep the caller may be here before the timer: what ran out meanwhile is not entered again.
    if (mine.state_ == state::held && ran_out(mine, now)) lose(mine, errc::lost, now);
    if (mine.state_ != state::held) {
        return request.refused({errc::lost, "the hold was lost; release it as often as it was taken first", {}, {}});
    }
    if (mine.terms_.kind != terms.kind) {
        return request.refused({errc::wrong_type, "the caller holds a lock of another kind by this name", {}, {}});
    }
    if (terms.want == access::exclusive) return upgrade(mine, request, terms.limit, now);
    if (is_too_deep(mine)) return request.refused({errc::too_deep, "", {}, {}});
    ++mine.shared_;
    reentered(mine, request, now);
}

bool engine::is_too_deep(const hold& h) const noexcept {
    return h.exclusive_ + h.shared_ >= settings_.max_depth;
}

void engine::reentered(hold& h, acquire_request& request, instant now) {
    watcher_.on_reentered();
    if (h.terms_.renewing == renewal::none) renew_votes(h, now);
    request.acquired(h);
}

void engine::upgrade(hold& h, acquire_request& request, patience limit, instant now) {
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
    if (h.quest_ != nullptr) {
        return request.refused({errc::too_many, "an upgrade of this hold is under way", {}, {}});
    }
    begin_quest(h, request, limit, now);
    h.opening_ = true;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (h.ballots_[i].counts()) voters_[i]->upgrade(h.ballots_[i], limit, now);
    }
    h.opening_ = false;
    check_hope(h, now);
}

void engine::begin_quest(hold& h, acquire_request& request, patience limit, instant now) {
    h.quest_ = &request;
    request.subject_ = &h;
    h.limit_ = limit;
    h.said_no_.reset();
    h.asked_at_ = now;
}

void engine::cancel(acquire_request& request, errc why, instant now) {
    hold* const h = request.subject_;
    if (h == nullptr || h->quest_ != &request) return;
    fail(*h, {why, "", {}, {}}, now);
}

// --- what the nodes say

void engine::granted(ballot& b, how got, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::leaving || h.state_ == state::lost) return;  // release() is on its way to this node, too
    if (h.state_ == state::held && h.quest_ == nullptr) return count_validity(h);  // one vote more than needed
    count(h, got, now);
}

// A majority has it: so has the caller.
void engine::count(hold& h, how got, instant now) {
    const bool upgrades = h.state_ == state::held;
    const auto in_favour = [&](const ballot& b) { return is_in_favour(b, upgrades); };
    if (votes(h, in_favour) < majority()) return;
    h.token_ = 0;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (in_favour(h.ballots_[i])) h.token_ = std::max(h.token_, h.ballots_[i].token());
    }
    h.state_ = state::held;
    if (upgrades) {
        h.exclusive_ = 1;
        if (h.listener_ != nullptr) h.listener_->on_token(h.token_);
    } else {
        (h.terms_.want == access::shared ? h.shared_ : h.exclusive_) = 1;
        if (h.terms_.owner != owner_id::nobody) owned_.emplace(owned_lock{h.terms_.owner, h.terms_.keys->lock}, &h);
        h.granted_at_ = now;
    }
    count_validity(h);
    watcher_.on_acquired(now - h.asked_at_, got);
    acquire_request* const request = end_quest(h);
    leave_lines(h, now);
    request->acquired(h);
}

void engine::queued(ballot& b, instant now) {
    hold& h = b.whole();
    // It has the lock already, by others' votes: here it would only stand in the way.
    if (h.state_ == state::held && h.quest_ == nullptr) voter_of(b).give_up(b, now);
}

void engine::leave_lines(hold& h, instant now) {
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (h.ballots_[i].in_line()) voters_[i]->give_up(h.ballots_[i], now);
    }
}

void engine::refused(ballot& b, const refusal& why, instant now) {
    hold& h = b.whole();
    if (h.quest_ == nullptr) return forget_if_gone(h);
    if (!h.said_no_ || !is_silence(why.code)) h.said_no_ = why;
    if (!h.opening_) check_hope(h, now);
}

// Ends a quest that cannot succeed any more.
void engine::check_hope(hold& h, instant now) {
    if (h.quest_ == nullptr || !h.said_no_) return;
    const bool silence = is_silence(h.said_no_->code);
    // One node's refusal of an upgrade is final: two upgrades must not each wait for nodes that the other has.
    const bool upgrades = h.state_ == state::held;
    const bool final = upgrades && !silence;
    const std::size_t hope =
        votes(h, [&](const ballot& one) { return is_in_favour(one, upgrades) || one.asks(); });
    if (!final && hope >= majority()) return;
    refusal told = *h.said_no_;
    if (voters_.size() > 1 && silence) told.code = errc::no_quorum;
    fail(h, std::move(told), now);
}

// Ends the quest and undoes what there is of it; what was held before stays held.
void engine::fail(hold& h, refusal why, instant now) {
    acquire_request* const request = end_quest(h);
    const bool upgrades = h.state_ == state::held;
    if (!upgrades) h.state_ = state::leaving;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        ballot& b = h.ballots_[i];
        if (b.asks()) {
            voters_[i]->give_up(b, now);
        } else if (b.counts() && !upgrades) {
            voters_[i]->release(b, now);
        }
        if (upgrades) voters_[i]->make_less(b, shape::reading, now);
    }
    watcher_.on_refused();
    forget_if_gone(h);
    request->refused(why);
}

acquire_request* engine::end_quest(hold& h) {
    acquire_request* const request = std::exchange(h.quest_, nullptr);
    if (request != nullptr) request->subject_ = nullptr;
    h.gather_until_ = never;
    return request;
}

}  // namespace holdfast::engine
