// Keeping a hold, holding less, and letting go: what the nodes' answers add up to.

#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

// What is held is what a vote must be for: one that only reads does not back a hold that writes.
bool engine::is_backed_by(const hold& h, const ballot& b) noexcept {
    return h.exclusive_ > 0 ? b.writes() : b.counts();
}

std::size_t engine::backing(const hold& h) const {
    return votes(h, [&h](const ballot& b) { return is_backed_by(h, b); });
}

// The majority-th longest of the votes' validities; there must be a majority.
instant engine::validity_of(const ballots& backing) const {
    boost::container::small_vector<instant, 7> ends;
    for (const ballot* const vote : backing) ends.push_back(vote->valid_until());
    const auto decisive = ends.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
    std::nth_element(ends.begin(), decisive, ends.end(), std::greater<>());
    return *decisive;
}

void engine::count_validity(hold& h) {
    ballots backing;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (is_backed_by(h, h.ballots_[i])) backing.push_back(&h.ballots_[i]);
    }
    if (backing.size() < majority()) return;
    h.valid_until_ = validity_of(backing);
    if (h.listener_ != nullptr) h.listener_->on_validity(h.valid_until_);
}

void engine::extended(ballot& b, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::held) count_validity(h);
    count_again(h, now);
}

// A majority that was too late is one again, or had to wait for a token.
void engine::count_again(hold& h, instant now) {
    if (h.quest_ != nullptr && in_favour(h).size() >= majority()) count(h, how::asked, now);
}

void engine::lost(ballot& b, errc why, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::wanted) {
        voter_of(b).ask(b, patience_of_votes(h), now);
        return;
    }
    if (h.state_ != state::held) return;
    const refusal is_lost{errc::lost, "", {}, {}};
    take(b, answer_to::renewal, {is_lost});
    take(b, answer_to::change, {is_lost});
    one_less(h, why, now);
}

// A node votes for it no more, or never did. What is left may be a majority, also of an upgrade under way.
void engine::one_less(hold& h, errc why, instant now) {
    if (backing(h) < majority()) return lose(h, why, now);
    count_validity(h);
    tell_votes(h, votes_now::fewer);
    count_again(h, now);
    check_hope(h, now);
}

// A node that is merely later than the others is nothing to tell of; one that comes back is.
void engine::tell_votes(hold& h, votes_now what) {
    if (!several() || (what == votes_now::more && !h.shrunk_)) return;
    const std::size_t in_favour = backing(h);
    if (what == votes_now::fewer && in_favour == h.told_votes_) return;
    h.told_votes_ = in_favour;
    h.shrunk_ = in_favour < voters_.size();
    watcher_.on_votes(h.terms_.keys->lock, what, {.in_favour = in_favour, .nodes = voters_.size()});
}

// Nodes that do not vote for it (they forgot it, or were out of reach, or had another holder) are asked again, if what
// is held is still what was asked for. They are not waited for, and lost is lost: this only makes a majority firmer.
void engine::heal(hold& h, instant now) {
    if (now < h.heal_at_) return;
    h.heal_at_ = now + h.terms_.lease / heal_part;
    const bool as_asked = (h.exclusive_ > 0) == (h.terms_.want == access::exclusive);
    if (!as_asked) return;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        ballot& b = h.ballots_[i];
        if (b.can_be_asked_again()) voters_[i]->ask(b, {waiting::not_at_all, never}, now);
    }
}

void engine::lose(hold& h, errc why, instant now) {
    h.state_ = state::lost;
    h.heal_at_ = never;
    const refusal is_lost{errc::lost, "", {}, {}};
    answer(h.renewing_, is_lost);
    answer(h.changing_, is_lost);
    watcher_.on_lost(h.terms_.keys->lock, why);
    if (h.listener_ != nullptr) h.listener_->on_lost(why);
    acquire_request* const waiting_for_more = end_quest(h);
    set_timer(h);
    for (std::size_t i = 0; i < voters_.size(); ++i) voters_[i]->let_run_out(h.ballots_[i], now);
    if (waiting_for_more != nullptr) waiting_for_more->refused(is_lost);
}

