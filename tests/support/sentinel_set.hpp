// A primary, two replicas and three sentinels that fail over within a second or two. They do so only when a test asks
// for it: a server that is merely slow on a busy machine keeps its role.
//
// All processes belong to the test and listen on free ports of the loopback. The constructor returns when the replicas
// have caught up and the sentinels know them and each other: before that no failover would happen.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::testing {

struct sentinel_options {
    std::string password{};              // password of the servers
    std::string sentinel_password{};     // password of the sentinels
    std::vector<std::string> config{};   // further configuration lines for each server
    std::string name = "stock-servers";  // the sentinels' name of the primary
};

class sentinel_set {
public:
    explicit sentinel_set(sentinel_options options = {});

    /// redis+sentinel://[:password@]127.0.0.1:port,...,.../name
    std::string url() const;

    /// The primary among `servers`, according to the first sentinel that answers.
    redis_server& primary();
    /// The same for one sentinel; throws if it names an unknown server.
    redis_server& primary_of(redis_server& sentinel);
    /// Waits until all running sentinels name another primary than `former`, and that server agrees.
    [[nodiscard]] bool has_moved_from(const redis_server& former);
    /// The same if `gone` was killed or hangs: the sentinels consider it down until then.
    [[nodiscard]] bool has_replaced(const redis_server& gone);
    /// Waits until the running replicas have the primary's data and could take over.
    [[nodiscard]] bool is_settled();
    /// SENTINEL FAILOVER, repeated until it begins.
    [[nodiscard]] bool fail_over();

    std::vector<redis_server> servers;
    std::vector<redis_server> sentinels;

private:
    redis_server& server_at(const std::string& port);
    void never_tilt();
    void take_for_down_after(std::chrono::milliseconds silence);

    sentinel_options options_;
};

}  // namespace holdfast::testing
