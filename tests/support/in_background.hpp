// Runs a call on its own thread. The result is a future; destroying it waits for the call.
#pragma once

#include <future>
#include <utility>

namespace holdfast::testing {

template <typename Function>
auto in_background(Function function) {
    return std::async(std::launch::async, std::move(function));
}

}  // namespace holdfast::testing
