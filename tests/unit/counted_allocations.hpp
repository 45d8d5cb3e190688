// How often this thread has allocated; counted_allocations.cpp replaces the operators of the whole program.
#pragma once

#include <cstddef>

namespace holdfast::redis::testing {

inline thread_local std::size_t allocations = 0;

}  // namespace holdfast::redis::testing
