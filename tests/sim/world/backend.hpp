// What a client connects to as one node: a server or a whole Cluster. Stands for src/api/backends/backend.hpp.
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
    /// The agent that receives the events of this node. Called first.
    virtual void attach(engine::node_input& mine) = 0;

    /// Runs on all backends before the first settle().
    virtual void catch_up() = 0;
    /// Connects, disconnects and sends as the sessions request.
    virtual void settle() = 0;
    virtual void on_timer() = 0;
    virtual instant deadline() = 0;
    virtual void forget_links() = 0;
    virtual void close() = 0;

    /// No link is being established.
    virtual bool all_up() const = 0;
    /// The link to the owner of the lock is up.
    virtual bool reaches(const wire::lock_keys& lock) const = 0;
    /// The client's ends of all links, established or connecting.
    virtual std::vector<plug*> plugs() = 0;
};

}  // namespace holdfast::sim
