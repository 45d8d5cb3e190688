// A Redis Cluster for one test: three primaries with a replica each, on free ports of the loopback.
//
// The constructor returns when every member reports a healthy Cluster and every replica has caught up. Slots move as
// redis-cli moves them, but step by step where a test wants to observe. No replica takes over unless the test says so:
// on a busy machine a slow primary may look failed, and then a test would test something else.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing {

struct cluster_options {
    int primaries = 3;
    bool replicas = true;                  // one per primary
    bool tls = false;                      // also between members; all have the same certificate
    std::vector<std::string> config{};     // further configuration lines for each member
    std::vector<std::string> acl_users{};  // of each member, because ACL users are not replicated
};

class redis_cluster {
public:
    explicit redis_cluster(const cluster_options& options = {});

    /// redis+cluster://[login@]127.0.0.1:port,... of all members. Login: user:password.
    std::string url(const std::string& login = {}) const;
    /// The same with rediss+cluster:// and TLS ports. The authority to trust is in tls().
    std::string tls_url(const std::string& login = {}) const;
    const tls_material& tls() const { return *material_; }

    /// The member that claims to own the key's slot; throws if there is none.
    redis_server& owner_of(const std::string& key);
    /// A primary that does not own it.
    redis_server& other_than_owner_of(const std::string& key);
    /// The counterpart in the same pair of primary and replica.
    redis_server& replica_of(const redis_server& primary);

    /// Moves the slot of the key from its owner to `to`, in three steps. The middle one repeats while keys are left.
    struct move {
        std::string slot;
        redis_server* from;
        redis_server* to;
    };
    move begin_move(const std::string& key, redis_server& to);
    /// Moves at most this many keys; false if none was left.
    bool move_keys(const move& which, int at_most);
    void move_keys(const move& which, const std::vector<std::string>& keys);
    enum class told { all_primaries, both_sides };
    /// Tells all primaries, as redis-cli does; otherwise the others would have the wrong owner for a while.
    void finish_move(const move& which, told who = told::all_primaries);
    /// All steps.
    void move_slot(const std::string& key, redis_server& to);

    /// Adds a primary without slots.
    redis_server& join_another();
    /// Removes the member that joined last; all others forget it. It must not own a slot any more.
    void dismiss_last();

    /// Waits until all members know the owner of the key's slot and its epoch. A member that has missed the last move
    /// could get the same epoch for its own move, which would be undone later.
    [[nodiscard]] bool have_all_heard(const std::string& key);

    /// CLUSTER FAILOVER, manual and without loss; returns when the replica owns the key's slot.
    [[nodiscard]] bool fail_over(const std::string& key);
    /// Waits until all running members consider this one failed, which the test has stopped. No replica takes over yet.
    [[nodiscard]] bool is_given_up(const redis_server& gone);
    /// Lets its replica take over; waits until that owns the key's slot and all running members agree.
    [[nodiscard]] bool has_replaced(const redis_server& gone, const std::string& key);
    /// Restarts the replaced member without its data, or continues it. Waits until it is a replica that has caught up.
    [[nodiscard]] bool comes_back(redis_server& gone);

    std::vector<redis_server> members;  // primaries first

private:
    void join();
    void meet_first(redis_server& member);
    void know_each_other();
    [[nodiscard]] bool is_settled();
    void set_node_timeout(std::chrono::milliseconds silence, const redis_server* not_asked = nullptr);
    // True if a running member other than `former` owns the key's slot, and all running members agree.
    [[nodiscard]] bool has_moved_from(const redis_server& former, const std::string& key);
    redis_server* find_owner(const std::string& key, const redis_server* not_asked = nullptr);
    std::string id_of(redis_server& member);
    /// The address at which the members reach it.
    std::string port_among_members(const redis_server& member) const;
    server_options member_options() const;

    const cluster_options options_;
    temp_directory directory_{"hf-cluster-"};
    std::optional<tls_material> material_;
};

}  // namespace holdfast::testing
