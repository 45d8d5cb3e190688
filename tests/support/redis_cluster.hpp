// A Redis Cluster of a test's own: three primaries with a replica each, on free ports of the loopback.
//
// The constructor returns when every member says that all is well and every replica has caught up. Slots are moved as
// redis-cli does it, but step by step where a test wants to look on.
//
// No replica takes over unless the test says so: on a busy machine a primary may seem to be gone that is only slow, and
// then a test would be about something else.
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
    bool replicas = true;                  // one for each
    bool tls = false;                      // also among themselves; all have the same certificate
    std::vector<std::string> config{};     // further lines for each member
    std::vector<std::string> acl_users{};  // of each member: they are not replicated
};

class redis_cluster {
public:
    explicit redis_cluster(const cluster_options& options = {});

    /// redis+cluster://[login@]127.0.0.1:port,... of all members. Login: user:password.
    std::string url(const std::string& login = {}) const;
    /// The same with rediss+cluster:// and their TLS ports. Whom to trust is in tls().
    std::string tls_url(const std::string& login = {}) const;
    const tls_material& tls() const { return *material_; }

    /// The member that calls itself the owner of the key's slot; throws if there is none.
    redis_server& owner_of(const std::string& key);
    /// Some primary that is not.
    redis_server& other_than_owner_of(const std::string& key);
    /// The other of the two that take over from each other: a primary and its replica.
    redis_server& replica_of(const redis_server& primary);

    /// The slot of the key goes from its owner to `to`, in three steps. Of the middle one as many as there are keys.
    struct move {
        std::string slot;
        redis_server* from;
        redis_server* to;
    };
    move begin_move(const std::string& key, redis_server& to);
    /// At most so many keys; false if there was none left.
    bool move_keys(const move& which, int at_most);
    void move_keys(const move& which, const std::vector<std::string>& keys);
    enum class told { all_primaries, both_sides };
    /// As redis-cli does it all primaries are told; the others would hear of it in time, and have it wrong until then.
    void finish_move(const move& which, told who = told::all_primaries);
    /// All of it.
    void move_slot(const std::string& key, redis_server& to);

    /// One more primary, without a slot yet.
    redis_server& join_another();
    /// The one that joined last is gone, and forgotten by all. It must not have a slot any more.
    void dismiss_last();

    /// Waits until all know who owns the key's slot, and since which epoch. A move by one who has missed the last one
    /// may be given the same epoch, and be undone when they find that out.
    [[nodiscard]] bool have_all_heard(const std::string& key);

    /// CLUSTER FAILOVER, by hand and without loss; returns when the replica owns the key's slot.
    [[nodiscard]] bool fail_over(const std::string& key);
    /// Waits until all who run take that one for failed, which a test has taken away. Nobody replaces it yet.
    [[nodiscard]] bool is_given_up(const redis_server& gone);
    /// Lets its replica take over, and waits until that owns the key's slot and all who run agree.
    [[nodiscard]] bool has_replaced(const redis_server& gone, const std::string& key);
    /// Whoever was replaced runs again, without its data, or goes on. Waits until it is a replica that has caught up.
    [[nodiscard]] bool comes_back(redis_server& gone);

    std::vector<redis_server> members;  // the primaries first

private:
    void join();
    void meet_first(redis_server& member);
    void know_each_other();
    [[nodiscard]] bool is_settled();
    void set_node_timeout(std::chrono::milliseconds silence, const redis_server* not_asked = nullptr);
    // A running member other than `former` owns the key's slot, and all who run agree.
    [[nodiscard]] bool has_moved_from(const redis_server& former, const std::string& key);
    redis_server* find_owner(const std::string& key, const redis_server* not_asked = nullptr);
    std::string id_of(redis_server& member);
    /// Where members reach it.
    std::string port_among_members(const redis_server& member) const;
    server_options member_options() const;

    const cluster_options options_;
    temp_directory directory_{"hf-cluster-"};
    std::optional<tls_material> material_;
};

}  // namespace holdfast::testing
