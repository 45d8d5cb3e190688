// The keys on a server that should not exist at the end.
#pragma once

#include <string>

#include "support/redis_server.hpp"

namespace holdfast::testing {

/// Every key except fencing marks and clients' cards, and those too if they never expire. Empty: nothing is left.
inline std::string leftovers(redis_server& server) {
    std::string found;
    for (const redis_reply& key : server.call({"KEYS", "*"}).elements) {
        const auto left_ms = server.call({"PTTL", key.text}).integer;
        if (left_ms == -2) continue;  // expired in the meantime
        const bool may_stay = key.text.ends_with(":fence") || key.text.starts_with("hf:client:");
        if (!may_stay || left_ms == -1) found += ' ' + key.text + " (" + std::to_string(left_ms) + " ms)";
    }
    return found;
}

}  // namespace holdfast::testing
