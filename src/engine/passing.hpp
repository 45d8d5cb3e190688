// When to ask again after a refusal that may pass (see may_pass()).
#pragma once

#include "base/errc_table.hpp"

#include <chrono>

namespace holdfast::engine {

constexpr std::chrono::milliseconds again_after{100};

}  // namespace holdfast::engine
