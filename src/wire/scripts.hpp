// The Lua scripts of this folder, embedded at build time, each with the SHA1 by which EVALSHA names it.
#pragma once

#include "base/assert.hpp"
#include "redis/session/command.hpp"

#include <span>
#include <string_view>

namespace holdfast::wire {

using redis::script;

/// The scripts of the locks, sorted by name: mutex/acquire, mutex/confirm, ...
std::span<const script> all() noexcept;
/// The scripts of tools, which read only: those in a folder called `tools`. Sorted by name.
std::span<const script> tools() noexcept;

/// The script of that name, of either list. It is a programming error to ask for one that does not exist.
inline const script& find(std::string_view name) noexcept {
    for (const auto list : {all(), tools()}) {
        for (const script& candidate : list) {
            if (candidate.name == name) return candidate;
        }
    }
    holdfast::detail::assertion_failed("a script of that name is embedded", __FILE__, __LINE__);
}

}  // namespace holdfast::wire
