// A client's backend to a place that votes: to one server, or to a whole Cluster. What src/api/backends/backend.hpp is
// in a program.
#pragma once

#include <vector>

#include "engine/engine.hpp"
#include "world/plug.hpp"

namespace holdfast::sim {

class backend {
public:
    backend() = default;
    backend(const backend&) = delete;
    backend& operator=(const backend&) = delete;
    virtual ~backend() = default;

    virtual engine::node_link link() = 0;
    /// Whom events are for; before anything else.
    virtual void attach(engine::node_agent& mine) = 0;

    /// Before anybody's settle().
    virtual void catch_up() = 0;
    /// Connects, hangs up and sends, as the sessions wish.
    virtual void settle() = 0;
    virtual void on_timer() = 0;
    virtual instant deadline() = 0;
    virtual void forget_links() = 0;
    virtual void close() = 0;

    /// Nothing is being made anew.
    virtual bool all_up() const = 0;
    /// Whom that lock is to be asked of can be asked.
    virtual bool reaches(const wire::lock_keys& lock) const = 0;
    /// Ends of the links that it has, or is making.
    virtual std::vector<plug*> plugs() = 0;
};

}  // namespace holdfast::sim
