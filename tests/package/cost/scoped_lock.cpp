// What a user's file costs to compile: one lock.
#include <holdfast/holdfast.hpp>

#include <mutex>

void sell(holdfast::client& redis) {
    holdfast::mutex stock{redis, "stock:1001"};
    std::scoped_lock guard{stock};
}
