// A primary with replicas. The constructor returns when they have caught up.
#pragma once

#include <cstddef>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::testing {

/// Options of a server that replicates from `primary`, or of the primary if that is null: replication starts without
/// delay, and a former primary reconnects as fast.
server_options replicating(server_options options, const redis_server* primary);

class replica_set {
public:
    explicit replica_set(std::size_t replicas, const server_options& each = {});

    /// Stops or continues the replicas; a WAIT on the primary then fails or succeeds.
    void pause_replicas();
    void resume_replicas();
    /// Waits until the replicas have everything that the primary has done so far.
    [[nodiscard]] bool has_caught_up();

    redis_server primary;
    std::vector<redis_server> replicas;
};

}  // namespace holdfast::testing
