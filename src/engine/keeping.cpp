// Keeping a hold, holding less, and letting go: what the nodes' answers add up to.

#include "engine/engine.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::engine {

// The majority-th longest of the votes' validities.
void engine::count_validity(hold& h) {
    boost::container::small_vector<instant, 7> ends;
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (h.ballots_[i].counts()) ends.push_back(h.ballots_[i].valid_until());
    }
    if (ends.size() < majority()) return;
    const auto decisive = ends.begin() + static_cast<std::ptrdiff_t>(majority() - 1);
    std::nth_element(ends.begin(), decisive, ends.end(), std::greater<>());
    h.valid_until_ = *decisive;
    if (h.listener_ != nullptr) h.listener_->on_validity(h.valid_until_);
}

void engine::extended(ballot& b, instant) {
    if (b.whole().state_ == state::held) count_validity(b.whole());
}

void engine::lost(ballot& b, errc why, instant now) {
    hold& h = b.whole();
    if (h.state_ == state::wanted) {
        voter_of(b).ask(b, patience_of_votes(h), now);
        return;
    }
    if (h.state_ != state::held) return;
    if (votes(h, [](const ballot& one) { return one.counts(); }) < majority()) return lose(h, why, now);
    count_validity(h);
    tell_votes(h, votes_now::fewer);
}

// A node that is merely later than the others is nothing to tell of; one that comes back is.
void engine::tell_votes(hold& h, votes_now what) {
    if (!several() || (what == votes_now::more && !h.shrunk_)) return;
    const std::size_t in_favour = votes(h, [](const ballot& one) { return one.counts(); });
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
    set_timer(h);
    watcher_.on_lost(h.terms_.keys->lock, why);
    if (h.listener_ != nullptr) h.listener_->on_lost(why);
    acquire_request* const waiting_for_more = end_quest(h);
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        if (h.ballots_[i].asks()) voters_[i]->give_up(h.ballots_[i], now);
    }
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
    open_poll(h.renewing_, h, &request, now + settings_.request_timeout);
    renew_votes(h, now);
    set_timer(h);
}

void engine::renewed(ballot& b, const node_answer& said, instant now) {
    hold& h = b.whole();
    if (h.state_ != state::held) return;
    if (!said.why_not) {
        watcher_.on_renewed();
        count_validity(h);
    }
    // The outcome of a renewal whose link broke is unknown, and it is asked again on the next one.
    const bool unknown = said.why_not && said.why_not->code == errc::outcome_unknown;
    if (unknown && h.renewing_.request != nullptr) return voter_of(b).renew(b, now);
    take(h.renewing_, said);
    set_timer(h);
}

void engine::downgrade(hold& h, hold_request& request, instant answer_by, instant now) {
    ++h.shared_;
    release(h, access::exclusive, &request, answer_by, now);
}

void engine::changed(ballot& b, const node_answer& said, instant) {
    hold& h = b.whole();
    if (h.state_ != state::held) return;
    count_validity(h);
    take(h.changing_, said);
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
    open_poll(h.releasing_, h, request, answer_by);
    for (std::size_t i = 0; i < voters_.size(); ++i) {
        voters_[i]->release(h.ballots_[i], now);
    }
    set_timer(h);
    if (waiting_for_more != nullptr) waiting_for_more->refused(meanwhile);
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
        HOLDFAST_ASSERT(h.changing_.request == nullptr);  // until it is answered nothing is exclusive again
        open_poll(h.changing_, h, request, answer_by);
    }
    if (downgrades || stops_reading) {
        const shape rest = downgrades ? shape::reading : shape::writing;
        for (std::size_t i = 0; i < voters_.size(); ++i) {
            // A node that does not vote for it yet would grant all that was asked for.
            if (h.ballots_[i].asks() && !h.ballots_[i].counts()) voters_[i]->give_up(h.ballots_[i], now);
            voters_[i]->make_less(h.ballots_[i], rest, now);
        }
    }
    set_timer(h);
}

void engine::released(ballot& b, const node_answer& said, instant) {
    hold& h = b.whole();
    take(h.releasing_, said);
    set_timer(h);
    forget_if_gone(h);
}

void engine::gone(ballot& b) {
    hold& h = b.whole();
    take(h.releasing_, {refusal{errc::outcome_unknown, voter_of(b).server(), {}, {}}});
    forget_if_gone(h);
}

// --- answers of many that become one

void engine::open_poll(hold::poll_of_nodes& poll, const hold& h, hold_request* request, instant answer_by) {
    poll = {};
    poll.request = request;
    if (request == nullptr) return;
    poll.answer_by = answer_by;
    poll.open = votes(h, [](const ballot& b) { return b.counts(); });
}

// Done when a majority has done it; failed when no majority can have.
void engine::take(hold::poll_of_nodes& poll, const node_answer& said) {
    if (poll.request == nullptr) return;
    if (poll.open > 0) --poll.open;
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
        const errc why = links_up() >= majority() ? errc::request_timed_out : errc::unreachable;
        answer(h.renewing_, refusal{why, voters_[0]->server(), {}, {}});
    }
    heal(h, now);
    set_timer(h);
    if (h.quest_ != nullptr && several() && now >= h.limit_.deadline) return fail(h, too_late(h, now), now);
    check_gathering(h, now);
}

}  // namespace holdfast::engine
