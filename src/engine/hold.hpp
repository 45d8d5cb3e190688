// What somebody has, or wants: one id at every node, and its levels.
//
// The nodes' ballots are counted: it is held while a majority of them are. A hold lives until the last of its ballots
// is gone, which may be long after its owner has forgotten it.
#pragma once

#include "engine/ballot.hpp"
#include "engine/hold_id.hpp"
#include "engine/terms.hpp"
#include "engine/timer_heap.hpp"

#include <list>
#include <memory>
#include <optional>

namespace holdfast::engine {

class hold final : public timed {
public:
    const hold_id& id() const noexcept { return id_; }
    fencing_token token() const noexcept { return token_; }
    instant valid_until() const noexcept { return valid_until_; }
    const acquire_terms& terms() const noexcept { return terms_; }
    // Its place in every node's line; empty where there is only one node, which then says.
    const std::string& ticket() const noexcept { return ticket_; }
    // How many releases of that kind are due.
    unsigned levels(access kind) const noexcept { return kind == access::shared ? shared_ : exclusive_; }
    void listen(std::shared_ptr<hold_listener> listener) noexcept { listener_ = std::move(listener); }
    const std::shared_ptr<hold_listener>& listener() const noexcept { return listener_; }

private:
    friend class engine;
    friend class voter;
    enum class state : std::uint8_t { wanted, held, lost, leaving };

    // Answers of the nodes to a release, a renewal or a downgrade that somebody waits for.
    struct poll_of_nodes {
        hold_request* request = nullptr;
        instant answer_by = never;
        bool asked_in_vain = false;  // a link broke before its answer
        std::size_t done = 0;
        std::size_t open = 0;
        std::optional<refusal> why_not = {};
        node_answer best = {};
    };

    std::list<hold>::iterator self_;
    hold_id id_;
    acquire_terms terms_;
    state state_ = state::wanted;
    unsigned exclusive_ = 0;  // n acquires need n releases
    unsigned shared_ = 0;
    std::unique_ptr<ballot[]> ballots_;  // one for each node
    acquire_request* quest_ = nullptr;
    bool in_hand_ = false;        // see engine::in_hand
    bool opening_ = false;        // not all nodes have been asked yet
    bool shrunk_ = false;         // some node stopped voting for it
    std::size_t told_votes_ = 0;  // how many were left, as the hook knows
    bool withdrawn_ = false;      // not to be asked for before a majority can be reached
    std::string ticket_;
    patience limit_ = {};                  // of the quest
    std::optional<refusal> said_no_ = {};  // the first node's reason that was not silence
    instant asked_at_{};
    instant gather_until_ = never;  // some votes, no majority: until then others may still come
    milliseconds gather_for_{0};    // the last such wait
    instant heal_at_ = never;       // when nodes that do not vote for it are asked again
    poll_of_nodes releasing_;
    poll_of_nodes renewing_;
    poll_of_nodes changing_;
    std::shared_ptr<hold_listener> listener_;
    fencing_token token_ = 0;
    instant valid_until_{};
    instant granted_at_{};
};

}  // namespace holdfast::engine
