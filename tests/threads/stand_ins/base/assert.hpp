// In the place of src/base/assert.hpp: a broken invariant ends the run, not the test.
#pragma once

#include "threads/scheduler.hpp"

namespace holdfast::detail {

[[noreturn]] inline void assertion_failed(const char* what, const char*, int) noexcept {
    interleaving::fail(what);
    std::abort();
}

}  // namespace holdfast::detail

#define HOLDFAST_ASSERT(condition) \
    (static_cast<bool>(condition) ? void() : ::holdfast::detail::assertion_failed(#condition, __FILE__, __LINE__))
