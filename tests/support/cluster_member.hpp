// One member of a Cluster with a moving slot, for tests of that member's answers.
//
// The other member does not exist. It is in the configuration that this one starts with, and its failure is not due
// yet: so this member considers the Cluster healthy, owns all slots or none, and begins and cancels moves as the test
// says.
//
// The test can write that configuration only in the format of Redis 7.0, without shard ids. Redis 7.2 and later, and
// Valkey, read it, but then the primary is in no shard, and the first SPUBLISH ends the server by an assertion. So the
// member saves the configuration in its own format and starts again. A real member that was updated has the same defect
// until its second start: docs/deployment.md.
#pragma once

#include <memory>
#include <string>

#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing {

class cluster_member {
public:
    enum class share { all_slots, no_slot };

    /// Who wrote the configuration that the server reads at its last start.
    enum class node_map { of_this_server, of_redis_7_0 };

    /// Returns when the member reports a healthy Cluster, which takes two seconds.
    explicit cluster_member(share owned, node_map from = node_map::of_this_server);

    redis_server& server() { return *server_; }

    /// Begins to move the slot of that key: to the other member if it is ours, otherwise from there to us.
    void begin_move(const std::string& key);
    /// Cancels the move.
    void call_off_move(const std::string& key);

private:
    std::string slot_of(const std::string& key);
    void must(const std::vector<std::string>& arguments);

    share owned_;
    temp_directory directory_{"hf-member-"};
    std::unique_ptr<redis_server> server_;
};

}  // namespace holdfast::testing
