// One simulated scenario: a server, clients and their people, faults, and the checker. The seed decides everything.
//
//     the busy hours: people ask, hold and let go; faults happen
//     the quiet hours: nothing new is begun, nothing goes wrong; whoever waits must be served
//     the night: everybody is gone, leases and retentions pass; nothing may be left
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world/actor.hpp"
#include "world/checker.hpp"
#include "world/client.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

enum class fault : std::uint8_t {
    cut,           // both ends notice; what was on its way is lost
    server_gone,   // the server's end is gone and the client does not notice
    client_gone,   // the client gives the link up and the server does not notice; late bytes still run
    lost_replies,  // requests get through, answers do not
    one_way_up,    // nothing gets from a client to the server for a while
    one_way_down,  // nor the other way
    slow_link,
    pause,    // of a client
    death,    // of a client
    stall,    // of the server
    restart,  // with all data
    restart_empty,
    restart_older,  // from a snapshot
    clock_forward,
    clock_back,
    script_flush,
    foreign,              // another program takes the lock
    foreign_forever,      // the same without expiry
    corrupting_client,    // somebody writes nonsense
    fail_over,            // to a replica that lags behind
    slot_move,            // of a Cluster: to another member
    slot_move_cancelled,  // begun, and called off
    cut_off_client,       // nothing gets through between a client and all servers, either way, for a while
    cut_off_server,       // the same of a server and all clients
    slow_server,          // all its links are slow for a while
    newcomer,             // one client more, who knows nothing of what was before
    count_
};
constexpr std::size_t fault_kinds = static_cast<std::size_t>(fault::count_);
std::string_view to_string(fault kind);

struct scenario_options {
    std::uint64_t seed = 1;
    std::size_t servers = 0;  // 0: the seed decides that, too
    /// Whether the server is a Cluster, whose slots move. By the seed: some of those scenarios that it gives one
    /// server.
    enum class clusters : std::uint8_t { by_seed, always } cluster = clusters::by_seed;
    /// One server with a replica that takes over again and again, and locks that count only what it has acknowledged:
    /// then a failover is no excuse for anything. Together with a Cluster: the same of its members, which without this
    /// is so on one in three of the scenarios that have a Cluster.
    bool replicated = false;
    std::shared_ptr<script_engine> engine;
    std::function<void(const std::string&)> trace;
    // Mutants, to see whether the checker notices.
    std::map<std::string, std::string, std::less<>> replaced_scripts;
    bool pushes_overtake = false;
    bool ids_repeat = false;
    bool clock_stops_in_pauses = false;
    bool forgetful_servers_vote = false;
    bool uptimes_look_exact = false;
    bool nobody_acknowledges = false;
    bool acks_write_nothing = false;
    bool runs_look_alike = false;
    bool asks_remembered = false;
    bool slots_leave_silently = false;
    bool half_runs_look_refused = false;
    bool confirm_answers_ignored = false;
    bool lease_left_ignored = false;
    bool moved_keys_unconfirmed = false;
    bool deadlines_ignored = false;
    bool answers_ignored = false;
    bool cancellations_ignored = false;
    bool first_failure_ends_waits = false;
};

struct scenario_result {
    std::string verdict;  // empty: nothing to complain of
    std::array<std::uint64_t, fault_kinds> faults{};
    std::uint64_t takeovers = 0;  // by a replica that may lack what it has not acknowledged
    std::uint64_t holds = 0;
    std::uint64_t scripts = 0;
    nanoseconds simulated{0};
};

scenario_result simulate(const scenario_options& options);

}  // namespace holdfast::sim
