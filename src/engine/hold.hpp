// A hold: what somebody has, or wants, under one id at every node, and its levels.
//
// It is held while a majority of its node holds are. A hold lives until the last of its node holds is gone, which may
// be long after its owner has forgotten it.
//
// A client may have a hundred thousand holds. So what is needed only while something is pending exists only then.
#pragma once

#include "base/recycled.hpp"
#include "engine/node/node_hold.hpp"
#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/list.hpp>

#include <array>
#include <span>

namespace holdfast::engine {

// An acquisition, or an upgrade, at all nodes.
struct acquisition {
    acquire_completion* request = nullptr;
    patience limit = {};
    instant asked_at{};
    instant reach_by = never;      // enough nodes must have been reached once; see engine_settings::first_connect
    instant gather_until = never;  // a minority of node holds: others may come until then
    milliseconds gather_for{0};    // the last such wait
    rare_refusal said_no = {};     // the first node's reason that was not silence
};

// The nodes' answers to a release, a renewal or a downgrade for which a caller waits. Done when a majority has done it;
// failed when no majority can have.
struct answer_count {
    hold_completion* request = nullptr;
    instant answer_by = never;
    rare_refusal why_not = {};
    std::size_t holders = 0;  // the most that a node told of
    std::size_t waiters = 0;
    std::uint16_t done = 0;
    std::uint16_t open = 0;
    bool asked_in_vain = false;  // a link broke before its answer
};

// What is pending about a hold.
struct pending_work final : timed {
    hold* whole = nullptr;
    acquisition asked = {};
    // Its position in every node's queue; empty where there is only one node, which then makes the ticket.
    std::string ticket = {};
    instant heal_at = never;  // when nodes that do not vote for it are asked again
    std::array<answer_count, 3> answers = {};

    answer_count& about(answer_to what) noexcept { return answers[static_cast<std::size_t>(what)]; }
    const answer_count& about(answer_to what) const noexcept { return answers[static_cast<std::size_t>(what)]; }
    bool is_waited_for() const noexcept {
        return asked.request != nullptr || answers[0].request != nullptr || answers[1].request != nullptr ||
               answers[2].request != nullptr;
    }
    // For the next hold. The ticket keeps its memory.
    void clear() noexcept {
        whole = nullptr;
        asked = {};
        ticket.clear();
        heal_at = never;
        answers = {};
    }
};

// What only a hold that may be asked back needs; see namespace keeping.
struct kept_facts {
    // One node's.
    struct told {
        fencing_token ceiling = 0;  // the last number that it told
        fencing_token usable = 0;   // the same, where replicas must have it once they do
        instant proved_at{};        // since its link came up; instant{}: not yet
        instant link_since{};
    };

    explicit kept_facts(std::size_t count) : nodes(count) {}

    fencing_token ceiling = 0;  // of a majority
    instant proved_at{};        // by a majority
    bool is_wanted = false;
    boost::container::small_vector<told, 1> nodes;
};

enum class hold_phase : std::uint8_t { wanted, held, lost, leaving, forgotten };

class hold final : public boost::intrusive::list_base_hook<> {
public:
    hold(hold_id id, hold_terms terms, std::size_t nodes)
        : id_(id),
          terms_(std::move(terms)),
          several_(nodes == 1 ? nullptr : std::make_unique<node_hold[]>(nodes)),
          count_(static_cast<std::uint16_t>(nodes)) {
        if (terms_.options.kept) kept = std::make_unique<kept_facts>(nodes);
        for (node_hold& n : this->nodes()) {
            n.whole = this;
            n.node = static_cast<std::uint16_t>(&n - first());
        }
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;

    // --- what callers and listeners may read
    const hold_id& id() const noexcept { return id_; }
    const hold_terms& terms() const noexcept { return terms_; }
    const lock_options& options() const noexcept { return terms_.options; }
    fencing_token token() const noexcept { return token_now; }
    instant valid_until() const noexcept { return valid_until_now; }
    // A majority of the nodes knows that it may be asked back. Otherwise it is a plain hold: nobody would ask.
    bool is_kept() const noexcept {
        const auto marked =
            std::ranges::count_if(nodes(), [](const node_hold& n) { return n.counts() && n.is_marked(); });
        return 2 * marked > count_;
    }
    // As hold_listener tells them; they may be known before anybody listens.
    bool is_wanted() const noexcept { return kept && kept->is_wanted; }
    fencing_token ceiling() const noexcept { return kept ? std::max(kept->ceiling, token_now) : token_now; }
    instant proved_at() const noexcept { return kept ? kept->proved_at : instant{}; }
    // How many releases of that kind are due.
    unsigned levels(access kind) const noexcept { return kind == access::shared ? shared : exclusive; }
    bool is_released() const noexcept { return exclusive + shared == 0; }
    void listen(std::shared_ptr<hold_listener> told) noexcept { listener_ = std::move(told); }
    const std::shared_ptr<hold_listener>& listener() const noexcept { return listener_; }
    std::shared_ptr<hold_listener> take_listener() noexcept { return std::exchange(listener_, nullptr); }

    // --- what the nodes ask
    // Empty unless several nodes are asked.
    std::string_view ticket() const noexcept { return pending ? pending->ticket : std::string_view(); }
    // Somebody waits for what the node hold is asked for; otherwise the hold has its majority already.
    bool is_asked_for() const noexcept { return pending && pending->asked.request != nullptr; }
    waiting wait() const noexcept { return pending ? pending->asked.limit.wait : waiting::in_queue; }
    // Of an acquisition. With several nodes the quorum owns the deadline; a node has none.
    instant deadline_at_node() const noexcept { return count_ == 1 && pending ? pending->asked.limit.deadline : never; }

    // --- the quorum's own
    std::span<node_hold> nodes() noexcept { return {first(), count_}; }
    std::span<const node_hold> nodes() const noexcept { return {const_cast<hold*>(this)->first(), count_}; }

    static void* operator new(std::size_t) { return recycled<sizeof(hold)>::take(); }
    static void operator delete(void* room) noexcept { recycled<sizeof(hold)>::give_back(room); }
    bool ran_out(instant now) const noexcept { return now >= valid_until_now; }
    bool is_waited_for(answer_to what) const noexcept { return pending && pending->about(what).request != nullptr; }

    std::unique_ptr<pending_work> pending;  // while there is any
    std::unique_ptr<kept_facts> kept;       // of a hold that may be asked back
    fencing_token token_now = 0;
    instant valid_until_now{};
    instant granted_at{};
    unsigned exclusive = 0;  // n acquires need n releases
    unsigned shared = 0;
    std::uint16_t told_support = 0;  // as the observer knows
    hold_phase phase = hold_phase::wanted;
    bool shrunk : 1 = false;     // some node stopped backing it
    bool withdrawn : 1 = false;  // not to be asked for before a majority can be reached
    bool held_back : 1 = false;  // not to be asked for before others of its lock are answered
    bool paced : 1 = false;      // counts as unanswered in its lock's pace
    bool links_changed = false;  // since the quorum looked last

private:
    node_hold* first() noexcept { return count_ == 1 ? &only_ : several_.get(); }

    const hold_id id_;
    const hold_terms terms_;
    std::shared_ptr<hold_listener> listener_;
    node_hold only_;                        // of one node, the rule: no memory of its own
    std::unique_ptr<node_hold[]> several_;  // of several, instead
    const std::uint16_t count_;
};

}  // namespace holdfast::engine
