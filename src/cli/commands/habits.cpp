#include "cli/commands/habits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace holdfast::cli {
namespace {

using std::string_view;

constexpr std::array valued{string_view("--url"), string_view("--prefix"), string_view("--max-lease")};
constexpr string_view local = "--local";

// The names of the same thing elsewhere: flock, git, systemctl, etcdctl, consul.
constexpr std::array<std::pair<string_view, string_view>, 24> synonyms{{{"acquire", "run"},
                                                                        {"exec", "run"},
                                                                        {"flock", "run"},
                                                                        {"with", "run"},
                                                                        {"list", "ls"},
                                                                        {"locks", "ls"},
                                                                        {"ps", "ls"},
                                                                        {"status", "ls"},
                                                                        {"describe", "show"},
                                                                        {"get", "show"},
                                                                        {"info", "show"},
                                                                        {"inspect", "show"},
                                                                        {"monitor", "top"},
                                                                        {"events", "watch"},
                                                                        {"follow", "watch"},
                                                                        {"tail", "watch"},
                                                                        {"break", "release"},
                                                                        {"kill", "release"},
                                                                        {"prometheus", "metrics"},
                                                                        {"check", "doctor"},
                                                                        {"diagnose", "doctor"},
                                                                        {"benchmark", "bench"},
                                                                        {"start", "server start"},
                                                                        {"stop", "server stop"}}};

// How many letters must be added, removed, replaced or swapped with their neighbour.
std::size_t distance(string_view a, string_view b) {
    std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
            cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
            }
        }
    }
    return cost[a.size()][b.size()];
}

bool is_global(string_view word) {
    return word == local || takes_a_value(word) || std::ranges::any_of(valued, [word](string_view option) {
               return word.starts_with(option) && word.substr(option.size()).starts_with('=');
           });
}

}  // namespace

bool takes_a_value(string_view option) {
    return std::ranges::find(valued, option) != valued.end();
}

spoken_words split(std::vector<std::string> words) {
    spoken_words spoken;
    std::size_t at = 0;
    while (at < words.size() && is_global(words[at])) at += takes_a_value(words[at]) ? 2U : 1U;
    const auto subcommand = words.begin() + static_cast<std::ptrdiff_t>(std::min(at, words.size()));
    spoken.global.assign(words.begin(), subcommand);
    spoken.rest.assign(subcommand, words.end());
    if (!spoken.rest.empty() && spoken.rest.front() == "help") {
        spoken.rest.erase(spoken.rest.begin());
        spoken.rest.emplace_back("--help");
    }
    return spoken;
}

std::string instead_of(string_view unknown, const std::vector<std::string>& known) {
    for (const auto& [habit, meant] : synonyms) {
        if (habit == unknown) return "holdfast " + std::string(meant);
    }
    const auto apart = [unknown](const std::string& name) { return distance(unknown, name); };
    const auto closest = std::ranges::min_element(known, {}, apart);
    // A short word is near everything: "ab" is two letters from "ls".
    if (closest == known.end() || apart(*closest) > std::min<std::size_t>(2, unknown.size() / 2)) return {};
    return "holdfast " + *closest;
}

}  // namespace holdfast::cli
