// holdfast show: one lock, its holders and its queue.
#include "cli/commands/commands.hpp"
#include "cli/commands/exit_code.hpp"
#include "cli/commands/view_options.hpp"
#include "cli/inspect/json_form.hpp"
#include "cli/inspect/lock_merge.hpp"
#include "cli/inspect/lock_report.hpp"

#include <unistd.h>

#include <iostream>
#include <memory>

namespace holdfast::cli {
namespace {

int show(const view_options& options) {
    const lock_ref where = options.lock();  // before a server is started for a name that cannot be
    server_set servers = options.open();
    const lock_state lock = look_at(servers, where);
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
    CLI::App* const command = app.add_subcommand("show", "show a lock: who holds it, who waits");
    const auto options = std::make_shared<view_options>();
    declare_lock(*command, *options);
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer("Exit status: 0 held or waited for; 1 free; 125 holdfast itself failed.");
    command->callback([options, &status] { status = show(*options); });
}

}  // namespace holdfast::cli
