// holdfast metrics: what a server holds, for Prometheus.
#include "cli/commands/commands.hpp"
#include "cli/commands/exit_code.hpp"
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_search.hpp"
#include "cli/terminal/system.hpp"
#include "cli/web/http_server.hpp"
#include "cli/web/prometheus.hpp"

#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>

namespace holdfast::cli {
namespace {

struct metrics_options : view_options {
    std::string listen;
};

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
        return {200, type, prometheus_down()};  // that the server is away is news, too
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
