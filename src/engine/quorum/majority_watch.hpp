// Watches a mutex at several nodes, and tells what a majority of them has: the same holder by the same token, or none.
//
// A hold has one token on a majority of the nodes before its caller is told (raising), so what a majority has with
// equal id and token was held; what fewer have was perhaps never.
//
// Invariants:
//  (1) The last answer of each node counts, and that of a node whose link is down or that cannot answer does not.
//  (2) Where no majority says the same, nothing is told.
//  (3) No holder is told after one with a greater token.
//  (4) What a node said before a change was told, and which is not newer, does not count until it answers again: it
//      may have got the grant later than others got the release.
#pragma once

#include "engine/node/lock_watch.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

// What the nodes say, and what of it a majority says.
class majority_sight {
public:
    explicit majority_sight(std::size_t nodes) : nodes_(nodes) {}

    void said(std::size_t node, wire::watch_answer what) { nodes_[node] = {std::move(what), false}; }
    void is_silent(std::size_t node) { nodes_[node] = {std::nullopt, true}; }
    void forget_what_is_older_than(const wire::watch_answer& told, const std::string& holder_before);

    // Nothing if no majority says the same. What is left of the lease is what a majority has at least.
    std::optional<wire::watch_answer> common() const;
    // Too many are silent for a majority to say anything.
    bool is_out_of_reach() const noexcept;

private:
    struct view {
        std::optional<wire::watch_answer> says = {};
        bool is_silent = false;
    };
    std::size_t majority() const noexcept { return nodes_.size() / 2 + 1; }

    std::vector<view> nodes_;
};

class majority_watch {
public:
    majority_watch(std::size_t nodes, std::shared_ptr<watch_listener> listener);
    majority_watch(const majority_watch&) = delete;
    majority_watch& operator=(const majority_watch&) = delete;

    // What the watch at that node tells. Keeps `whole` alive.
    static std::shared_ptr<watch_listener> listener_at(const std::shared_ptr<majority_watch>& whole, std::size_t node) {
        return {whole, &whole->views_[node]};
    }

private:
    class node_view final : public watch_listener {
    public:
        node_view(majority_watch& whole, std::size_t node) : whole_(whole), node_(node) {}

    private:
        void on_sight(const wire::watch_answer& seen) override { whole_.on_sight(node_, seen); }
        void on_trouble(const failure& why) override { whole_.on_trouble(node_, why); }

        majority_watch& whole_;
        const std::size_t node_;
    };

    void on_sight(std::size_t node, const wire::watch_answer& seen);
    void on_trouble(std::size_t node, const failure& why);

    const std::shared_ptr<watch_listener> listener_;
    majority_sight sight_;
    std::vector<node_view> views_;
    std::optional<wire::watch_answer> last_;  // that was told
    fencing_token greatest_ = 0;
    bool was_told_trouble_ = false;
};

}  // namespace holdfast::engine
