// Makes leases. The public class has no public constructor for it.
#pragma once

#include "api/locks/hold_face.hpp"

#include <holdfast/lease.hpp>

#include <memory>
#include <utility>

namespace holdfast::api {

struct lease_access {
    static lease make(std::shared_ptr<hold_face> held, mode kind) noexcept { return lease(std::move(held), kind); }
};

}  // namespace holdfast::api
