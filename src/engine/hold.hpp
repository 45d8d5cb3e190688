// What somebody has, or wants: one id at every node, and its levels.
//
// The nodes' node_holds are counted: it is held while a majority of them are. A hold lives until the last of its
// node_holds is gone, which may be long after its owner has forgotten it.
//
// A client may have a hundred thousand of them. So hold and node_holds are one piece of memory, and what is needed only
// while something is under way exists only then.
#pragma once

#include "engine/node_hold.hpp"
#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"
#include "wire/hold_id.hpp"

#include <boost/intrusive/list.hpp>

#include <memory>
#include <new>
#include <optional>
#include <span>

namespace holdfast::engine {

class hold;

// What is under way about a hold: a acquisition, answers that somebody waits for, the next look at nodes that do not
// vote.
struct pending_work final : timed {
    // Answers of the nodes to a release, a renewal or a downgrade that somebody waits for.
    struct count_of_nodes {
        hold_completion* request = nullptr;
        instant answer_by = never;
        bool asked_in_vain = false;  // a link broke before its answer
        std::size_t done = 0;
        std::size_t open = 0;
        std::size_t holders = 0;  // the most that a node told of
        std::size_t waiters = 0;
    };
    struct poll_of_nodes : count_of_nodes {
        void clear() noexcept {
            count_of_nodes::operator=({});
            why_not.reset();
        }

        rare_refusal why_not = {};
    };
    // An acquisition or an upgrade.
    struct search_terms {
        acquire_completion* request = nullptr;
        patience limit = {};
        instant asked_at{};
        instant reach_by = never;      // enough nodes must have been reached once; see engine_settings::first_connect
        instant gather_until = never;  // some votes, no majority: until then others may still come
        milliseconds gather_for{0};    // the last such wait
    };
    struct search : search_terms {
        void clear() noexcept {
            search_terms::operator=({});
            said_no.reset();
        }

        rare_refusal said_no = {};  // the first node's reason that was not silence
    };

    // Its timer is not set.
    void clear() noexcept {
        whole = nullptr;
        acquisition.clear();
        ticket.clear();
        heal_at = never;
        releasing.clear();
        renewing.clear();
        changing.clear();
    }

    hold* whole = nullptr;
    search acquisition = {};
    // Its place in every node's line; empty where there is only one node, which then says.
    std::string ticket = {};
    instant heal_at = never;  // when nodes that do not vote for it are asked again
    poll_of_nodes releasing = {};
    poll_of_nodes renewing = {};
    poll_of_nodes changing = {};
};

class hold final : public boost::intrusive::list_base_hook<> {
public:
    struct deleter {
        void operator()(hold* h) const noexcept;
    };
    // Wanted from now on, with a node_hold for each node.
    static std::unique_ptr<hold, deleter> make(hold_id id, hold_terms terms, std::size_t nodes);
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;

    const hold_id& id() const noexcept { return id_; }
    fencing_token token() const noexcept { return token_; }
    instant valid_until() const noexcept { return valid_until_; }
    const hold_terms& terms() const noexcept { return terms_; }
    // See pending_work.
    std::string_view ticket() const noexcept { return pending_ ? pending_->ticket : std::string_view(); }
    // How many releases of that kind are due.
    unsigned levels(access kind) const noexcept { return kind == access::shared ? shared_ : exclusive_; }
    void listen(std::shared_ptr<hold_listener> listener) noexcept { listener_ = std::move(listener); }
    const std::shared_ptr<hold_listener>& listener() const noexcept { return listener_; }

private:
    friend class engine;
    enum class state : std::uint8_t { wanted, held, lost, leaving };

    hold(hold_id id, hold_terms terms, std::size_t nodes) noexcept;
    ~hold();

    // They stand right behind the hold.
    node_hold& vote(std::size_t number) const noexcept {
        return std::launder(reinterpret_cast<node_hold*>(const_cast<hold*>(this) + 1))[number];
    }
    std::span<node_hold> votes() const noexcept { return {&vote(0), nodes_}; }

    bool is_asked_for() const noexcept { return pending_ && pending_->acquisition.request != nullptr; }

    hold_id id_;
    hold_terms terms_;
    std::unique_ptr<pending_work> pending_;  // while there are any
    std::shared_ptr<hold_listener> listener_;
    fencing_token token_ = 0;
    instant valid_until_{};
    instant granted_at_{};
    unsigned exclusive_ = 0;  // n acquires need n releases
    unsigned shared_ = 0;
    std::uint16_t nodes_;
    std::uint16_t told_votes_ = 0;  // how many were left, as the hook knows
    state state_ = state::wanted;
    bool in_hand_ : 1 = false;    // see engine::in_hand
    bool opening_ : 1 = false;    // not all nodes have been asked yet
    bool shrunk_ : 1 = false;     // some node stopped voting for it
    bool withdrawn_ : 1 = false;  // not to be asked for before a majority can be reached
    bool held_back_ : 1 = false;  // not to be asked for before others of its lock are answered
    bool paced_ : 1 = false;      // counts as unanswered in its lock's pace
};

}  // namespace holdfast::engine
