#include "engine/quorum/holding.hpp"

#include "base/assert.hpp"
#include "engine/node/parts.hpp"

namespace holdfast::engine {
namespace {

// Nodes that do not back a hold are asked again after this part of its lease.
constexpr int heal_part = 3;

}  // namespace

// --- validity

void holding::update_validity(hold& h) {
    const node_holds backing = nodes_.backing(h);
    if (backing.size() < nodes_.majority()) return;
    h.valid_until_now = nodes_.validity_of(backing);
    if (h.kept) update_kept(h);  // told first: with the validity all is there that local grants need
    if (h.listener() != nullptr) todo_.add(effects::validity{&h});
}

// What a majority has told: the numbers up to the majority-th greatest ceiling, and the majority-th newest proof.
void holding::update_kept(hold& h) {
    boost::container::small_vector<fencing_token, 7> ceilings;
    boost::container::small_vector<instant, 7> proofs;
    for (const node_hold& n : h.nodes()) {
        const kept_facts::told& told = h.kept->nodes[n.node];
        ceilings.push_back(std::max(told.usable, n.token));
        proofs.push_back(n.counts() ? told.proved_at : instant{});
    }
    const auto decisive = static_cast<std::ptrdiff_t>(nodes_.majority() - 1);
    std::nth_element(ceilings.begin(), ceilings.begin() + decisive, ceilings.end(), std::greater<>());
    std::nth_element(proofs.begin(), proofs.begin() + decisive, proofs.end(), std::greater<>());
    const fencing_token before = h.ceiling();
    h.kept->ceiling = std::max(h.kept->ceiling, ceilings[static_cast<std::size_t>(decisive)]);
    if (h.ceiling() > before && h.listener() != nullptr) todo_.add(effects::ceiling{&h});
    const instant proved_at = std::exchange(h.kept->proved_at, proofs[static_cast<std::size_t>(decisive)]);
    if (h.kept->proved_at != proved_at && h.listener() != nullptr) todo_.add(effects::proved{&h});
}

void holding::begin(hold& h, instant now) {
    update_validity(h);
    if (!nodes_.several() || h.options().renewing != renewal::automatic) return;
    holds_.pending(h).heal_at = now + h.options().lease / heal_part;
}

void holding::one_more(hold& h) {
    update_validity(h);
    tell_support(h, support_now::more);
}

// A node does not back the hold any more, or never did. The others may be a majority, also of a pending upgrade.
void holding::one_less(hold& h, errc why, instant now) {
    if (nodes_.backing(h).size() < nodes_.majority()) return lose(h, why, now);
    update_validity(h);
    tell_support(h, support_now::fewer);
}

// A node that is merely later than the others is nothing to tell of; one that comes back is.
void holding::tell_support(hold& h, support_now what) {
    if (!nodes_.several() || (what == support_now::more && !h.shrunk)) return;
    const std::size_t in_favour = nodes_.backing(h).size();
    if (what == support_now::fewer && in_favour == h.told_support) return;
    h.told_support = static_cast<std::uint16_t>(in_favour);
    h.shrunk = in_favour < nodes_.size();
    todo_.add(effects::seen_support{&h, what, {.in_favour = in_favour, .nodes = nodes_.size()}});
}

void holding::lose(hold& h, errc why, instant now) {
    h.phase = hold_phase::lost;
    if (h.pending) h.pending->heal_at = never;
    refuse(h, answer_to::renewal, errc::lost, "");
    refuse(h, answer_to::change, errc::lost, "");
    todo_.add(effects::lost{&h, why});
    const instant asked_at = h.pending ? h.pending->asked.asked_at : now;
    acquire_completion* const upgrade = holds_.end_acquisition(h);
    holds_.set_timer(h);
    for (node_hold& n : h.nodes()) nodes_.of(n).let_run_out(n, now);
    if (upgrade == nullptr) return;
    todo_.add(effects::seen_refused{&h, now - asked_at});
    todo_.add(effects::refused{upgrade, todo_.keep(refusal{errc::lost, "", {}, {}})});
}

// --- results of nodes

void holding::on_node_hold_lost(node_hold& n, const refusal& told, errc why, instant now) {
    count_refused(n, answer_to::renewal, told);
    count_refused(n, answer_to::change, told);
    one_less(*n.whole, why, now);
}

void holding::on_renewed(node_hold& n, const node_event& said, instant now) {
    hold& h = *n.whole;
    if (!said.why_not) {
        const instant before = h.valid_until_now;
        update_validity(h);
        if (h.valid_until_now > before) todo_.add(effects::seen_renewed{&h});
    }
    // The outcome of a renewal whose link broke is unknown, and it is sent again on the next link.
    const bool unknown = said.why_not && said.why_not->code == errc::outcome_unknown;
    if (unknown && n.counts() && h.is_waited_for(answer_to::renewal)) {
        h.pending->about(answer_to::renewal).asked_in_vain = true;
        return renewing::renew(nodes_.of(n), n, now);
    }
    count(n, answer_to::renewal, said);
    holds_.set_timer(h);
}

void holding::on_changed(node_hold& n, const node_event& said) {
    hold& h = *n.whole;
    update_validity(h);
    count(n, answer_to::change, said);
    holds_.set_timer(h);
}

void holding::on_released(node_hold& n, const node_event& said) {
    count(n, answer_to::release, said);
    holds_.set_timer(*n.whole);
}

void holding::on_gone(node_hold& n) {
    count_refused(n, answer_to::release, {errc::outcome_unknown, nodes_.of(n).server(), {}, {}});
}

// The holder is told to stop, and the hold is renewed no longer; but the nodes keep it until the holder has stopped and
// releases it, or the lease ends. So nobody else has the lock while the holder still works. One node's word is enough.
void holding::on_recalled(node_hold& n, instant now) {
    lose(*n.whole, errc::lost, now);
}

// Any node's word counts. Remembered from asking on: whoever acquires it finds it.
void holding::on_wanted(node_hold& n) {
    hold& h = *n.whole;
    h.kept->is_wanted = true;
    if (h.phase == hold_phase::held && h.listener() != nullptr) todo_.add(effects::wanted{&h});
}

void holding::on_timer(hold& h, instant now) {
    refuse_late(h, answer_to::release, now, errc::outcome_unknown, "the release goes on in the background");
    refuse_late(h, answer_to::change, now, errc::outcome_unknown, "the downgrade goes on in the background");
    const bool in_vain = h.pending && h.pending->about(answer_to::renewal).asked_in_vain;
    const bool asked = in_vain || nodes_.links_up(h) >= nodes_.majority();
    refuse_late(h, answer_to::renewal, now, asked ? errc::request_timed_out : errc::unreachable, nodes_[0].server());
    heal(h, now);
    holds_.set_timer(h);
}

// Nodes that do not back it (they forgot it, or were out of reach, or had another holder) are asked again, if what
// is held is still what was asked for. Nobody waits for them, and lost is lost: this only makes a majority firmer.
void holding::heal(hold& h, instant now) {
    if (!h.pending || now < h.pending->heal_at) return;
    h.pending->heal_at = now + h.options().lease / heal_part;
    const bool as_asked = (h.exclusive > 0) == (h.terms().want == access::exclusive);
    if (!as_asked) return;
    for (node_hold& n : h.nodes()) {
        if (n.can_be_asked_again()) acquiring::ask(nodes_.of(n), n, waiting::not_at_all, now);
    }
}

// --- answers of many nodes that become one for the caller

void holding::expect(hold& h, answer_to what, hold_completion* request, instant answer_by) {
    if (h.pending) h.pending->about(what) = {};  // the last one's
    if (request == nullptr) return;
    answer_count& count = holds_.pending(h).about(what);
    count.request = request;
    count.answer_by = answer_by;
    for (node_hold& n : h.nodes()) {
        n.take_expected(what);
        if (what == answer_to::renewal ? !nodes_.is_backed_by(h, n) : !n.counts()) continue;
        n.expect(what);
        ++count.open;
    }
}

void holding::count(node_hold& n, answer_to what, const node_event& said) {
    if (said.why_not) return count_refused(n, what, *said.why_not);
    hold& h = *n.whole;
    if (!n.take_expected(what) || !h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    --count.open;
    ++count.done;
    count.holders = std::max(count.holders, said.holders);
    count.waiters = std::max(count.waiters, said.waiters);
    conclude(h, what);
}

void holding::count_refused(node_hold& n, answer_to what, const refusal& why) {
    hold& h = *n.whole;
    if (!n.take_expected(what) || !h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    --count.open;
    if (!count.why_not) count.why_not = std::make_unique<refusal>(why);
    conclude(h, what);
}

void holding::conclude(hold& h, answer_to what) {
    answer_count& count = h.pending->about(what);
    if (count.done >= nodes_.majority()) return answer(h, what, nullptr);
    if (count.done + count.open >= nodes_.majority()) return;
    answer(h, what, count.why_not ? todo_.keep(*count.why_not) : nullptr);
}

void holding::answer(hold& h, answer_to what, const refusal* why_not) {
    if (!h.is_waited_for(what)) return;
    answer_count& count = h.pending->about(what);
    count.answer_by = never;
    todo_.add(effects::answered{std::exchange(count.request, nullptr), why_not, count.holders, count.waiters});
}

// If nobody waits, no text is made.
void holding::refuse(hold& h, answer_to what, errc code, std::string_view detail) {
    if (!h.is_waited_for(what)) return;
    answer(h, what, todo_.keep(refusal{code, std::string(detail), {}, {}}));
}

void holding::refuse_late(hold& h, answer_to what, instant now, errc code, std::string_view detail) {
    if (h.pending && now >= h.pending->about(what).answer_by) refuse(h, what, code, detail);
}

// --- requests

void holding::refuse_now(hold_completion* request, errc code, std::string detail) {
    if (request != nullptr)
        todo_.add(effects::answered{request, todo_.keep(refusal{code, std::move(detail), {}, {}}), 0, 0});
}

void holding::renew_nodes(hold& h, instant now) {
    for (node_hold& n : h.nodes()) {
        if (n.counts()) renewing::renew(nodes_.of(n), n, now);
    }
}

void holding::renew(hold& h, hold_completion& request, instant now) {
    lose_if_ran_out(h, now);
    if (h.phase != hold_phase::held) return refuse_now(&request, errc::lost);
    if (h.is_waited_for(answer_to::renewal)) {
        return refuse_now(&request, errc::too_many, "a renewal is under way");
    }
    expect(h, answer_to::renewal, &request, now + settings_.request_timeout);
    renew_nodes(h, now);
    holds_.set_timer(h);
}

void holding::release(hold& h, access level, hold_completion* request, instant answer_by, instant now) {
    HOLDFAST_ASSERT(h.levels(level) > 0);
    --(level == access::shared ? h.shared : h.exclusive);
    if (!h.is_released()) return release_level(h, level, request, answer_by, now);
    todo_.add(effects::released{&h, now - h.granted_at});
    if (h.phase == hold_phase::lost) {
        // The caller is told at once; what may be left on the servers is cleared all the same.
        refuse_now(std::exchange(request, nullptr), errc::lost);
    }
    constexpr std::string_view meanwhile = "released meanwhile";
    h.phase = hold_phase::leaving;
    if (h.pending) h.pending->heal_at = never;
    refuse(h, answer_to::renewal, errc::not_held, meanwhile);
    refuse(h, answer_to::change, errc::not_held, meanwhile);
    const instant asked_at = h.pending ? h.pending->asked.asked_at : now;
    acquire_completion* const upgrade = holds_.end_acquisition(h);
    expect(h, answer_to::release, request, answer_by);
    for (node_hold& n : h.nodes()) releasing::release(nodes_.of(n), n, now);
    holds_.set_timer(h);
    if (upgrade == nullptr) return;
    todo_.add(effects::seen_refused{&h, now - asked_at});
    todo_.add(effects::refused{upgrade, todo_.keep(refusal{errc::not_held, std::string(meanwhile), {}, {}})});
}

// Other levels remain: the nodes hear of it only if what they have becomes less.
void holding::release_level(hold& h, access level, hold_completion* request, instant answer_by, instant now) {
    if (h.phase != hold_phase::held) return refuse_now(request, errc::lost);
    const bool downgrades = level == access::exclusive && h.exclusive == 0;
    const bool stops_reading = level == access::shared && h.shared == 0;
    if (!downgrades && request != nullptr) todo_.add(effects::answered{request, nullptr, 0, 0});
    if (downgrades) {
        // A node's answer to the last downgrade may still be missing, when a majority has granted the upgrade anew.
        refuse(h, answer_to::change, errc::outcome_unknown, "downgraded again meanwhile");
        expect(h, answer_to::change, request, answer_by);
    }
    if (downgrades || stops_reading) make_less(h, downgrades ? shape::reading : shape::writing, now);
    holds_.set_timer(h);
}

void holding::make_less(hold& h, shape rest, instant now) {
    for (node_hold& n : h.nodes()) {
        node_agent& agent = nodes_.of(n);
        // A node that has not answered yet would grant all that was asked for.
        if (n.asks()) acquiring::give_up(agent, n, now);
        // Nor is one of use that would have nothing left.
        if (rest == shape::writing && n.counts() && !n.writes()) {
            count_refused(n, answer_to::renewal, {errc::not_held, "", {}, {}});
            releasing::release(agent, n, now);
        }
        agent.make_less(n, rest, now);
    }
}

// The owner will never release.
void holding::abandon(hold& h, instant now) {
    if (h.phase == hold_phase::held) lose(h, errc::not_held, now);
    for (node_hold& n : h.nodes()) nodes_.of(n).abandon(n);
    h.phase = hold_phase::leaving;
}

}  // namespace holdfast::engine
