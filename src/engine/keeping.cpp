// Keeping a hold, holding less, and letting go: what the nodes' answers add up to.

#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

// What is held is what a vote must be for: one that only reads does not back a hold that writes.
bool engine::is_backed_by(const hold& h, const node_hold& b) noexcept {
    return h.exclusive_ > 0 ? b.writes() : b.counts();
}

std::size_t engine::backing(const hold& h) const {
    return votes(h, [&h](const node_hold& b) { return is_backed_by(h, b); });
}

// The majority-th longest of the votes' validities; there must be a majority.
instant engine::validity_of(const node_holds& backing) const {
    if (backing.size() == 1) return backing.front()->valid_until();
    boost::container::small_vector<instant, 7> ends;
    for (const node_hold* const vote : backing) ends.push_back(vote->valid_until());
    const auto decisive = ends.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
    std::nth_element(ends.begin(), decisive, ends.end(), std::greater<>());
    return *decisive;
}

void engine::count_validity(hold& h) {
    node_holds backing;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (is_backed_by(h, h.vote(i))) backing.push_back(&h.vote(i));
    }
    if (backing.size() < majority()) return;
    h.valid_until_ = validity_of(backing);
    if (h.listener_ != nullptr) h.listener_->on_validity(h.valid_until_);
}

void engine::extended(node_hold& b, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::held) count_validity(h);
    count_again(h, now);
}

// A majority that was too late is one again, or had to wait for a token.
void engine::count_again(hold& h, instant now) {
    if (h.is_asked_for() && in_favour(h).size() >= majority()) count(h, how::asked, now);
}

void engine::lost(node_hold& b, errc why, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::wanted) {
        agent_of(b).ask(b, patience_of_votes(h), now);
        return;
    }
    if (h.state_ != state::held) return;
    const refusal is_lost{errc::lost, "", {}, {}};
    take(b, answer_to::renewal, {is_lost});
    take(b, answer_to::change, {is_lost});
    one_less(h, why, now);
}

// The holder is told to stop, and the hold is renewed no longer; but the nodes keep it until the holder has stopped and
// releases it, or the lease ends. So nobody else has the lock while the holder still works. One node's word is enough.
void engine::recalled(node_hold& b, instant now) {
    if (b.whole().state_ == state::held) lose(b.whole(), errc::lost, now);
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
    h.told_votes_ = static_cast<std::uint16_t>(in_favour);
    h.shrunk_ = in_favour < agents_.size();
    watcher_.on_votes(h.terms_.keys->lock(), what, {.in_favour = in_favour, .nodes = agents_.size()});
}

// Nodes that do not vote for it (they forgot it, or were out of reach, or had another holder) are asked again, if what
// is held is still what was asked for. They are not waited for, and lost is lost: this only makes a majority firmer.
void engine::heal(hold& h, instant now) {
    if (!h.pending_ || now < h.pending_->heal_at) return;
    h.pending_->heal_at = now + h.terms_.lease / heal_part;
    const bool as_asked = (h.exclusive_ > 0) == (h.terms_.want == access::exclusive);
    if (!as_asked) return;
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        node_hold& b = h.vote(i);
        if (b.can_be_asked_again()) agents_[i]->ask(b, {waiting::not_at_all, never}, now);
    }
}

void engine::lose(hold& h, errc why, instant now) {
    h.state_ = state::lost;
    if (h.pending_) h.pending_->heal_at = never;
    const refusal is_lost{errc::lost, "", {}, {}};
    answer(h, answer_to::renewal, is_lost);
    answer(h, answer_to::change, is_lost);
    watcher_.on_lost(h.terms_.keys->lock(), why);
    if (h.listener_ != nullptr) h.listener_->on_lost(why);
    acquire_completion* const waiting_for_more = end_acquisition(h);
    set_timer(h);
    for (std::size_t i = 0; i < agents_.size(); ++i) agents_[i]->let_run_out(h.vote(i), now);
    if (waiting_for_more != nullptr) waiting_for_more->refused(is_lost);
}

