#include "cli/web/prometheus.hpp"

#include "cli/terminal/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

namespace holdfast::cli {
namespace {

struct totals {
    std::map<std::string_view, std::size_t> held;  // by mode
    std::size_t holders = 0;
    std::size_t waiters = 0;
    microseconds oldest_wait{0};
    microseconds longest_hold{0};
};
using by_prefix = std::map<std::string, totals, std::less<>>;

std::string label_value(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        if (c == '\\' || c == '"') result += '\\';
        result += c;
    }
    return result;
}

std::string prefix_of(const std::string& name) {
    const std::size_t colon = name.find(':');
    return colon == std::string::npos ? std::string() : label_value(std::string_view(name).substr(0, colon));
}

by_prefix add_up(const std::vector<lock_state>& locks) {
    by_prefix result;
    for (const lock_state& lock : locks) {
        if (lock.is_idle()) continue;
        totals& sum = result[prefix_of(lock.where.name.text())];
        if (!lock.is_free()) ++sum.held[mode_of(lock)];
        sum.holders += lock.holders.size();
        sum.waiters += lock.waiters.size();
        sum.oldest_wait = std::max(sum.oldest_wait, lock.oldest_wait());
        for (const lock_holder& holder : lock.holders) {
            sum.longest_hold = std::max(sum.longest_hold, holder.held.value_or(microseconds(0)));
        }
    }
    return result;
}

double in_seconds(microseconds span) {
    return std::chrono::duration<double>(span).count();
}

std::string head(const char* name, const char* help) {
    return fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, help, name);
}

std::string up(int value) {
    return head("holdfast_up", "Whether the server, or a majority of several, could be asked.") +
           fmt::format("holdfast_up {}\n", value);
}

// One series for every prefix.
struct family {
    const char* name;
    const char* help;
    std::function<double(const totals&)> value;
};

std::string lines_of(const family& one, const by_prefix& sums) {
    std::string text = head(one.name, one.help);
    for (const auto& [prefix, sum] : sums) {
        text += fmt::format("{}{{prefix=\"{}\"}} {}\n", one.name, prefix, one.value(sum));
    }
    return text;
}

}  // namespace

std::string prometheus_text(const scrape& seen) {
    const by_prefix sums = add_up(seen.locks);
    std::string text = up(1) + head("holdfast_servers_up", "How many servers could be asked.") +
                       fmt::format("holdfast_servers_up {}\n", seen.servers_up);
    text += head("holdfast_members_silent",
                 "How many primaries of a Cluster could not be asked; their locks are missing here.") +
            fmt::format("holdfast_members_silent {}\n", seen.members_silent);
    text += head("holdfast_locks", "Locks that are held, by mode.");
    for (const auto& [prefix, sum] : sums) {
        for (const auto& [mode, count] : sum.held) {
            text += fmt::format("holdfast_locks{{prefix=\"{}\",mode=\"{}\"}} {}\n", prefix, mode, count);
        }
    }
    const auto number = [](std::size_t count) { return static_cast<double>(count); };
    const std::vector<family> families{
        {"holdfast_holders", "Who holds a lock; a lock held for reading may have many.",
         [&](const totals& sum) { return number(sum.holders); }},
        {"holdfast_waiters", "Who waits for a lock.", [&](const totals& sum) { return number(sum.waiters); }},
        {"holdfast_oldest_wait_seconds", "How long the one who has waited longest has waited.",
         [](const totals& sum) { return in_seconds(sum.oldest_wait); }},
        {"holdfast_longest_hold_seconds", "How long the one who has held longest has held.",
         [](const totals& sum) { return in_seconds(sum.longest_hold); }}};
    for (const family& one : families) text += lines_of(one, sums);
    text += head("holdfast_scrape_duration_seconds", "How long it took to look at all locks.");
    return text + fmt::format("holdfast_scrape_duration_seconds {}\n", in_seconds(seen.took));
}

std::string prometheus_down() {
    return up(0);
}

}  // namespace holdfast::cli
