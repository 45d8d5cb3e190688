// The nodes that vote, and what can be asked of all of them together.
#pragma once

#include "engine/hold.hpp"
#include "engine/node/node_agent.hpp"

#include <boost/container/small_vector.hpp>

namespace holdfast::engine {

// Nodes that do not vote yet.
struct recovery {
    struct node {
        std::string server;
        milliseconds votes_in{0};
    };
    std::vector<node> nodes = {};
    milliseconds enough_in{0};  // until a majority votes; zero: one does, or too few can be reached
};

// Of one hold; more nodes than these are rare.
using node_holds = boost::container::small_vector<node_hold*, 7>;

class node_set {
public:
    void add(std::unique_ptr<node_agent> one) { agents_.push_back(std::move(one)); }
    void clear() noexcept { agents_.clear(); }

    std::size_t size() const noexcept { return agents_.size(); }
    std::size_t majority() const noexcept { return agents_.size() / 2 + 1; }
    bool several() const noexcept { return agents_.size() > 1; }
    auto begin() const noexcept { return agents_.begin(); }
    auto end() const noexcept { return agents_.end(); }
    node_agent& operator[](std::size_t number) const noexcept { return *agents_[number]; }
    node_agent& of(const node_hold& n) const noexcept { return *agents_[n.node]; }

    template <typename Counts>
    static std::size_t count(const hold& h, Counts counts) {
        return static_cast<std::size_t>(std::ranges::count_if(h.nodes(), counts));
    }
    // The nodes at which that lock can be asked for now.
    std::size_t links_up(const hold& h) const;
    // Enough nodes have been reached at some time.
    bool was_reached() const noexcept;

    // --- node holds that count
    // A node hold that only reads does not back a hold that writes.
    static bool is_backed_by(const hold& h, const node_hold& n) noexcept {
        return h.exclusive > 0 ? n.writes() : n.counts();
    }
    static node_holds backing(hold& h) { return those(h, is_backed_by); }
    // The node granted what is asked for: an upgrade is granted where the node hold writes.
    static bool is_in_favour(const hold& h, const node_hold& n) noexcept {
        return h.phase == hold_phase::held ? n.writes() && !n.asks() : n.counts();
    }
    static node_holds in_favour(hold& h) { return those(h, is_in_favour); }
    // The majority-th longest of their validities; there must be a majority.
    instant validity_of(const node_holds& backing) const;

    // --- why there is no majority
    // Which nodes do not vote about that lock yet, because they may have forgotten holds that are still believed in.
    recovery recovery_of(const lock_keys& lock, instant now) const;
    refusal recovering(const lock_keys& lock, instant now) const;
    // Of each node whose link is not up.
    std::string why_out_of_reach(const hold& h) const;

private:
    static node_holds those(hold& h, bool (*counts)(const hold&, const node_hold&) noexcept);

    std::vector<std::unique_ptr<node_agent>> agents_;
};

}  // namespace holdfast::engine
