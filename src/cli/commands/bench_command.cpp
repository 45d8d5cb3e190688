// holdfast bench: how fast locks are on this server.
#include "cli/bench/bench.hpp"
#include "cli/commands/view_options.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

namespace holdfast::cli {
namespace {

struct bench_options : view_options {
    double seconds = 1;
    unsigned threads = 16;
    std::vector<std::string> workloads;
    std::string max_lease;

    // Throws trouble if they make no sense.
    bench_terms terms() const {
        if (!(seconds > 0) || seconds > 86'400) throw trouble("--seconds: more than 0, at most a day");
        if (threads < 1 || threads > 1000) throw trouble("--threads: from 1 to 1000");
        return {.time = milliseconds(std::max(1LL, std::llround(seconds * 1000))),
                .threads = threads,
                .prefix = prefix,
                .lease = std::min(mutex_options{}.lease, options_with(max_lease).max_lease)};
    }
    std::vector<workload> chosen() const {
        std::vector<workload> result;
        for (const std::string& word : workloads) {
            const auto known = std::ranges::find(workload_texts, word, &workload_text::name);
            if (known == workload_texts.end()) {
                std::vector<std::string_view> names;
                for (const workload_text& one : workload_texts) names.push_back(one.name);
                throw trouble(fmt::format("--workload {}: it is one of {}", word, fmt::join(names, ", ")));
            }
            result.push_back(known->which);
        }
        return result;
    }
    client_options link_options() const {
        client_options brief = options_with(max_lease);
        brief.fence_retention = brief.max_lease;  // what a killed benchmark leaves behind is gone in a minute
        return brief;
    }
};

// A status line at the terminal, removed at the end.
class progress {
public:
    ~progress() { write("\r\x1b[K"); }
    void show(workload which, double part, std::uint64_t cycles) {
        write("\r\x1b[K" + clip(progress_line(which, part, cycles), 79));
    }

private:
    void write(const std::string& text) noexcept {
        if (seen_ && ::write(STDERR_FILENO, text.data(), text.size()) < 0) seen_ = false;
    }
    bool seen_ = ::isatty(STDERR_FILENO) == 1;
};

// Of what was asked for, or of all, what these servers are enough for.
std::vector<workload> possible(std::vector<workload> chosen, const server_set& servers) {
    const bool is_quorum_chosen = std::ranges::find(chosen, workload::quorum) != chosen.end();
    if (servers.size() == 1 && is_quorum_chosen) {
        throw trouble("--workload quorum: it takes several servers; repeat --url");
    }
    if (!chosen.empty()) return chosen;
    for (const workload_text& one : workload_texts) {
        if (servers.size() > 1 || one.which != workload::quorum) chosen.push_back(one.which);
    }
    return chosen;
}

int bench(const bench_options& options) {
    const bench_terms terms = options.terms();
    std::vector<workload> chosen = options.chosen();
    const server_choice choice = choose_servers(options.servers, notices::shown);
    signal_inbox signals;  // before the clients, whose threads must not get them
    // The first server alone, or a majority of all: the subject of a workload.
    const client_options link_options = options.link_options();
    server_set all(choice.urls);
    client first_link(choice.urls.front(), link_options);
    server_set first(first_link);
    std::optional<client> all_link;
    if (all.size() > 1) all_link.emplace(choice.urls, link_options);
    (all_link ? *all_link : first_link).ping();  // a server that is away is reported at once
    chosen = possible(std::move(chosen), all);
    std::vector<measurement> results;
    {
        progress line;
        for (const workload which : chosen) {
            const bool on_all = which == workload::quorum;
            auto result = measure(on_all ? *all_link : first_link, on_all ? all : first, which, terms, signals,
                                  [&line](auto... news) { line.show(news...); });
            if (!result) return killed_by_signal + SIGINT;
            results.push_back(std::move(*result));
        }
    }
    if (options.json) {
        json list = json::array();
        for (const measurement& one : results) list.push_back(to_json(one));
        json told = document(all, "workloads", std::move(list));
        told["seconds"] = options.seconds;
        told["threads"] = options.threads;
        std::cout << indented(told);
    } else {
        std::cout << fmt::format("{}, {} s each, {}\n\n", all.text(), options.seconds,
                                 counted(options.threads, "thread"))
                  << report(results, palette::of(STDOUT_FILENO));
    }
    return all_well;
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<bench_options>(app, "bench", "measure locks on the server", status, bench);
    command->add_option("--seconds", options->seconds, "for each workload (1)")->type_name("N");
    command->add_option("--threads", options->threads, "that compete (16)")->type_name("N");
    command->add_option("--workload", options->workloads, "only this one; may be repeated")->type_name("NAME");
    declare_max_lease(*command, options->max_lease);
    declare_json(*command, *options);
    declare_server(*command, *options);
    std::string footer = "A cycle is acquire and release. Workloads:\n";
    for (const workload_text& one : workload_texts) footer += fmt::format("  {:12} {}\n", one.name, one.meaning);
    command->footer(footer +
                    "Of several servers the first is used, and all of them by quorum.\nIt removes the keys it has "
                    "used. Do not run it beside work that matters: it is load.");
}

}  // namespace holdfast::cli
