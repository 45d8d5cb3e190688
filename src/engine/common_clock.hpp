// One clock for several nodes, and what is made by it: tickets and proposals for tokens.
//
// A ticket is the same at every node, so that all queues have the same order: it is the time at which somebody began to
// wait, by the common clock. That clock is the middle one of the nodes' clocks, which a minority of wrong ones cannot
// move out of the right ones. Only real clock readings teach it (INFO, and the server's time in answers).
//
// With one node there is nothing to agree on: the node makes tickets and tokens itself.
#pragma once

#include "engine/terms.hpp"

namespace holdfast::engine {

class common_clock {
public:
    // The clock was read after the request was written and before it was answered.
    struct window {
        instant asked;
        instant answered;
    };

    explicit common_clock(std::size_t nodes) : at_boot_(nodes) {}

    // When the link came up, the node's clock showed this.
    void set(std::size_t node, std::chrono::microseconds shown, instant now);
    // The estimate is put right only as far as the reading proves it wrong: an answer that took long proves little.
    void learn(std::size_t node, std::chrono::microseconds shown, window when);

    // What the next token had best be; 0: let the node say.
    fencing_token proposal(instant now) const;
    // The highest token seen so far. The highest per lock would grow without bound; one floor for all names of this
    // client is as good: tokens are server times, and a floor only has to be high enough.
    fencing_token floor() const noexcept { return floor_; }
    void saw(fencing_token token) noexcept { floor_ = std::max(floor_, token); }

    // For an acquisition that begins now: above all tickets of this client. Empty: too few clocks are known.
    std::string make_ticket(instant now);
    // For one that began when too few clocks were known.
    std::string ticket_of(instant asked);
    // The common clock turned out to be another than the tickets were made by: more nodes' clocks are known now, or
    // they were set. By its old ticket a waiter would stand before or behind everybody else, perhaps for hours. Returns
    // by how much tickets are to be moved, modulo 2^64.
    std::optional<std::uint64_t> move_tickets(instant now);
    // At most once a second: a Cluster is one node, and its members may have clocks that differ.
    bool may_move_tickets(instant now) const noexcept;

private:
    bool several() const noexcept { return at_boot_.size() > 1; }
    std::optional<std::chrono::microseconds> common_at_boot() const;
    std::optional<std::uint64_t> common_us(instant now) const;

    // What each node's clock showed when ours began, as far as known; a little less rather than more.
    std::vector<std::optional<std::chrono::microseconds>> at_boot_;
    fencing_token floor_ = 0;
    std::uint64_t last_ticket_ = 0;
    std::optional<std::chrono::microseconds> tickets_by_;  // the common clock that they were made by
    instant tickets_moved_{};                              // last
};

}  // namespace holdfast::engine
