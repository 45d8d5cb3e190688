// One member of a Cluster, with a slot on the move, for tests that want to see what that member answers.
//
// The other member is never there. It is in the configuration that this one starts with, and nothing is long overdue:
// so this one believes all to be well, owns all slots or none, and a move of a slot is begun and called off as the test
// says.
#pragma once

#include <memory>
#include <string>

#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing {

class cluster_member {
public:
    enum class share { all_slots, no_slot };

    /// Returns when the member says that its Cluster is well, which takes it two seconds.
    explicit cluster_member(share owned);

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