void engine::renew_votes(hold& h, instant now) {
    for (std::size_t i = 0; i < agents_.size(); ++i) {
        if (h.vote(i).counts()) agents_[i]->renew(h.vote(i), now);
    }
}

void engine::renew(hold& h, hold_completion& request, instant now) {
    if (h.state_ == state::held && ran_out(h, now)) lose(h, errc::lost, now);
    if (h.state_ != state::held) return request.answered(refusal{errc::lost, "", {}, {}});
    if (is_waited_for(h, answer_to::renewal)) {
        return request.answered(refusal{errc::too_many, "a renewal is under way", {}, {}});
    }
    open_poll(h, answer_to::renewal, &request, now + settings_.request_timeout);
    renew_votes(h, now);
    set_timer(h);
}

void engine::renewed(node_hold& b, const node_answer& said, instant now) {
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
    if (unknown && is_waited_for(h, answer_to::renewal)) {
        h.pending_->renewing.asked_in_vain = true;
        return agent_of(b).renew(b, now);
    }
    take(b, answer_to::renewal, said);
    set_timer(h);
    count_again(h, now);
}

void engine::downgrade(hold& h, hold_completion& request, instant answer_by, instant now) {
    ++h.shared_;
    release(h, access::exclusive, &request, answer_by, now);
}

void engine::changed(node_hold& b, const node_answer& said, instant) {
    hold& h = b.whole();
    if (h.state_ != state::held) return;
    count_validity(h);
    take(b, answer_to::change, said);
    set_timer(h);
}

void engine::release(hold& h, access level, hold_completion* request, instant answer_by, instant now) {
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
    constexpr std::string_view meanwhile = "released meanwhile";
    h.state_ = state::leaving;
    if (h.pending_) h.pending_->heal_at = never;
    refuse(h, answer_to::renewal, errc::not_held, meanwhile);
    refuse(h, answer_to::change, errc::not_held, meanwhile);
    acquire_completion* const waiting_for_more = end_acquisition(h);
    open_poll(h, answer_to::release, request, answer_by);
    const in_hand kept(h);
    for (std::size_t i = 0; i < agents_.size(); ++i) agents_[i]->release(h.vote(i), now);
    set_timer(h);
    if (waiting_for_more != nullptr) waiting_for_more->refused({errc::not_held, std::string(meanwhile), {}, {}});
    kept.let_go();
    forget_if_gone(h);
}

// Others of its levels remain: the nodes hear of it only if what they have becomes less.
void engine::release_level(hold& h, access level, hold_completion* request, instant answer_by, instant now) {
    if (h.state_ != state::held) {
        if (request != nullptr) request->answered(refusal{errc::lost, "", {}, {}});
        return;
    }
    const bool downgrades = level == access::exclusive && h.exclusive_ == 0;
    const bool stops_reading = level == access::shared && h.shared_ == 0;
    if (!downgrades && request != nullptr) request->answered(std::nullopt);
    if (downgrades) {
        // One node's answer to the last downgrade may still be missing, when a majority has granted it anew.
        refuse(h, answer_to::change, errc::outcome_unknown, "downgraded again meanwhile");
        open_poll(h, answer_to::change, request, answer_by);
    }
    if (downgrades || stops_reading) {
        const shape rest = downgrades ? shape::reading : shape::writing;
        for (std::size_t i = 0; i < agents_.size(); ++i) {
            // A node that has not answered yet would grant all that was asked for.
            if (h.vote(i).asks()) agents_[i]->give_up(h.vote(i), now);
            // Nor is one of use that would have nothing left.
            if (stops_reading && h.vote(i).counts() && !h.vote(i).writes()) {
                take(h.vote(i), answer_to::renewal, {refusal{errc::not_held, "", {}, {}}});
                agents_[i]->release(h.vote(i), now);
            }
            agents_[i]->make_less(h.vote(i), rest, now);
        }
    }
    set_timer(h);
}

