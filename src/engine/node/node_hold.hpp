// What is known of one hold at one node, from the first request to the last answer.
//
//     wanted --grant--> held --release--> leaving --answer--> gone
//       |                |                   ^
//       |                +--lost--> lost ----+
//       +--refused: gone; given up: leaving
//
// While a node hold is wanted, an acquisition is pending: asking --queued--> queued and, where replicas must have the
// grant first, confirming. A node hold that reads may be held and have another acquisition, its upgrade. What the node
// has of a held one may have to become less (a downgrade, an upgrade that was given up): that is a change, and the next
// acquisition is deferred until the change ends.
//
// A node hold is part of a hold and lives as long. Only the parts of its node's agent change it; the quorum reads it.
#pragma once

#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"
#include "wire/hold_id.hpp"

#include <boost/intrusive/list.hpp>

namespace holdfast::engine {

class call;
class hold;

enum class answer_to : std::uint8_t { release, renewal, change };

enum class node_phase : std::uint8_t { gone, wanted, held, lost, leaving };
enum class acquire_stage : std::uint8_t { none, deferred, asking, queued, confirming };

constexpr bool may_write(shape what) noexcept {
    return what == shape::writing || what == shape::both;
}
constexpr bool may_read(shape what) noexcept {
    return what == shape::reading || what == shape::both;
}

struct node_acquisition_facts {
    acquire_stage at = acquire_stage::none;
    waiting wait = waiting::in_queue;
    bool may_have_run = false;         // a copy of the request may have run without our knowing
    bool polled_on_this_link = false;  // so a push can be believed
    bool asked_before = false;         // the link came up: the lock's former server may answer what is in flight
    bool was_hinted = false;           // since what is in flight was sent
    unsigned repeats = 0;
    fencing_token gives_way = 0;   // the grant that was given up for the first waiter
    fencing_token fence_then = 0;  // as the last answered poll saw it
    std::optional<instant> holder_until = {};
    instant last_answered_poll{};   // when that poll was sent
    instant unknown_since = never;  // the grant is there, and nobody can tell how many replicas have it
    instant poll_at = never;
    milliseconds foreign_poll{0};  // the last interval of polling one holder of another program
    milliseconds kept_poll{0};     // and of polling beside marked holders
    milliseconds own_poll{0};      // and of polling where nobody can push
    milliseconds polls_within{0};  // the interval that the last poll has told, of a waiter to which nobody can push
    std::size_t before = 0;        // that many waiters, by the last answered poll
    unsigned kept_tries = 0;       // of one that does not wait, refused by marked holders alone
};

// An acquisition or an upgrade at one node. Texts keep their memory when it ends: see spares.
struct node_acquisition : node_acquisition_facts {
    std::string ticket = {};    // as the node told it
    std::string holder = {};    // as the last answered poll saw it
    std::string note = {};      // of that holder, if it was told
    rare_refusal trouble = {};  // of the server, as its last answer told it

    // Who has the lock instead, as far as known.
    void tell_holder(refusal& why, instant now) const {
        why.holder = holder;
        why.note = note;
        why.kept = wire::mark_of(holder) != wire::mark::none;
        if (!holder_until) return;
        why.holder_left = std::chrono::duration_cast<milliseconds>(std::max(*holder_until, now) - now);
    }
    void end() noexcept {
        node_acquisition_facts::operator=({});
        ticket.clear();
        holder.clear();
        note.clear();
        trouble.reset();
    }
};

// Requests that are not answered, each at most one of its sort, and those that will be sent again.
struct node_requests {
    call* asking = nullptr;
    call* renewing = nullptr;
    call* changing = nullptr;
    call* leaving = nullptr;
    call* raising = nullptr;
    instant raise_again_at = never;
    instant release_again_at = never;
    instant change_again_at = never;
    node_acquisition acquisition = {};

    bool idle() const noexcept {
        return acquisition.at == acquire_stage::none && asking == nullptr && renewing == nullptr &&
               changing == nullptr && leaving == nullptr && raising == nullptr && raise_again_at == never &&
               release_again_at == never && change_again_at == never;
    }
};

struct node_hold final : boost::intrusive::list_base_hook<>, timed {
    static constexpr milliseconds no_foreign_ttl = milliseconds::max();

