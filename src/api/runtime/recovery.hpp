// The servers that do not vote yet because they started a short while ago.
#pragma once

#include "api/runtime/core.hpp"

namespace holdfast::api {

// As the engine knows them now. For any thread that may block.
engine::recovery recovery_of(core& where, const engine::lock_keys& lock);

}  // namespace holdfast::api
