#include "cli/commands/commands.hpp"

#include "cli/server/local_server.hpp"
#include "cli/terminal/system.hpp"
#include "cli/terminal/text.hpp"
#include "redis/url/duration.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace holdfast::cli {
namespace {

int start() {
    const local_home home = local_home::open();
    const bool was_running = start_local_server(home) == found::running;
    std::cout << fmt::format("{}: {}\n", was_running ? "already running" : "started", home.url());
    return all_well;
}

int print_url() {
    const local_home home = local_home::open();
    start_local_server(home);
    std::cout << home.url() << "\n";
    return all_well;
}

nlohmann::json as_json(const local_home& home, const std::optional<local_status>& status) {
    nlohmann::json out{{"running", status.has_value()}, {"url", home.url()}, {"directory", home.directory()}};
    if (!status) {
        if (const auto living = home.find_living_server()) out["out_of_reach_pid"] = living->pid;
        return out;
    }
    out["pid"] = status->pid;
    out["version"] = status->version;
    out["uptime_s"] = status->uptime.count();
    out["held"] = status->held;
    return out;
}

void print(const local_home& home, const std::optional<local_status>& status) {
    if (!status) {
        if (const auto living = home.find_living_server()) {
            std::cout << fmt::format("runs (pid {}), but cannot be reached: {} {}\n", living->pid, home.socket(),
                                     living->sees_our_files() ? "was removed" : "is not seen from here");
            return;
        }
        std::cout << "not running; it starts when it is needed\n";
        return;
    }
    std::cout << fmt::format("running: {}\n  pid {}, redis {}, up {}, {} held\n", home.url(), status->pid,
                             status->version, redis::format_duration(status->uptime),
                             counted(status->held.size(), "lock"));
    for (const std::string& key : status->held) std::cout << "  " << key << "\n";
}

int show_status(const bool& json) {
    const local_home home = local_home::open();
    const auto status = ask_local_status(home);
    if (json) {
        std::cout << as_json(home, status).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
        print(home, status);
    }
    return status ? all_well : not_running;
}

std::string are_held(std::size_t count) {
    return fmt::format("{} {} held", counted(count, "lock"), count == 1 ? "is" : "are");
}

int stop_now(const local_home& home) {
    stop_local_server(home);
    std::cout << "stopped\n";
    return all_well;
}

// Its files were removed: nobody can ask it what is held.
int stop_out_of_reach(const local_home& home, const bool& force) {
    if (!force &&
        !user_agrees("Its socket was removed, so nobody knows which locks are held there. Stop the server?")) {
        tell("not stopped: its socket was removed, so nobody knows which locks are held there; use --force");
        return not_acquired;
    }
    return stop_now(home);
}

int stop(const bool& force) {
    const local_home home = local_home::open();
    const unique_fd turn = home.take_turn();
    const auto status = ask_local_status(home);
    if (!status && home.has_living_server()) return stop_out_of_reach(home, force);
    if (!status) {
        std::cout << "not running\n";
        return all_well;
    }
    const std::size_t held = status->held.size();
    if (held > 0 && !force && !user_agrees(are_held(held) + " here; their holders lose them. Stop the server?")) {
        tell(fmt::format("not stopped: {} ({}{}); wait for the holder, or use --force", are_held(held),
                         status->held.front(), held == 1 ? "" : ", ..."));
        return not_acquired;
    }
    return stop_now(home);
}

}  // namespace

void add_server(CLI::App& app, int& status) {
    CLI::App* const server = app.add_subcommand("server", "the local server: start, stop, status, url");
    server->require_subcommand(1);
    server->footer(
        "It runs in HOLDFAST_HOME, else /tmp/holdfast-<uid>, on a unix socket that only you can open.\n"
        "holdfast run starts it when it is needed and no server is named.");
    server->add_subcommand("start", "start it, if it does not run")->callback([&status] { status = start(); });

    server->add_subcommand("url", "start it, if it does not run, and print its URL for other programs")
        ->callback([&status] { status = print_url(); });

    CLI::App* const stopping = server->add_subcommand("stop", "stop it; asks first if locks are held");
    const auto force = std::make_shared<bool>(false);
    stopping->add_flag("--force", *force, "do not ask, even if locks are held");
    stopping->callback([force, &status] { status = stop(*force); });

    CLI::App* const showing = server->add_subcommand("status", "what runs and what is held; exit 1 if it does not run");
    const auto for_programs = std::make_shared<bool>(false);
    showing->add_flag("--json", *for_programs, "for programs");
    showing->callback([for_programs, &status] { status = show_status(*for_programs); });
}

}  // namespace holdfast::cli
