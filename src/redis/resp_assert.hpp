// An assertion that stays on in release builds, unlike assert().
//
// The codec's callers rely on its invariants to tell which reply answers which request; going on after one of
// them is broken could hand a caller somebody else's lock. Stopping is the safe answer.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace holdfast::redis::detail {

[[noreturn, gnu::cold]] inline void resp_assertion_failed(const char* what, const char* where) noexcept {
    std::fprintf(stderr, "holdfast: assertion failed: %s (%s)\n", what, where);
    std::abort();
}

}  // namespace holdfast::redis::detail

// Macros only because a function cannot see the text of its argument.
#define HOLDFAST_RESP_TEXT_2(x) #x
#define HOLDFAST_RESP_TEXT(x) HOLDFAST_RESP_TEXT_2(x)
#define HOLDFAST_RESP_ASSERT(condition)                                               \
    (static_cast<bool>(condition) ? void()                                            \
                                  : ::holdfast::redis::detail::resp_assertion_failed( \
                                        #condition, __FILE__ ":" HOLDFAST_RESP_TEXT(__LINE__)))
