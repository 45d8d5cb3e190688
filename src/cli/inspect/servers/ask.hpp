// Sends requests to the server, outside of any lock operation.
#pragma once

#include "api/operations/blocking_command.hpp"
#include "redis/session/command_writer.hpp"

#include <holdfast/client.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// A reply, copied out of the connection's buffer.
struct answer {
    bool is_null = false;
    bool is_error = false;                // `text` is the error
    std::string text;                     // of strings
    std::optional<std::int64_t> integer;  // of integers, and of strings that are one
    std::vector<answer> items;            // of arrays and the like
};

// A plain command.
struct request {
    std::vector<std::string> words;
};

// Throws holdfast::error with the server's error, or with the reason why it cannot be reached.
answer ask(const client& server, std::initializer_list<redis::argument> command);

// Sends all of them, pipelined; the i-th answer belongs to the i-th request. An error reply is an answer. Throws if the
// server cannot be reached.
std::vector<answer> ask_all(const client& server, const std::vector<request>& requests);

// The same for answers that are not important: nothing for a request whose server, or member of a Cluster, cannot be
// reached. One that fails costs a request timeout, so the bursts of 500 behind it are not sent.
std::vector<std::optional<answer>> ask_what_can_be(const client& server, const std::vector<request>& requests);

// Requests of any form, scripts included, in bursts: a server answers a burst well within a request timeout, and serves
// others in between. `read` runs inside the serial section; it also gets error replies.
void ask_in_bursts(const client& server, const std::vector<api::question>& requests,
                   const std::function<void(std::size_t, const redis::reply_view&)>& read);

// One script call. Returns the failure of an error reply; `read` gets any other reply, inside the serial section.
std::optional<failure> ask_script(const client& server, const api::question& call,
                                  const std::function<void(const redis::reply_view&)>& read);

// The value of a line "field:value" of INFO; nothing if there is none.
std::optional<std::string> info_field(std::string_view info, std::string_view field);

}  // namespace holdfast::cli
