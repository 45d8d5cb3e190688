// A primary with replicas that follow it at once. The constructor returns when they have caught up.
#pragma once

#include <cstddef>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::testing {

/// The same for a server that follows `primary`, or, if that is null, is followed: a replica is there without delay,
/// and one that was a primary comes back as fast.
server_options replicating(server_options options, const redis_server* primary);

class replica_set {
public:
    explicit replica_set(std::size_t replicas, const server_options& each = {});

    /// Stops them, or has them go on; the primary then waits in vain, or no longer.
    void pause_replicas();
    void resume_replicas();
    /// All that the primary has done until now is there.
    [[nodiscard]] bool has_caught_up();

    redis_server primary;
    std::vector<redis_server> replicas;
};

}  // namespace holdfast::testing
