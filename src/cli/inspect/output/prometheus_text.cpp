#include "cli/inspect/output/prometheus_text.hpp"

#include "cli/inspect/locks/lock_look.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace holdfast::cli {
namespace {

struct totals {
    std::map<std::string_view, std::size_t> held;  // by mode
    std::size_t holders = 0;
    std::size_t waiters = 0;
    std::uint64_t permits_out = 0;
    std::uint64_t permits = 0;
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
        if (lock.limit) {
            sum.permits_out += lock.permits_out();
            sum.permits += lock.limit->present;
        }
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

template <typename Number>
std::string gauge(const char* name, const char* help, Number value) {
    return head(name, help) + fmt::format("{} {}\n", name, value);
}

std::string up(int value) {
    return gauge("holdfast_up", "Whether the server, or a majority of several, could be asked.", value);
}

}  // namespace

std::string prometheus_of_silence() {
    return up(0);
}

std::string prometheus_text(const scrape& seen) {
    const by_prefix sums = add_up(seen.locks);
    std::string text = up(1) + gauge("holdfast_servers_up", "How many servers could be asked.", seen.servers_up) +
                       gauge("holdfast_members_silent",
                             "How many primaries of a Cluster could not be asked; their locks are missing here.",
                             seen.members_silent) +
                       head("holdfast_locks", "Locks that are held, by mode.");
    for (const auto& [prefix, sum] : sums) {
        for (const auto& [mode, count] : sum.held) {
            text += fmt::format("holdfast_locks{{prefix=\"{}\",mode=\"{}\"}} {}\n", prefix, mode, count);
        }
    }
    const auto add_family = [&](const char* name, const char* help, const auto& value_of) {
        text += head(name, help);
        for (const auto& [prefix, sum] : sums) {
            text += fmt::format("{}{{prefix=\"{}\"}} {}\n", name, prefix, value_of(sum));
        }
    };
    add_family("holdfast_holders", "Number of holders; a lock held for reading may have many.",
               [](const totals& sum) { return sum.holders; });
    add_family("holdfast_waiters", "Number of waiters.", [](const totals& sum) { return sum.waiters; });
    add_family("holdfast_permits_out", "Permits of semaphores that are held.",
               [](const totals& sum) { return sum.permits_out; });
    add_family("holdfast_permits_limit", "The limits of semaphores that are held or waited for.",
               [](const totals& sum) { return sum.permits; });
    add_family("holdfast_oldest_wait_seconds", "The longest wait.",
               [](const totals& sum) { return in_seconds(sum.oldest_wait); });
    add_family("holdfast_longest_hold_seconds", "The longest hold.",
               [](const totals& sum) { return in_seconds(sum.longest_hold); });
    return text +
           gauge("holdfast_scrape_duration_seconds", "How long it took to look at all locks.", in_seconds(seen.took));
}

scrape scrape_locks(server_set& servers, std::string_view prefix) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    scrape seen{find_locks(servers, prefix)};
    seen.servers_up = servers.size() - servers.silent().size();
    seen.members_silent = servers.silent_members().size();
    servers.tell_silent();
    if (seen.servers_up < servers.majority()) throw error(errc::no_quorum, servers.text());
    keep_majorities(seen.locks);
    seen.took = std::chrono::duration_cast<microseconds>(clock::now() - begin);
    return seen;
}

}  // namespace holdfast::cli
