// The Lua scripts, embedded at build time, each with the SHA1 by which EVALSHA names it.
#pragma once

#include <span>
#include <string_view>

namespace holdfast::scripts {

struct script {
    std::string_view name;  // "mutex/acquire"
    std::string_view sha1;  // 40 lower-case hex digits
    std::string_view text;  // includes already put in
};

/// Every script, sorted by name.
std::span<const script> all() noexcept;

}  // namespace holdfast::scripts
