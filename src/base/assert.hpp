// An assertion that states an invariant and stays on in release. A lock that goes on after a broken invariant could
// have two holders, so the process stops.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace holdfast::detail {

[[noreturn, gnu::cold]] inline void assertion_failed(const char* what, const char* file, int line) noexcept {
    std::fprintf(stderr, "holdfast: broken invariant: %s (%s:%d)\n", what, file, line);
    std::abort();
}

}  // namespace holdfast::detail

// A macro only because a function cannot see the text of its argument.
#define HOLDFAST_ASSERT(condition) \
    (static_cast<bool>(condition) ? void() : ::holdfast::detail::assertion_failed(#condition, __FILE__, __LINE__))
