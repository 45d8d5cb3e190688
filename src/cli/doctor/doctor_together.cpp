// What endangers locks on several nodes though each of them is well.
#include "cli/doctor/doctor.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto token_window = 1s;  // a server accepts a proposed token that is no further from its clock

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

finding check_clocks(const std::vector<patient>& all, std::chrono::milliseconds max_lease) {
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

finding check_settings_agree(const std::vector<patient>& all) {
    const std::vector<std::string> different = different_settings(all, {});
    if (different.empty()) return fine("settings", "the same on all");
    return {"settings", severity::warning, fmt::format("not the same: {}", fmt::join(different, ", ")),
            "Locks work. But servers that ought to be alike and are not have been set up by accident.",
            "set them up alike"};
}

}  // namespace

bool surveyed_node::answers() const noexcept {
    return std::ranges::any_of(patients, &patient::answers);
}

std::vector<std::string> different_settings(const std::vector<patient>& all, const std::vector<const char*>& names) {
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
    std::ranges::for_each(names, compare_setting);
    return different;
}

clock_spread spread_of_clocks(const std::vector<patient>& all) {
    const auto skews = told_by(all, [](const server_survey& one) { return std::optional(one.skew); });
    const auto errors = told_by(all, [](const server_survey& one) { return std::optional(one.skew_error); });
    const auto [least, most] = std::ranges::minmax(skews);
    return {std::chrono::floor<std::chrono::milliseconds>(most - least),
            std::chrono::ceil<std::chrono::milliseconds>(2 * std::ranges::max(errors))};
}

std::vector<finding> examine_together(const std::vector<surveyed_node>& all, std::chrono::milliseconds max_lease) {
    std::vector<patient> servers;
    for (const surveyed_node& one : all) servers.insert(servers.end(), one.patients.begin(), one.patients.end());
    return {check_majority(all), check_number(all), check_twins(servers), check_clocks(servers, max_lease),
            check_settings_agree(servers)};
}

}  // namespace holdfast::cli
