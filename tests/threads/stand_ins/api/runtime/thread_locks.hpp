// In the place of src/api/runtime/thread_locks.hpp: what the fast path needs of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace holdfast::api {

class thread_locks {};

struct locked_levels {
    std::atomic<std::size_t> of_engine = 0;
    std::atomic<std::size_t> local = 0;
};
using lock_count = std::shared_ptr<locked_levels>;

}  // namespace holdfast::api
