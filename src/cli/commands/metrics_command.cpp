// holdfast metrics: what a server holds, in Prometheus' text form (version 0.0.4), by the prefix of the locks' names:
// the part before the first ':'. Names without one share the empty prefix; a series for every name would be too many.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/terminal/system.hpp"
#include "cli/terminal/text.hpp"
#include "cli/web/http_server.hpp"

#include <fmt/format.h>
#include <boost/asio/signal_set.hpp>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <map>
#include <string_view>

namespace holdfast::cli {
namespace {

struct metrics_options : view_options {
    std::string listen;
};

struct scrape {
    std::vector<lock_state> locks;
    microseconds took{0};
    std::size_t servers_up = 1;
    std::size_t members_silent = 0;  // of Clusters that are up
};

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

template <typename Number>
std::string gauge(const char* name, const char* help, Number value) {
    return head(name, help) + fmt::format("{} {}\n", name, value);
}

std::string up(int value) {
    return gauge("holdfast_up", "Whether the server, or a majority of several, could be asked.", value);
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
    add_family("holdfast_oldest_wait_seconds", "The longest wait.",
               [](const totals& sum) { return in_seconds(sum.oldest_wait); });
    add_family("holdfast_longest_hold_seconds", "The longest hold.",
               [](const totals& sum) { return in_seconds(sum.longest_hold); });
    return text +
           gauge("holdfast_scrape_duration_seconds", "How long it took to look at all locks.", in_seconds(seen.took));
}

// What fewer than a majority say is no hold, and what others hold is not known then.
scrape look_at_all(server_set& servers, const metrics_options& options) {
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    scrape seen{find_locks(servers, options.prefix)};
    seen.servers_up = servers.size() - servers.silent().size();
    seen.members_silent = servers.silent_members().size();
    servers.tell_silent();
    if (seen.servers_up < servers.majority()) throw error(errc::no_quorum, servers.text());
    keep_majorities(seen.locks);
    seen.took = std::chrono::duration_cast<microseconds>(clock::now() - begin);
    return seen;
}

http_answer answer_scraper(server_set& servers, const metrics_options& options) {
    constexpr const char* type = "text/plain; version=0.0.4; charset=utf-8";
    try {
        return {200, type, prometheus_text(look_at_all(servers, options))};
    } catch (const error& why) {
        tell(why.what());
        return {200, type, up(0)};  // that the server is away is news, too
    }
}

int serve(server_set& servers, const metrics_options& options) {
    boost::asio::io_context context;
    boost::asio::signal_set ending(context, SIGINT, SIGTERM, SIGHUP);
    http_server http(context, options.listen, [&](const std::string& path) -> http_answer {
        if (path == "/metrics") return answer_scraper(servers, options);
        if (path == "/") return {.body = "holdfast: see /metrics\n"};
        return {.status = 404, .body = "not here; see /metrics\n"};
    });
    ending.async_wait([&http, &context](boost::system::error_code, int) {
        http.stop();
        context.stop();
    });
    tell("listening on " + http.url() + "/metrics");
    context.run();
    return all_well;
}

int write_metrics(const metrics_options& options) {
    server_set servers = options.open();
    if (!options.listen.empty()) return serve(servers, options);
    std::cout << prometheus_text(look_at_all(servers, options));
    return all_well;
}

}  // namespace

void add_metrics(CLI::App& app, int& status) {
    const auto [command, options] = add_command<metrics_options>(
        app, "metrics", "write what the server holds, for Prometheus", status, write_metrics);
    command->add_option("--listen", options->listen, "serve it over HTTP there, as in 127.0.0.1:9421")
        ->type_name("ADDR");
    declare_server(*command, *options);
    command->footer(
        "Locks, holders, waiters, the oldest wait and the longest hold, by the part of the name before the first ':'.\n"
        "With --listen: at /metrics, until a signal. Whoever can connect can read it: listen on 127.0.0.1.");
}

}  // namespace holdfast::cli
