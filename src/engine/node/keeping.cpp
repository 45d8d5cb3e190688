#include "engine/node/parts.hpp"

namespace holdfast::engine::keeping {
namespace {

kept_facts::told& facts_of(const node_hold& n) noexcept {
    return n.whole->kept->nodes[n.node];
}

}  // namespace

// It subscribes in any case: the next hold of this lock will be marked.
void mark(node_agent& agent, node_hold& n) {
    if (!std::exchange(n.is_marked_or_not, true)) {
        agent.listen(n);
        const bool is_heard = agent.node().hears(agent.wakes().of(agent.keys_of(n)));
        const bool is_common = agent.listens() == channels::one;
        if (is_heard) n.mark = is_common ? wire::mark::common_channel : wire::mark::sharded_channel;
    }
    if (!n.is_marked()) return;
    agent.listen(n);
    agent.expect_push(n);
}

void note_waiters(node_agent& agent, node_hold& n, std::size_t waiters) {
    const bool may_be_held = n.phase == node_phase::wanted || n.phase == node_phase::held;
    if (waiters > 0 && n.is_marked() && may_be_held) agent.tell(node_event::kind::wanted, n);
}

void note_ceiling(node_hold& n, fencing_token ceiling) noexcept {
    if (!n.is_marked()) return;
    fencing_token& known = facts_of(n).ceiling;
    known = std::max(known, ceiling);
}

void proved(node_agent& agent, node_hold& n, const proof& shown) noexcept {
    if (!n.whole->kept) return;
    kept_facts::told& facts = facts_of(n);
    if (n.is_marked()) facts.usable = std::max(facts.usable, shown.ceiling);
    // Nobody may get one of these numbers by a later grant, at whichever node.
    agent.clock().saw(facts.usable);
    if (shown.at >= facts.link_since) facts.proved_at = std::max(facts.proved_at, shown.at);
}

bool is_grant(const node_hold& n, fencing_token token) noexcept {
    return n.counts() && (token == 0 || n.token == token || (n.is_marked() && n.token < token));
}

bool is_same_grant(const node_hold& n, const proof& shown) noexcept {
    if (!n.is_marked()) return shown.token == n.token;
    return n.token <= shown.token && shown.token <= std::max(n.token, facts_of(n).ceiling);
}

bool lacks_proof(const node_hold& n) noexcept {
    return n.whole->kept && n.counts() && facts_of(n).proved_at == instant{};
}

void on_link_up(node_agent& agent, node_hold& n, instant now) {
    if (!n.whole->kept) return;
    facts_of(n).proved_at = {};
    facts_of(n).link_since = now;
    if (n.counts()) agent.tell(node_event::kind::link_new, n);
}

}  // namespace holdfast::engine::keeping
