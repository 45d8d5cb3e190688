// One hold id's life at one node, from the first request to the last answer.
//
//     wanted --grant--> held --release--> leaving --answer--> gone
//       |                |                   ^
//       |                +--lost--> lost ----+
//       +--refused: gone; given up: leaving
//
// While it is wanted, a acquisition is under way: asking --queued--> in_queue, and, where replicas are to have the
// grant first, confirming. A node_hold that reads may have another one, its upgrade, beside being held. What the node
// has of a held one may have to be made less (a downgrade, an upgrade that was given up): that is a change, and the
// next acquisition waits for its end.
//
// A node_hold is part of a hold and lives as long; the node's node_agent moves it.
#pragma once

#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"

#include <boost/intrusive/list.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::engine {

class call;

enum class answer_to : std::uint8_t { release, renewal, change };

class node_hold final : public boost::intrusive::list_base_hook<>, public timed {
public:
    node_hold(hold& whole, std::size_t node) noexcept : whole_(whole), node_(static_cast<std::uint16_t>(node)) {}

    hold& whole() const noexcept { return whole_; }
    std::size_t node() const noexcept { return node_; }
    bool counts() const noexcept { return state_ == state::held; }
    bool is_lost() const noexcept { return state_ == state::lost; }
    bool is_gone() const noexcept { return state_ == state::gone; }
    bool asks() const noexcept { return acquisition().at != stage::none; }
    bool is_queued() const noexcept { return acquisition().at == stage::queued; }
    const std::string& ticket() const noexcept { return acquisition().ticket; }
    const std::string& holder() const noexcept { return acquisition().holder; }
    std::optional<instant> holder_until() const noexcept { return acquisition().holder_until; }
    const rare_refusal& trouble() const noexcept { return acquisition().trouble; }
    bool is_being_asked() const noexcept { return in_flight().asking != nullptr; }
    // An acquiring request or a release is.
    bool is_unanswered() const noexcept { return is_being_asked() || is_being_released(); }
    bool was_given_up_unanswered() const noexcept { return orphaned_ask_ && is_being_released(); }
    bool is_being_raised() const noexcept {
        return in_flight().raising != nullptr || in_flight().raise_again_at != never;
    }
    // Somebody waits for the node's answer to this. Only the first one counts.
    void expect(answer_to what) noexcept { expected_ |= bit(what); }
    bool take_expected(answer_to what) noexcept {
        const bool was = (expected_ & bit(what)) != 0;
        expected_ = static_cast<std::uint8_t>(expected_ & ~bit(what));
        return was;
    }
    // The node may be asked again by the same id: nothing that would undo it can be on its way.
    bool can_be_asked_again() const noexcept { return (is_gone() || is_lost()) && !undone_; }
    fencing_token token() const noexcept { return token_; }
    // The node has it write, and is not being told otherwise.
    bool writes() const noexcept { return state_ == state::held && may_write(shape_) && may_write(at_most_); }
    instant valid_until() const noexcept { return valid_until_; }

private:
    friend class node_agent;
    friend class call;
    enum class state : std::uint8_t { gone, wanted, held, lost, leaving };
    enum class stage : std::uint8_t { none, deferred, asking, queued, confirming };

    bool is_being_released() const noexcept { return in_flight().leaving != nullptr; }
    static std::uint8_t bit(answer_to what) noexcept {
        return static_cast<std::uint8_t>(1U << static_cast<unsigned>(what));
    }
    static bool may_write(shape what) noexcept { return what == shape::writing || what == shape::both; }

    // An acquisition or an upgrade under way.
    struct acquisition_facts {
        stage at = stage::none;
        bool may_have_run = false;  // a copy of the request may have run without our knowing
        bool polled_on_this_link = false;
        bool asked_before = false;  // the link: what is under way may be answered by the lock's former server
        unsigned repeats = 0;
        patience limit = {};
        fencing_token gives_way = 0;   // the grant that was given up for whoever is first
        fencing_token fence_then = 0;  // as the last answered poll saw it
        std::optional<instant> holder_until = {};
        instant last_answered_poll{};   // when that poll was sent
        instant unknown_since = never;  // the grant is there, and nobody can tell how many replicas have it
        instant poll_at = never;
        milliseconds foreign_poll{0};  // the last interval of looking at one holder of another program
    };
    struct acquisition_state : acquisition_facts {
        void clear() noexcept {
            clear_but_for_ticket();
            ticket.clear();
        }
        void clear_but_for_ticket() noexcept {
            acquisition_facts::operator=({});
            holder.clear();
            trouble.reset();
        }

        std::string ticket = {};
        std::string holder = {};  // as the last answered poll saw it
        rare_refusal trouble;     // of the server, told by its last answer
    };
    struct calls_under_way {
        call* asking = nullptr;  // each at most one
        call* renewing = nullptr;
        call* changing = nullptr;
        call* leaving = nullptr;
        call* raising = nullptr;
        instant raise_again_at = never;
        instant release_again_at = never;
        instant change_again_at = never;
    };
    // Whatever is under way at the node.
    struct requests_in_flight : calls_under_way {
        bool idle() const noexcept {
            return acquisition.at == stage::none && asking == nullptr && renewing == nullptr && changing == nullptr &&
                   leaving == nullptr && raising == nullptr && raise_again_at == never && release_again_at == never &&
                   change_again_at == never;
        }
        void clear() noexcept {
            calls_under_way::operator=({});
            acquisition.clear();
        }

        acquisition_state acquisition = {};
    };

    // To look at; node_agent::busy() is to change.
    const requests_in_flight& in_flight() const noexcept { return in_flight_ ? *in_flight_ : none; }
    const acquisition_state& acquisition() const noexcept { return in_flight().acquisition; }

    static const requests_in_flight none;
    static constexpr milliseconds no_foreign_ttl = milliseconds::max();

    unsigned repeats_ = 0;  // of the present release
    hold& whole_;
    std::unique_ptr<requests_in_flight> in_flight_;  // while there are any
    fencing_token token_ = 0;
    fencing_token raise_to_ = 0;  // the token that the node is being told, if any
    instant valid_until_{};
    instant renew_at_ = never;
    milliseconds foreign_ttl_ = no_foreign_ttl;
    std::uint16_t node_;
    state state_ = state::gone;
    shape shape_ = shape::nothing;      // what the node has of it, as far as we know
    shape change_to_ = shape::nothing;  // what the change under way leaves
    shape at_most_ = shape::both;       // what the node should have of it at most
    bool kept_ = true;                  // renewed, if it is one that is
    bool cancelling_ = false;           // the change takes an upgrade back
    bool may_have_run_ = false;         // a copy of the present release
    bool goes_in_full_ = false;         // the present release waits until the slot has moved
    bool stray_copies_ = false;         // of an acquiring request: one may still be on its way over a broken link
    // An undo of whatever the node has was sent. Unless its answer came, a copy of it may run late: so the node is not
    // asked again by this id.
    bool undone_ = false;
    bool renewed_blindly_ = false;  // again at once, because nobody knew what had become of the renewal before
    bool orphaned_ask_ = false;     // given up while its acquiring request was written and unanswered
    bool expects_push_ = false;     // the node_agent finds it by the id that a push names
    std::uint8_t expected_ = 0;     // answers, by kind
};

using node_hold_list = boost::intrusive::list<node_hold>;

}  // namespace holdfast::engine
