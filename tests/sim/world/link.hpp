// A connection between a client and the server, with each side's own idea of whether it is still there.
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

    std::uint64_t id = 0;  // as the server counts; from 1
    std::string address;   // of the client, as the server sees it
    std::size_t client = 0;
    bool server_open = false;
    bool client_open = false;
    pipe up;                    // client to server
    pipe down;                  // server to client
    std::deque<packet> unread;  // arrived at a server that stalls
    command_reader commands;
    instant sent{};                               // by the client: the last bytes that the server has read
    std::uint64_t wrote = 0;                      // the server's count of writes after the last one of this link
    std::uint64_t waits = 0;                      // not zero: in a WAIT, of that number; what came behind it waits too
    asking asked = asking::no;                    // ASKING was the last command
    std::set<std::string, std::less<>> channels;  // the sharded ones that it listens on
};

}  // namespace holdfast::sim
