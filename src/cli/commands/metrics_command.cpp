// holdfast metrics: what a server holds, for Prometheus.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/output/prometheus_text.hpp"
#include "cli/terminal/system.hpp"
#include "cli/web/http_server.hpp"

#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>

namespace holdfast::cli {
namespace {

struct metrics_options : view_options {
    std::string listen;
};

http_answer answer_scraper(server_set& servers, const metrics_options& options) {
    try {
        return {200, prometheus_type, prometheus_text(scrape_locks(servers, options.prefix))};
    } catch (const error& why) {
        tell(why.what());
        return {200, prometheus_type, prometheus_of_silence()};
    }
}

int serve(server_set& servers, const metrics_options& options) {
    boost::asio::io_context context;
    boost::asio::signal_set ending(context, SIGINT, SIGTERM, SIGHUP);
    http_server http(context, options.listen, [&](const http_request& asked) -> http_answer {
        if (asked.path == "/metrics") return answer_scraper(servers, options);
        if (asked.path == "/") return {.body = "holdfast: see /metrics\n"};
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
    std::cout << prometheus_text(scrape_locks(servers, options.prefix));
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
        "With --listen: at /metrics, until a signal. Anybody who can connect can read it: listen on 127.0.0.1.");
}

}  // namespace holdfast::cli
