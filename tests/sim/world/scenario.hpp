// One simulated scenario: servers, clients with their actors, faults, and the checker. The seed decides everything.
//
// Phases:
//   busy         actors acquire, hold and release; faults happen
//   draining     no new acquisition and no new fault; every waiter must be served
//   final state  all clients are closed, leases and retentions pass; no key may be left
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world/actor.hpp"
#include "world/checker.hpp"
#include "world/client.hpp"
#include "world/keeper.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

enum class fault : std::uint8_t {
    cut,           // both ends notice; data in flight is lost
    server_gone,   // the server's end is closed and the client does not notice
    client_gone,   // the client drops the link and the server does not notice; late bytes still run
    lost_replies,  // requests arrive, answers do not
    one_way_up,    // nothing arrives at the server for a while
    one_way_down,  // nothing arrives at the client for a while
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
    foreign,              // a foreign client acquires the lock
    foreign_forever,      // the same without expiry
    corrupting_client,    // writes garbage into the lock's keys
    fail_over,            // to a replica that lags
    slot_move,            // Cluster: to another member
    slot_move_cancelled,  // Cluster: begun, then cancelled
    cut_off_client,       // partition between a client and all servers
    cut_off_server,       // partition between a server and all clients
    slow_server,          // all links of a server are slow for a while
    newcomer,             // one more client, which has never connected before
    count_
};
constexpr std::size_t fault_kinds = static_cast<std::size_t>(fault::count_);
std::string_view to_string(fault kind);

struct scenario_options {
    std::uint64_t seed = 1;
    std::size_t servers = 0;  // 0: the seed decides
    /// Whether the server is a Cluster whose slots move. `by_seed`: some of the scenarios with one server.
    enum class clusters : std::uint8_t { by_seed, always } cluster = clusters::by_seed;
    /// One server with a replica that takes over again and again, and locks that require its acknowledgement: then a
    /// failover excuses nothing. With a Cluster: the same for its members. Without this option one Cluster scenario in
    /// three is like that.
    bool replicated = false;
    std::shared_ptr<script_engine> engine;
    std::function<void(const std::string&)> trace;
    // Mutants: each must make the checker fail.
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
    bool delay_ignored = false;
    bool first_failure_ends_waits = false;
    /// Whether clients keep locks and share them among their actors. `by_seed`: in half of the scenarios.
    enum class keeping : std::uint8_t { by_seed, always, never } kept = keeping::by_seed;
    kept_mutant broken_keeper = kept_mutant::none;
    /// Whether some clients poll, and for some a message proves nothing. `by_seed`: in one scenario of seven.
    /// `all_hinted`: for all clients of a single server a message proves nothing.
    enum class polling : std::uint8_t { by_seed, always, all_hinted } polls = polling::by_seed;
    /// Whether some locks are semaphores. `by_seed`: in a fifth of the scenarios with one server or a Cluster.
    enum class counting : std::uint8_t { by_seed, always, never } semaphores = counting::by_seed;
    /// Whether holders and waiters of mutexes and read-write locks have notes. `by_seed`: in a fourth of the scenarios.
    enum class noting : std::uint8_t { by_seed, always, never } notes = noting::by_seed;
    /// Whether some users watch mutexes. `by_seed`: in a fifth of the scenarios with one server or a Cluster.
    enum class watching : std::uint8_t { by_seed, always, never } watchers = watching::by_seed;
    watch_mutant broken_watcher = watch_mutant::none;
};

struct scenario_result {
    std::string verdict;  // empty: every rule was kept
    std::array<std::uint64_t, fault_kinds> faults{};
    std::uint64_t takeovers = 0;  // by a replica that may lack what it has not acknowledged
    std::uint64_t holds = 0;
    std::uint64_t scripts = 0;
    nanoseconds simulated{0};
};

scenario_result simulate(const scenario_options& options);

}  // namespace holdfast::sim
