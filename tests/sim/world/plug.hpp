// A client's end of the links to one server: the real session, and its present link if there is one. It stands for
// src/redis/session/connection.cpp.
#pragma once

#include <cstddef>

#include "redis/session/session.hpp"
#include "world/link.hpp"

namespace holdfast::sim {

class client;
class plug;

/// Makes links. It answers later, by plug::connected() or plug::not_connected().
class network {
public:
    virtual void connect(plug& from) = 0;

protected:
    ~network() = default;
};

class plug {
public:
    plug(client& owner, std::size_t server_number, redis::session_listener& told, const redis::server_settings& server,
         std::uint64_t jitter_seed, network& net);
    plug(const plug&) = delete;
    plug& operator=(const plug&) = delete;

    client& owner() const { return owner_; }
    /// The index of the server among those of the scenario.
    std::size_t server_number() const { return server_number_; }
    link* wire() { return link_; }
    redis::session& session() { return session_; }
    const redis::session& session() const { return session_; }
    bool up() const { return session_.up(); }

    /// Connects, disconnects and sends as the session requests.
    void settle();
    void disconnect();
    void forget_link();
    /// Disconnects and ignores whatever still arrives.
    void drop();

    // --- called by the network
    void connected(link& fresh, unsigned attempt);
    void not_connected(unsigned attempt);
    void received(link& from, const packet& what);
    unsigned attempt() const { return attempt_; }

protected:
    virtual ~plug() = default;
    instant now() const;

private:
    void read(link& from, const packet& what);

    client& owner_;
    const std::size_t server_number_;
    network& net_;
    redis::session session_;
    link* link_ = nullptr;
    unsigned attempt_ = 0;
};

}  // namespace holdfast::sim
