// Assertions that state an invariant and stay on in release: a lock that goes on with a broken one does harm.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HOLDFAST_ASSERT(condition)                                                                        \
    do {                                                                                                  \
        if (!(condition)) [[unlikely]] {                                                                  \
            std::fprintf(stderr, "holdfast: broken invariant at %s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                                 \
        }                                                                                                 \
    } while (false)
