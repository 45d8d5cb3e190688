// A call on a thread of its own; its result comes as a future, and whoever drops that waits for it.
#pragma once

#include <future>
#include <utility>

namespace holdfast::testing {

template <typename Function>
auto in_background(Function function) {
    return std::async(std::launch::async, std::move(function));
}

}  // namespace holdfast::testing
