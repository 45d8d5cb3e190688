// holdfast release: takes a lock from whoever holds it.
#include "cli/commands.hpp"
#include "cli/confirm.hpp"
#include "cli/exit_code.hpp"
#include "cli/json_form.hpp"
#include "cli/lock_look.hpp"
#include "cli/lock_report.hpp"
#include "cli/person.hpp"
#include "cli/revoke.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"
#include "cli/view_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace holdfast::cli {
namespace {

struct release_options : view_options {
    std::string holder;
    bool force = false;
    bool yes = false;
};

const char* word_for(revocation outcome) {
    switch (outcome) {
        case revocation::done:
            return "released";
        case revocation::too_late:
            return "had ended already";
        case revocation::impossible:
            return "cannot be ended: another program's part in a read-write lock ends by itself";
    }
    return "";
}

// What was seen, asked about, and is ended: the same list all the way.
lock_state seen_lock(const client& server, const release_options& options) {
    lock_state lock = look_at(server, options.lock());
    if (!options.holder.empty()) {
        std::erase_if(lock.holders, [&options](const lock_holder& h) { return h.id != options.holder; });
    }
    return lock;
}

bool is_agreed(const lock_state& lock, const release_options& options) {
    if (options.yes) return true;
    if (::isatty(STDERR_FILENO) == 1) std::cerr << report(lock, palette::of(STDERR_FILENO));
    return user_agrees(
        fmt::format("Whoever works under this lock may do so still, beside the next holder. Take it from {}?",
                    lock.holders.size() == 1 ? "this holder" : "all these holders"));
}

void print(const client& server, const lock_state& lock, const std::vector<revocation>& outcomes,
           const release_options& options) {
    json rows = json::array();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const lock_holder& holder = lock.holders[i];
        json row = to_json(holder, lock.server_time);
        row["released"] = outcomes[i] == revocation::done;
        rows.push_back(std::move(row));
        if (!options.json) std::cout << fmt::format("{}: {}\n", person(holder), word_for(outcomes[i]));
    }
    if (!options.json) return;
    json out = document(server, "name", lock.where.name.text());
    out["holders"] = std::move(rows);
    std::cout << indented(out);
}

int release(const release_options& options) {
    if (!options.force) {
        throw trouble("release takes a lock from whoever holds it; if that is what you want, say --force");
    }
    const client server = options.open();
    const lock_state lock = seen_lock(server, options);
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
    std::vector<revocation> outcomes;
    for (const lock_holder& holder : lock.holders) outcomes.push_back(revoke(server, lock, holder));
    print(server, lock, outcomes, options);
    const bool all = std::ranges::all_of(outcomes, [](revocation o) { return o == revocation::done; });
    return all ? all_well : not_acquired;
}

}  // namespace

void add_release(CLI::App& app, int& status) {
    CLI::App* const command = app.add_subcommand("release", "take a lock from whoever holds it");
    const auto options = std::make_shared<release_options>();
    declare_lock(*command, *options);
    command->add_flag("--force", options->force, "yes, take it away; without this nothing is done");
    command->add_flag("--yes", options->yes, "do not ask");
    command->add_option("--holder", options->holder, "only this one of several readers")->type_name("ID");
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Ends exactly the grants it shows, serves the next in line, and tells the holder, whose lost() fires.\n"
        "Exit status: 0 released; 1 not: nobody holds it, it ended meanwhile, or the answer was no; 125 failed.");
    command->callback([options, &status] { status = release(*options); });
}

}  // namespace holdfast::cli