void engine::renew_votes(hold& h, instant now) {
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (h.ballots_[i].counts()) voters_[i]->renew(h.ballots_[i], now);
    }
}

void engine::renew(hold& h, hold_request& request, instant now) {
    if (h.state_ == state::held && ran_out(h, now)) lose(h, errc::lost, now);
    if (h.state_ != state::held) return request.answered(refusal{errc::lost, "", {}, {}});
    if (h.renewing_.request != nullptr) {
        return request.answered(refusal{errc::too_many, "a renewal is under way", {}, {}});
    }
    open_poll(h, answer_to::renewal, &request, now + settings_.request_timeout);
    renew_votes(h, now);
    set_timer(h);
}

void engine::renewed(ballot& b, const node_answer& said, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::wanted) return count_again(h, now);
    if (h.state_ != state::held) return;
    if (!said.why_not) {
        const instant before = h.valid_until_;
        count_validity(h);
        if (h.valid_until_ > before) watcher_.on_renewed();
    }
    // The outcome of a renewal whose link broke is unknown, and it is asked again on the next one.
    const bool unknown = said.why_not && said.why_not->code == errc::outcome_unknown;
    if (unknown && h.renewing_.request != nullptr) {
        h.renewing_.asked_in_vain = true;
        return voter_of(b).renew(b, now);
    }
    take(b, answer_to::renewal, said);
    set_timer(h);
    count_again(h, now);
}

void engine::downgrade(hold& h, hold_request& request, instant answer_by, instant now) {
    ++h.shared_;
    release(h, access::exclusive, &request, answer_by, now);
}

void engine::changed(ballot& b, const node_answer& said, instant) {
    hold& h = b.whole();
    if (h.state_ != state::held) return;
    count_validity(h);
    take(b, answer_to::change, said);
    set_timer(h);
}

void engine::release(hold& h, access level, hold_request* request, instant answer_by, instant now) {
    HOLDFAST_ASSERT(h.levels(level) > 0);
    --(level == access::shared ? h.shared_ : h.exclusive_);
    if (h.exclusive_ + h.shared_ > 0) return release_level(h, level, request, answer_by, now);
    if (const auto listener = std::exchange(h.listener_, nullptr)) listener->on_gone();
    disown(h);
    watcher_.on_released(now - h.granted_at_);
    if (h.state_ == state::lost) {
        // The caller is told at once; what may be left on the servers is cleared all the same.
        if (request != nullptr) request->answered(refusal{errc::lost, "", {}, {}});
        request = nullptr;
    }
    const refusal meanwhile{errc::not_held, "released meanwhile", {}, {}};
    h.state_ = state::leaving;
    h.heal_at_ = never;
    answer(h.renewing_, meanwhile);
    answer(h.changing_, meanwhile);
    acquire_request* const waiting_for_more = end_quest(h);
    open_poll(h, answer_to::release, request, answer_by);
    const in_hand kept(h);
    for (std::size_t i = 0; i < voters_.size(); ++i) voters_[i]->release(h.ballots_[i], now);
    set_timer(h);
    if (waiting_for_more != nullptr) waiting_for_more->refused(meanwhile);
    kept.let_go();
    forget_if_gone(h);
}

