// Plain Redis commands, waited for: for questions that are not about holding a lock.
#pragma once

#include "api/runtime/core.hpp"
#include "redis/session/command_writer.hpp"

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>

namespace holdfast::api {

// `read` looks at the reply inside the serial section; an error reply or a failure is thrown as
// holdfast::error. The command must have no effect, or one that may be repeated: after a broken link it is
// asked again on the next one, until the request timeout.
void ask_server(core& where, std::initializer_list<redis::argument> words,
                const std::function<void(const redis::reply_view&)>& read);

// Gives a command its payload.
using question = std::function<void(redis::command&)>;

// The same for many questions in one write. `read` is told which of them is answered, and gets error replies,
// too; only a server that cannot be asked is thrown.
void ask_server(core& where, std::span<const question> questions,
                const std::function<void(std::size_t, const redis::reply_view&)>& read);

// Puts the i-th question to the i-th server; as many as there are servers. Returns why the first one that could not be
// asked could not; `read` has heard of the others.
std::optional<failure> ask_each_server(core& where, std::span<const question> questions,
                                       const std::function<void(std::size_t, const redis::reply_view&)>& read);

}  // namespace holdfast::api
