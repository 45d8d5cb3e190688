#include "base/fork_guard.hpp"

#include <pthread.h>
#include <atomic>

namespace holdfast {
namespace {

std::atomic<std::uint64_t> generation{0};

}  // namespace

std::uint64_t fork_generation() noexcept {
    static const int registered =
        ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    static_cast<void>(registered);
    return generation.load(std::memory_order_relaxed);
}

}  // namespace holdfast
