// One member of a Cluster, with a slot on the move, for tests that want to see what that member answers.
//
// The other member is never there. It is in the configuration that this one starts with, and nothing is long overdue:
// so this one believes all to be well, owns all slots or none, and a move of a slot is begun and called off as the test
// says.
//
// The test can write that configuration only in the form of Redis 7.0, without shard ids. Redis 7.2 and later, and
// Valkey, read it, but a primary is then in no shard, and the first SPUBLISH ends the server by an assertion. So the
// member saves the configuration in its own form and starts again. A real member that was updated has the same defect
// until it starts for the second time: docs/deployment.md.
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

    /// Returns when the member says that its Cluster is well, which takes it two seconds.
    explicit cluster_member(share owned, node_map from = node_map::of_this_server);

    redis_server& server() { return *server_; }

    /// The slot of that key begins to move: to the other member if it is ours, or from there to us.
    void begin_move(const std::string& key);
    /// It stays where it is.
    void call_off_move(const std::string& key);

private:
    std::string slot_of(const std::string& key);
    void must(const std::vector<std::string>& arguments);

    share owned_;
    temp_directory directory_{"hf-member-"};
    std::unique_ptr<redis_server> server_;
};

}  // namespace holdfast::testing
