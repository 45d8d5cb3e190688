// Puts questions to the server, outside of any lock operation.
#pragma once

#include "redis/session/command_writer.hpp"
#include "wire/scripts.hpp"

#include <holdfast/client.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// A reply, copied out of the connection's buffer.
struct answer {
    bool is_null = false;
    bool is_error = false;                // `text` is what the server said
    std::string text;                     // of strings
    std::optional<std::int64_t> integer;  // of integers, and of strings that are one
    std::vector<answer> items;            // of arrays and the like
};

// A plain command, or a script with what follows it: number of keys, keys, arguments.
struct question {
    std::vector<std::string> words;
    const wire::script* script = nullptr;
    // In a Cluster, what a refusal because the keys are moving is: waited for until the request timeout, or an answer.
    enum class moving { waited_for, told } if_moving = moving::waited_for;
};

// Throws holdfast::error with what the server said, or why it could not be asked.
answer ask(const client& server, std::initializer_list<redis::argument> command);

// All of them, pipelined; the i-th answer is to the i-th question. A refusal is an answer here; what throws is
// a server that cannot be asked.
std::vector<answer> ask_all(const client& server, const std::vector<question>& questions);

// The same where what cannot be had is not missed much: nothing for questions whose server, or member of a Cluster,
// cannot be asked, and for those after the first 500 that had such a one among them.
std::vector<std::optional<answer>> ask_what_can_be(const client& server, const std::vector<question>& questions);

// One question of either kind; a refusal throws.
answer ask(const client& server, const question& only);

// The value of a line "field:value" of INFO; nothing if there is none.
std::optional<std::string> info_field(std::string_view info, std::string_view field);

}  // namespace holdfast::cli
