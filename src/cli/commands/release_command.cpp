// holdfast release: releases a lock that somebody else holds.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_end.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <vector>

namespace holdfast::cli {
namespace {

struct release_options : view_options {
    std::string holder;
    std::string grace = "10s";
    bool force = false;
    bool yes = false;
};

bool is_agreed(const lock_state& lock, const release_options& options) {
    if (options.yes) return true;
    if (::isatty(STDERR_FILENO) == 1) std::cerr << report(lock, palette::of(STDERR_FILENO));
    return user_agrees(
        fmt::format("A holder that does not stop when it is asked to goes on beside the next one. End the hold of {}?",
                    lock.holders.size() == 1 ? "this holder" : "all these holders"));
}

void print(const server_set& servers, const lock_state& lock, const std::vector<outcome>& outcomes,
           const release_options& options) {
    json rows = json::array();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const lock_holder& holder = lock.holders[i];
        json row = to_json(holder, lock);
        row["released"] = outcomes[i].is_over(servers);
        rows.push_back(std::move(row));
        if (!options.json) std::cout << fmt::format("{}: {}\n", person(holder), describe(outcomes[i], servers));
    }
    if (!options.json) return;
    json out = document(servers, "name", lock.where.name.text());
    out["holders"] = std::move(rows);
    std::cout << indented(out);
}

int release(const release_options& options) {
    if (!options.force) {
        throw trouble("release ends the hold of somebody else; if that is what you want, say --force");
    }
    const milliseconds grace = duration_of(options.grace, "--grace");
    server_set servers = options.open();
    const sightings seen = look_at_each(servers, options.lock(), options.holder);
    const lock_state lock = merge(seen);
    servers.tell_silent();
    if (lock.is_free()) {
        tell(options.holder.empty()
                 ? fmt::format("nobody holds '{}'", excerpt(options.name))
                 : fmt::format("'{}' does not hold '{}'", excerpt(options.holder), excerpt(options.name)));
        return not_acquired;
    }
    if (!is_agreed(lock, options)) {
        tell(fmt::format("not released: '{}' stays with {}; --yes skips the question", excerpt(options.name),
                         person(lock.holders.front())));
        return not_acquired;
    }
    const std::vector<outcome> outcomes = end_holds(servers, seen, lock, grace);
    print(servers, lock, outcomes, options);
    const bool all = std::ranges::all_of(outcomes, [&](const outcome& one) { return one.is_over(servers); });
    return all ? all_well : not_acquired;
}

}  // namespace

void add_release(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<release_options>(app, "release", "release a lock that somebody else holds", status, release);
    declare_lock(*command, *options);
    command->add_flag("--force", options->force, "needed: without it nothing is done");
    command->add_flag("--yes", options->yes, "do not ask");
    command->add_option("--grace", options->grace, "time for the holder to stop; then it is forced (10s)")
        ->type_name("TIME");
    command->add_option("--holder", options->holder, "only this one of several readers")->type_name("ID");
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Asks the holder to stop and to release the lock: its lost() fires, and `holdfast run` ends its command "
        "first.\n"
        "A grant that is not released within --grace, or whose holder does not listen, is ended at once; the holder "
        "is\n"
        "told, but may go on for a while beside the next one. Only the grants that are shown are ended.\n"
        "Exit status: 0 released; 1 not: nobody holds it, it ended meanwhile, or the answer was no; 125 failed.");
}

}  // namespace holdfast::cli
