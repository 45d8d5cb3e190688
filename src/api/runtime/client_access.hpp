// What the library, the command and the tests may see of a client, and its users may not.
#pragma once

#include <holdfast/client.hpp>

#include <memory>
#include <utility>

namespace holdfast::api {

struct client_access {
    static client make(std::shared_ptr<core> shared) noexcept { return client(std::move(shared)); }
    static const std::shared_ptr<core>& shared_core(const client& from) noexcept { return from.core_; }
};

inline const std::shared_ptr<core>& core_of(const client& from) noexcept {
    return client_access::shared_core(from);
}

}  // namespace holdfast::api
