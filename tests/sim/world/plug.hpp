// A client's end of the links to one server: the real session, and the link that it has at the moment, if any. It is
// what src/redis/session/connection.cpp is in a program.
#pragma once

#include <cstddef>

#include "redis/session/session.hpp"
#include "world/link.hpp"

namespace holdfast::sim {

class client;
class plug;

/// Makes links; answers with plug::connected() or plug::not_connected(), later.
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

    client& owner() { return owner_; }
    /// The number of the server.
    std::size_t server_number() const { return server_number_; }
    link* wire() { return link_; }
    redis::session& session() { return session_; }
    const redis::session& session() const { return session_; }
    bool up() const { return session_.up(); }

    /// Connects, hangs up and sends, as the session wishes.
    void settle();
    void hang_up();
    void forget_link();
    /// Hangs up, and takes nothing any more.
    void drop();

    // --- for the network
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
