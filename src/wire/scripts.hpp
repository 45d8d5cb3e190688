// The Lua scripts, embedded at build time, each with the SHA1 by which EVALSHA names it.
#pragma once

#include "redis/session/command.hpp"

#include <span>
#include <string_view>

namespace holdfast::wire {

using redis::script;

/// Every script, sorted by name.
std::span<const script> all() noexcept;

/// The script of that name; it is a programming error to ask for one that does not exist.
const script& find(std::string_view name) noexcept;

}  // namespace holdfast::wire