    // --- what the quorum asks
    bool counts() const noexcept { return phase == node_phase::held; }
    bool is_gone() const noexcept { return phase == node_phase::gone; }
    bool asks() const noexcept { return acquisition().at != acquire_stage::none; }
    bool is_queued() const noexcept { return acquisition().at == acquire_stage::queued; }
    bool is_being_asked() const noexcept { return pending().asking != nullptr; }
    bool is_being_released() const noexcept { return pending().leaving != nullptr; }
    // An acquiring request or a release is.
    bool is_unanswered() const noexcept { return is_being_asked() || is_being_released(); }
    bool was_given_up_unanswered() const noexcept { return orphaned_ask && is_being_released(); }
    bool is_being_raised() const noexcept { return pending().raising != nullptr || pending().raise_again_at != never; }
    bool is_being_changed() const noexcept {
        return pending().changing != nullptr || pending().change_again_at != never;
    }
    // By the same id: nothing that would undo it can be on its way.
    bool can_be_asked_again() const noexcept { return (is_gone() || phase == node_phase::lost) && !undone; }
    // The node knows it by an id that can be asked back.
    bool is_marked() const noexcept { return mark != wire::mark::none; }
    // The node has it write, and is not being told otherwise.
    bool writes() const noexcept { return phase == node_phase::held && may_write(has) && may_write(at_most); }

    // To read; node_agent::busy() is for changes.
    const node_requests& pending() const noexcept { return requests ? *requests : none; }
    const node_acquisition& acquisition() const noexcept { return pending().acquisition; }

    // --- answers that the quorum waits for
    void expect(answer_to what) noexcept { expected |= bit(what); }
    bool take_expected(answer_to what) noexcept {
        const bool was = (expected & bit(what)) != 0;
        expected = static_cast<std::uint8_t>(expected & ~bit(what));
        return was;
    }

    // By our own clock; the timer that tells so may be late.
    bool ran_out(instant now) const noexcept { return now >= valid_until; }

    hold* whole = nullptr;
    std::unique_ptr<node_requests> requests;  // while there are any
    fencing_token token = 0;
    fencing_token raise_to = 0;  // the token that the node is being told, if any
    instant valid_until{};       // of one that is leaving: when the server has forgotten it by itself
    instant renew_at = never;
    milliseconds foreign_ttl = no_foreign_ttl;  // the shortest that another program has set
    unsigned release_repeats = 0;
    std::uint16_t node = 0;
    node_phase phase = node_phase::gone;
    shape has = shape::nothing;        // as far as we know
    shape change_to = shape::nothing;  // what the change in flight leaves
    shape at_most = shape::both;       // what the node should have of it
    std::uint8_t expected = 0;         // answers, by kind
    bool is_renewed : 1 = true;        // unless its terms say never
    bool cancelling : 1 = false;       // the change takes an upgrade back
    bool release_may_have_run : 1 = false;
    bool releases_in_full : 1 = false;  // the release waits until the slot has moved
    bool stray_copies : 1 = false;      // of an acquiring request: one may still be on its way over a broken link
    // An undo of whatever the node has was sent. Until its answer comes, a copy of it may run late: so the node is not
    // asked again by this id.
    bool undone : 1 = false;
    bool renewed_blindly = false;   // at once, because nobody knew what had become of the renewal before
    bool orphaned_ask : 1 = false;  // given up while its acquiring request was written and unanswered
    bool listens = false;           // on the wake-up channel of its lock
    bool is_marked_or_not = false;  // the mark is decided: the id at this node never changes
    wire::mark mark = wire::mark::none;
    bool expects_push = false;  // the agent finds it by the id that a push names

private:
    static std::uint8_t bit(answer_to what) noexcept {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(what));
    }
    static const node_requests none;
};

using node_hold_list = boost::intrusive::list<node_hold>;

}  // namespace holdfast::engine
