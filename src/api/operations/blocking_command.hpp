// Blocking Redis commands, for questions that are not about holding a lock.
#pragma once

#include "api/runtime/core.hpp"
#include "redis/session/command_writer.hpp"

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>

namespace holdfast::api {

// Calls `read` with the reply, inside the serial section. Throws holdfast::error for an error reply or a failure. The
// command must be repeatable: after a broken link it is sent again on the next one, until the request timeout.
void ask_server(core& where, std::initializer_list<redis::argument> words,
                const std::function<void(const redis::reply_view&)>& read);

// Gives a command its payload.
using question = std::function<void(redis::command&)>;

// The same for many questions in one write. `read` gets the index of the question, and error replies, too. Throws only
// if the server cannot be asked.
void ask_server(core& where, std::span<const question> questions,
                const std::function<void(std::size_t, const redis::reply_view&)>& read);

// Sends the i-th question to the i-th server; there are as many questions as servers. Returns the first failure of a
// server that could not be asked; `read` gets the replies of the others.
std::optional<failure> ask_each_server(core& where, std::span<const question> questions,
                                       const std::function<void(std::size_t, const redis::reply_view&)>& read);

}  // namespace holdfast::api