void engine::released(node_hold& b, const node_answer& said, instant) {
    hold& h = b.whole();
    take(b, answer_to::release, said);
    set_timer(h);
    forget_if_gone(h);
}

void engine::gone(node_hold& b) {
    hold& h = b.whole();
    const refusal unknown{errc::outcome_unknown, agent_of(b).server(), {}, {}};
    take(b, answer_to::release, {unknown});
    forget_if_gone(h);
}

// --- answers of many that become one

pending_work::poll_of_nodes& engine::poll_about(pending_work& all, answer_to what) noexcept {
    return what == answer_to::release ? all.releasing : what == answer_to::renewal ? all.renewing : all.changing;
}

bool engine::is_waited_for(const hold& h, answer_to what) noexcept {
    return h.pending_ && poll_about(*h.pending_, what).request != nullptr;
}

// Of those that vote for the hold; what others say is not asked for.
void engine::open_poll(hold& h, answer_to what, hold_completion* request, instant answer_by) {
    if (h.pending_) poll_about(*h.pending_, what).clear();
    if (request == nullptr) return;
    pending_work::poll_of_nodes& poll = poll_about(under_way(h), what);
    poll.request = request;
    poll.answer_by = answer_by;
    for (node_hold& b : h.votes()) {
        b.take_expected(what);
        if (what == answer_to::renewal ? !is_backed_by(h, b) : !b.counts()) continue;
        b.expect(what);
        ++poll.open;
    }
}

// Done when a majority has done it; failed when no majority can have.
void engine::take(node_hold& b, answer_to what, const node_answer& said) {
    hold& h = b.whole();
    if (!b.take_expected(what) || !is_waited_for(h, what)) return;
    pending_work::poll_of_nodes& poll = poll_about(*h.pending_, what);
    --poll.open;
    if (said.why_not) {
        if (!poll.why_not) poll.why_not = *said.why_not;
    } else {
        ++poll.done;
        poll.holders = std::max(poll.holders, said.holders);
        poll.waiters = std::max(poll.waiters, said.waiters);
    }
    if (poll.done >= majority()) return answer(h, what, std::nullopt);
    if (poll.done + poll.open < majority()) answer(h, what, poll.why_not.copy());
}

// The one who asked may do anything then, even end the hold.
void engine::answer(hold& h, answer_to what, std::optional<refusal> why_not) {
    if (!h.pending_) return;
    pending_work::poll_of_nodes& poll = poll_about(*h.pending_, what);
    hold_completion* const asked = std::exchange(poll.request, nullptr);
    poll.answer_by = never;
    if (asked == nullptr) return;
    if (!why_not) asked->left_behind(poll.holders, poll.waiters);
    asked->answered(why_not);
}

// Whoever is not asked for an answer makes up no text for it.
void engine::refuse(hold& h, answer_to what, errc code, std::string_view detail) {
    if (is_waited_for(h, what)) answer(h, what, refusal{code, std::string(detail), {}, {}});
}

void engine::refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail) {
    if (h.pending_ && now >= poll_about(*h.pending_, what).answer_by) refuse(h, what, code, detail);
}

void engine::check(hold& h, instant now) {
    refuse_late(h, answer_to::release, now, errc::outcome_unknown, "the release goes on in the background");
    refuse_late(h, answer_to::change, now, errc::outcome_unknown, "the downgrade goes on in the background");
    const bool asked = (h.pending_ && h.pending_->renewing.asked_in_vain) || links_up(h) >= majority();
    refuse_late(h, answer_to::renewal, now, asked ? errc::request_timed_out : errc::unreachable, agents_[0]->server());
    heal(h, now);
    set_timer(h);
    if (h.is_asked_for() && (several() || h.held_back_) && now >= h.pending_->acquisition.limit.deadline) {
        return fail(h, too_late(h, now), now);
    }
    if (h.is_asked_for() && now >= h.pending_->acquisition.reach_by) return check_reach(h, now);
    if (h.held_back_) return ask_if_room(h, now);
    check_gathering(h, now);
}

}  // namespace holdfast::engine
