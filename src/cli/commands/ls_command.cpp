// holdfast ls: all locks of a server.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/server/local_home.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace holdfast::cli {
namespace {

struct ls_options : view_options {
    std::string pattern;
    bool all = false;
    bool names = false;
};

bool is_wanted(const lock_state& lock, const ls_options& options) {
    if (!options.all && lock.is_idle()) return false;
    return options.pattern.empty() || ::fnmatch(options.pattern.c_str(), lock.where.name.text().c_str(), 0) == 0;
}

void print_names(const std::vector<lock_state>& locks) {
    for (const lock_state& lock : locks) {
        const std::string& name = lock.where.name.text();
        if (name == printable(name)) std::cout << name << "\n";  // others would break the reader's lines
    }
}

void print_table(const std::vector<lock_state>& locks, const server_set& servers) {
    if (locks.empty()) {
        const bool all_answered = servers.all_silent().empty();
        tell(fmt::format("{}: nothing is locked{}", servers.text(), all_answered ? "" : " where somebody answers"));
        return;
    }
    std::cout << tabulate(locks).text(palette::of(STDOUT_FILENO));
}

// Somebody's Tab key is to start no server.
bool would_start_a_server(const ls_options& options) {
    return is_local(options.servers) && !local_home::open().is_answered();
}

int list(const ls_options& options) {
    if (options.names && would_start_a_server(options)) return all_well;
    auto [servers, run] = options.look();
    std::vector<lock_state> locks = run ? find_locks(servers, options.prefix) : std::vector<lock_state>();
    std::erase_if(locks, [&options](const lock_state& lock) { return !is_wanted(lock, options); });
    if (options.names) {
        print_names(locks);
    } else if (options.json) {
        std::cout << indented(document(servers, "locks", to_json(locks)));
    } else if (run) {
        print_table(locks, servers);
    }
    if (!options.names) servers.tell_silent();
    return all_well;
}

}  // namespace

void add_ls(CLI::App& app, int& status) {
    const auto [ls, options] =
        add_command<ls_options>(app, "ls", "list the locks that are held or waited for", status, list);
    ls->add_option("PATTERN", options->pattern, "only names that match, as in 'stock:*'")->type_name("");
    ls->add_flag("-a,--all", options->all, "also free ones that were held within the last hour");
    ls->add_flag("--names", options->names, "only the names, one on each line");
    declare_json(*ls, *options);
    declare_server(*ls, *options);
    ls->footer(
        "FOR, LEFT (of the lease) and TOKEN are those of the first holder; LONGEST is the longest wait.\n"
        "Of several servers: SERVERS is how many of them say that this holder has it; a majority makes it a hold.");
}

}  // namespace holdfast::cli