// Others of its levels remain: the nodes hear of it only if what they have becomes less.
void engine::release_level(hold& h, access level, hold_request* request, instant answer_by, instant now) {
    if (h.state_ != state::held) {
        if (request != nullptr) request->answered(refusal{errc::lost, "", {}, {}});
        return;
    }
    const bool downgrades = level == access::exclusive && h.exclusive_ == 0;
    const bool stops_reading = level == access::shared && h.shared_ == 0;
    if (!downgrades && request != nullptr) request->answered(std::nullopt);
    if (downgrades) {
        // One node's answer to the last downgrade may still be missing, when a majority has granted it anew.
        answer(h.changing_, refusal{errc::outcome_unknown, "downgraded again meanwhile", {}, {}});
        open_poll(h, answer_to::change, request, answer_by);
    }
    if (downgrades || stops_reading) {
        const shape rest = downgrades ? shape::reading : shape::writing;
        for (std::size_t i = 0; i < voters_.size(); ++i) {
            // A node that has not answered yet would grant all that was asked for.
            if (h.ballots_[i].asks()) voters_[i]->give_up(h.ballots_[i], now);
            // Nor is one of use that would have nothing left.
            if (stops_reading && h.ballots_[i].counts() && !h.ballots_[i].writes()) {
                take(h.ballots_[i], answer_to::renewal, {refusal{errc::not_held, "", {}, {}}});
                voters_[i]->release(h.ballots_[i], now);
            }
            voters_[i]->make_less(h.ballots_[i], rest, now);
        }
    }
    set_timer(h);
}

void engine::released(ballot& b, const node_answer& said, instant) {
    hold& h = b.whole();
    take(b, answer_to::release, said);
    set_timer(h);
    forget_if_gone(h);
}

void engine::gone(ballot& b) {
    hold& h = b.whole();
    const refusal unknown{errc::outcome_unknown, voter_of(b).server(), {}, {}};
    take(b, answer_to::release, {unknown});
    forget_if_gone(h);
}

// --- answers of many that become one

hold::poll_of_nodes& engine::poll_about(hold& h, answer_to what) noexcept {
    return what == answer_to::release ? h.releasing_ : what == answer_to::renewal ? h.renewing_ : h.changing_;
}

// Of those that vote for the hold; what others say is not asked for.
void engine::open_poll(hold& h, answer_to what, hold_request* request, instant answer_by) {
    hold::poll_of_nodes& poll = poll_about(h, what);
    poll = {};
    poll.request = request;
    if (request == nullptr) return;
    poll.answer_by = answer_by;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        h.ballots_[i].take_expected(what);
        if (what == answer_to::renewal ? !is_backed_by(h, h.ballots_[i]) : !h.ballots_[i].counts()) continue;
        h.ballots_[i].expect(what);
        ++poll.open;
    }
}

// Done when a majority has done it; failed when no majority can have.
void engine::take(ballot& b, answer_to what, const node_answer& said) {
    hold::poll_of_nodes& poll = poll_about(b.whole(), what);
    if (!b.take_expected(what) || poll.request == nullptr) return;
    --poll.open;
    if (said.why_not) {
        if (!poll.why_not) poll.why_not = said.why_not;
    } else {
        ++poll.done;
        poll.best.holders = std::max(poll.best.holders, said.holders);
        poll.best.waiters = std::max(poll.best.waiters, said.waiters);
    }
    if (poll.done >= majority()) return answer(poll, std::nullopt);
    if (poll.done + poll.open < majority()) answer(poll, poll.why_not);
}

void engine::answer(hold::poll_of_nodes& poll, const std::optional<refusal>& why_not) {
    hold_request* const asked = std::exchange(poll.request, nullptr);
    poll.answer_by = never;
    if (asked == nullptr) return;
    if (!why_not) asked->left_behind(poll.best.holders, poll.best.waiters);
    asked->answered(why_not);
}

void engine::check(hold& h, instant now) {
    const auto late = [&](hold::poll_of_nodes& poll, const char* what) {
        if (now < poll.answer_by) return;
        answer(poll, refusal{errc::outcome_unknown, std::string(what) + " goes on in the background", {}, {}});
    };
    late(h.releasing_, "the release");
    late(h.changing_, "the downgrade");
    if (now >= h.renewing_.answer_by) {
        const bool asked = h.renewing_.asked_in_vain || links_up() >= majority();
        const errc why = asked ? errc::request_timed_out : errc::unreachable;
        answer(h.renewing_, refusal{why, voters_[0]->server(), {}, {}});
    }
    heal(h, now);
    set_timer(h);
    if (h.quest_ != nullptr && several() && now >= h.limit_.deadline) return fail(h, too_late(h, now), now);
    check_gathering(h, now);
}

}  // namespace holdfast::engine
