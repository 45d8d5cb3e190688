// A primary, two replicas and three sentinels that fail over within a second or two.
//
// They do so only where a test asks for it: a server that is merely slow on a busy machine keeps its part.
//
// All are processes of the test's own, on free ports of the loopback. The constructor returns when the replicas have
// caught up and the sentinels know of them and of each other: before that there would be no failover.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace holdfast::testing {

struct sentinel_options {
    std::string password{};              // of the servers
    std::string sentinel_password{};     // of the sentinels
    std::vector<std::string> config{};   // further lines for each server
    std::string name = "stock-servers";  // what the sentinels call the primary
};

class sentinel_set {
public:
    explicit sentinel_set(sentinel_options options = {});

    /// redis+sentinel://[:password@]127.0.0.1:port,...,.../name
    std::string url() const;

    /// Which of `servers` the first sentinel that answers calls the primary.
    redis_server& primary();
    /// The same for one sentinel; throws if it knows a server that is none of ours.
    redis_server& primary_of(redis_server& sentinel);
    /// Waits until all running sentinels call another one the primary than `former`, and that says so, too.
    [[nodiscard]] bool has_moved_from(const redis_server& former);
    /// The same, where `gone` was killed or hangs: the sentinels take it for down until then.
    [[nodiscard]] bool has_replaced(const redis_server& gone);
    /// Waits until the servers that run and are not the primary have its data and would be taken over from.
    [[nodiscard]] bool is_settled();
    /// SENTINEL FAILOVER, asked for until it is begun.
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
