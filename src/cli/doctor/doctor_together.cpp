// What endangers locks on several nodes, or on the primaries of a Cluster, though each of them is well.
#include "cli/doctor/doctor.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <type_traits>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr auto token_window = 1s;  // a server accepts a proposed token that is no further from its clock
constexpr std::int64_t all_slots = 16384;
const milliseconds usual_lease = mutex_options{}.lease;

// What the surveys tell, of those servers that answer and tell it.
template <typename Question>
auto told_by(const std::vector<patient>& all, const Question& question) {
    std::vector<typename std::invoke_result_t<const Question&, const server_survey&>::value_type> told;
    for (const patient& one : all) {
        if (!one.answers()) continue;
        if (auto value = question(*one.survey)) told.push_back(std::move(*value));
    }
    return told;
}

struct clock_spread {
    milliseconds apart{0};  // as measured
    milliseconds error{0};  // it may be that much more or less
};

clock_spread spread_of_clocks(const std::vector<patient>& all) {
    const auto skews = told_by(all, [](const server_survey& one) { return std::optional(one.skew); });
    const auto errors = told_by(all, [](const server_survey& one) { return std::optional(one.skew_error); });
    const auto [least, most] = std::ranges::minmax(skews);
    return {std::chrono::floor<milliseconds>(most - least),
            std::chrono::ceil<milliseconds>(2 * std::ranges::max(errors))};
}

// Whether version and settings are the same on all; `more` are settings beside the usual ones.
finding check_settings(const std::vector<patient>& all, const std::vector<const char*>& more, finding if_different) {
    std::vector<std::string> different;
    const auto compare = [&](const char* name, const auto& value_of) {
        const std::vector<std::string> values = told_by(all, value_of);
        const auto other = std::ranges::find_if(values, [&](const std::string& one) { return one != values.front(); });
        if (other != values.end()) different.push_back(fmt::format("{} ({}, {})", name, values.front(), *other));
    };
    const auto compare_setting = [&](const char* name) {
        compare(name, [name](const server_survey& one) { return one.setting(name); });
    };
    compare("version", [](const server_survey& one) { return one.info("redis_version"); });
    for (const char* name : {"maxmemory-policy", "appendonly", "appendfsync", "timeout", "min-replicas-to-write",
                             "client-output-buffer-limit"}) {
        compare_setting(name);
    }
    std::ranges::for_each(more, compare_setting);
    if (different.empty()) return fine("settings", "the same on all");
    if_different.what = fmt::format("not the same: {}", fmt::join(different, ", "));
    return if_different;
}

finding check_majority(const std::vector<surveyed_node>& all) {
    const auto answering = static_cast<std::size_t>(std::ranges::count_if(all, &surveyed_node::answers));
    const std::size_t needed = all.size() / 2 + 1;
    const std::string what = fmt::format("{} of {} servers answer, {} are needed", answering, all.size(), needed);
    if (answering == all.size()) return fine("majority", what);
    if (answering < needed) {
        return {"majority", severity::danger, what, "No lock can be acquired or renewed.", "bring the others back"};
    }
    return {
        "majority", answering == needed ? severity::danger : severity::warning, what,
        answering == needed ? "If one more fails, every lock is lost." : "Fewer may fail than you have planned for.",
        "bring the others back"};
}

finding check_number(const std::vector<surveyed_node>& all) {
    const std::string what = counted(all.size(), "server");
    if (all.size() % 2 == 1) return fine("number", what);
    return {"number", severity::warning, what, "No more of them may fail than with one server less.",
            "use an odd number: three, or five"};
}

finding check_twins(const std::vector<patient>& all) {
    std::map<std::string, std::string> known;
    for (const patient& one : all) {
        const auto id = one.answers() ? one.survey->info("run_id") : std::nullopt;
        if (!id) continue;
        if (const auto [twin, is_new] = known.emplace(*id, one.server); !is_new) {
            return {"twins", severity::danger, fmt::format("{} and {} are one server", twin->second, one.server),
                    "It counts twice: when it fails or forgets, so does a majority.", "name each server once"};
        }
    }
    return fine("twins", "each is a server of its own");
}

finding check_clocks(const std::vector<patient>& all, milliseconds max_lease) {
    const auto [apart, error] = spread_of_clocks(all);
    if (apart < token_window) return fine("clocks", fmt::format("within {} of each other", about(apart + error)));
    const std::string what = fmt::format("{} apart from each other", about(apart));
    const std::string fix = "run chrony or another NTP client on all of them";
    if (apart < max_lease) {
        return {"clocks", severity::warning, what,
                "Locks are safe. But the servers do not agree on fencing tokens at once (that takes clocks within a "
                "second), so a grant takes one round trip more.",
                fix};
    }
    return {
        "clocks", severity::danger, what,
        "That is longer than the longest lease: when such a clock is set right in one step, all leases there end at "
        "once, or last too long.",
        fix};
}

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

// A hundredth of the lease is kept as a margin for clocks. At a failover the clocks of the replicas matter, which are
// not asked; whoever synchronises the primaries synchronises them, too.
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
            "run chrony or another NTP client on all members, or allow for it: holdfast run --clock-skew TIME (in "
            "programs client_options::clock_skew)"};
}

}  // namespace

bool surveyed_node::answers() const noexcept {
    return std::ranges::any_of(patients, &patient::answers);
}

std::vector<finding> examine_together(const std::vector<surveyed_node>& all, milliseconds max_lease) {
    std::vector<patient> servers;
    for (const surveyed_node& one : all) servers.insert(servers.end(), one.patients.begin(), one.patients.end());
    const finding different{"settings",
                            severity::warning,
                            {},
                            "Locks work. But servers that ought to be alike and are not have been set up by accident.",
                            "set them up alike"};
    return {check_majority(all), check_number(all), check_twins(servers), check_clocks(servers, max_lease),
            check_settings(servers, {}, different)};
}

std::vector<finding> examine_cluster(const std::vector<patient>& primaries) {
    const finding different{
        "settings",
        severity::warning,
        {},
        "Locks work. But which of these a lock gets depends on its name, and changes when its slot is moved.",
        "set all members up alike"};
    return {check_coverage(primaries),
            check_spares(primaries),
            check_full_coverage(primaries),
            check_node_timeout(primaries),
            check_clocks(primaries),
            check_settings(primaries, {"cluster-node-timeout", "cluster-require-full-coverage"}, different)};
}

}  // namespace holdfast::cli
