// holdfast show: one lock, its holders and its queue.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/output/lock_text.hpp"

#include <unistd.h>

#include <iostream>

namespace holdfast::cli {
namespace {

int show(const view_options& options) {
    const lock_ref where = options.lock();  // before a server is started for a name that cannot be
    auto [servers, run] = options.look();
    const lock_state lock = run ? look_at(servers, where) : lock_state(where);
    if (options.json) {
        std::cout << indented(document(servers, "lock", to_json(lock)));
    } else {
        std::cout << report(lock, palette::of(STDOUT_FILENO));
    }
    servers.tell_silent();
    return lock.is_idle() ? not_acquired : all_well;
}

}  // namespace

void add_show(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<view_options>(app, "show", "show a lock: who holds it, who waits", status, show);
    declare_lock(*command, *options);
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer("Exit status: 0 held or waited for; 1 free; 125 holdfast itself failed.");
}

}  // namespace holdfast::cli
