// A connection between a client and the server. Each side has its own view of whether it is open.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "server_model/slot_guard.hpp"
#include "world/pipe.hpp"
#include "world/wire.hpp"

namespace holdfast::sim {

struct link {
    link(timeline& time, random_stream& random, pipe::sink to_server, pipe::sink to_client)
        : up(time, random, std::move(to_server)), down(time, random, std::move(to_client)) {}

    std::uint64_t id = 0;  // the server's connection number, from 1
    std::string address;   // of the client, as the server sees it
    std::size_t client = 0;
    bool server_open = false;
    bool client_open = false;
    pipe up;                    // client to server
    pipe down;                  // server to client
    std::deque<packet> unread;  // arrived while the server stalls
    command_reader commands;
    instant sent{};             // when the client sent the last bytes that the server has read
    std::uint64_t wrote = 0;    // the server's write count after this link's last write
    std::uint64_t waits = 0;    // not zero: the number of the WAIT in progress; later commands of the link wait, too
    asking asked = asking::no;  // the last command was ASKING
    std::set<std::string, std::less<>> channels;  // sharded channels it is subscribed to
};

}  // namespace holdfast::sim
