// Which servers an acquisition waits for because they were started a short while ago.
#pragma once

#include "api/runtime/core.hpp"

namespace holdfast::api {

// As the engine knows them now. Any thread that may block.
engine::recovery recovery_of(core& where, const engine::lock_keys& lock);

}  // namespace holdfast::api
