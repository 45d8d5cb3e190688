// What endangers locks in a Cluster though each of its primaries is well.
#include "cli/doctor/doctor.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t all_slots = 16384;
const milliseconds usual_lease = mutex_options{}.lease;

// As the primary has it that sees fewest slots.
finding check_coverage(const std::vector<patient>& primaries) {
    const auto states = told_by(primaries, [](const server_survey& one) { return one.cluster_info("cluster_state"); });
    const auto slots = told_by(primaries, [](const server_survey& one) {
        return whole_number(one.cluster_info("cluster_slots_ok").value_or(""));
    });
    if (states.empty() || slots.empty()) {
        return {"coverage", severity::warning, "the state of the Cluster could not be read",
                "Nobody knows whether every lock can be acquired.", "allow this user CLUSTER INFO"};
    }
    const std::int64_t served = std::ranges::min(slots);
    const bool is_down = std::ranges::any_of(states, [](const std::string& state) { return state != "ok"; });
    if (served == all_slots && !is_down) return fine("coverage", "every slot has a primary that answers");
    const std::string what =
        fmt::format("{} of {} slots are served{}", served, all_slots, is_down ? ", it is down" : "");
    return {"coverage", severity::danger, what,
            is_down ? "No lock can be acquired or renewed."
                    : "Locks whose names are in the other slots cannot be acquired or renewed.",
            "bring the missing primaries back, or see redis-cli --cluster check"};
}

bool has_replica_online(const server_survey& survey) {
    for (int i = 0;; ++i) {
        const auto line = survey.info(fmt::format("slave{}", i));
        if (!line) return false;
        if (line->find("state=online") != std::string::npos) return true;
    }
}

finding check_spares(const std::vector<patient>& primaries) {
    std::vector<std::string> bare;
    for (const patient& one : primaries) {
        if (!one.answers()) continue;
        if (!one.survey->info("connected_slaves")) return unknown("spares", "the replicas of the primaries");
        if (!has_replica_online(*one.survey)) bare.push_back(one.server);
    }
    if (bare.empty()) return fine("spares", "every primary has a replica that is online");
    return {"spares", severity::warning, fmt::format("no replica is online of {}", fmt::join(bare, ", ")),
            "When such a primary fails nobody takes over: its locks are out of reach until it is back.",
            "give every primary a replica, on another machine"};
}

finding check_full_coverage(const std::vector<patient>& primaries) {
    const auto settings =
        told_by(primaries, [](const server_survey& one) { return one.setting("cluster-require-full-coverage"); });
    if (settings.empty()) return unknown("full-coverage", "cluster-require-full-coverage");
    const auto on = std::ranges::find_if(settings, [](const std::string& value) { return value != "no"; });
    if (on == settings.end()) return fine("full-coverage", "a primary that fails stops nobody else's locks");
    return {"full-coverage", severity::warning, "cluster-require-full-coverage is " + *on,
            "While one primary is being replaced the locks of all the others cannot be used either, and may be lost.",
            "CONFIG SET cluster-require-full-coverage no on every member"};
}

// Twice as long as a failover takes, as docs/deployment.md has it; in whole seconds, as it is told.
std::chrono::seconds shortest_lease_that_outlives(milliseconds node_timeout) {
    constexpr milliseconds election{2000};
    constexpr milliseconds news{1000};
    return std::chrono::ceil<std::chrono::seconds>(2 * (node_timeout * 3 / 2 + election + news));
}

finding check_node_timeout(const std::vector<patient>& primaries) {
    const auto timeouts =
        told_by(primaries, [](const server_survey& one) { return one.setting_number("cluster-node-timeout"); });
    if (timeouts.empty()) return unknown("failover", "cluster-node-timeout");
    const milliseconds longest(std::ranges::max(timeouts));
    const std::string what = "cluster-node-timeout is " + about(longest);
    const auto needed = shortest_lease_that_outlives(longest);
    if (needed <= usual_lease) return fine("failover", what);
    return {"failover", severity::warning, what,
            fmt::format("A failover takes up to one and a half times that, two seconds for the election and one until "
                        "the client has heard of it. Holders live through it if leases are twice as long: {}. The "
                        "usual lease is {}.",
                        about(needed), about(usual_lease)),
            fmt::format("CONFIG SET cluster-node-timeout {} on every member, or use leases of {}",
                        milliseconds(usual_lease / 6).count(), about(needed))};
}

// The validity of a hold is a hundredth of the lease shorter than the lease: by that much clocks may differ. At a
// failover the clocks of the replicas matter, which are not asked; whoever synchronises the primaries synchronises
// them, too.
finding check_clocks(const std::vector<patient>& primaries) {
    const auto [apart, error] = spread_of_clocks(primaries);
    if (apart - error <= usual_lease / 100) {
        return fine("clocks", fmt::format("the primaries' within {} of each other; replicas are not asked",
                                          about(apart + error)));
    }
    return {"clocks", severity::warning,
            fmt::format("the primaries' are {} apart from each other; replicas are not asked", about(apart)),
            "Replicas store absolute expiry times. After a failover leases end that much earlier or later "
            "than their holders believe, and tokens may shrink. A slot that is moved cuts nothing short.",
            "run chrony or another NTP client on all members"};
}

finding check_settings(const std::vector<patient>& primaries) {
    const auto different = different_settings(primaries, {"cluster-node-timeout", "cluster-require-full-coverage"});
    if (different.empty()) return fine("settings", "the same on all primaries");
    return {"settings", severity::warning, fmt::format("not the same: {}", fmt::join(different, ", ")),
            "Locks work. But which of these a lock gets depends on its name, and changes when its slot is moved.",
            "set all members up alike"};
}

}  // namespace

std::vector<finding> examine_cluster(const std::vector<patient>& primaries) {
    return {check_coverage(primaries),     check_spares(primaries), check_full_coverage(primaries),
            check_node_timeout(primaries), check_clocks(primaries), check_settings(primaries)};
}

}  // namespace holdfast::cli
