// One run: choose a server; borrow the hold if a process above this one has it; else wait in the queue, run the command
// while guard and supervisor watch it, and release the lock.
#include "cli/commands/lock_attempt.hpp"
#include "cli/run/child.hpp"
#include "cli/run/shell_hold.hpp"
#include "cli/terminal/system.hpp"

#include <holdfast/client.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

extern char** environ;

namespace holdfast::cli {
namespace {

constexpr const char* footer =
    "Exit status: that of COMMAND, 128+n if signal n ended it; 1 lock not acquired (-E); 75 lock lost;\n"
    "125 holdfast itself failed; 126 COMMAND cannot be run; 127 COMMAND not found.\n"
    "COMMAND gets HOLDFAST_NAME, HOLDFAST_TOKEN (the fencing token) and HOLDFAST_HELD.\n\n"
    "  holdfast run backup -- rsync -a /srv host:/srv       wait in the queue, then run\n"
    "  holdfast run --no-wait nightly -- ./job || echo busy\n"
    "  holdfast run -s catalog -- ./report      many of these at once, but never beside\n"
    "  holdfast run -x catalog -- ./rebuild     one of these\n"
    "  holdfast run --slots 4 gpu -- ./train    four of these at a time\n"
    "  holdfast run --shell 'zcat in.gz | load' import";

// CLI11 knows nothing of what is behind the dashes.
class run_help final : public CLI::Formatter {
public:
    // An option and its text in one line each: completion reads them, too.
    explicit run_help(std::string command) : command_(std::move(command)) { column_width(36); }

    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: holdfast " + command_ + " [OPTIONS] NAME [--] COMMAND...\n";
    }

private:
    std::string command_;
};

// Our own environment, with what the command is told about its lock.
std::vector<std::string> environment_with(const held_lock& held, const held_list& list, const run_options& options) {
    std::vector<std::pair<std::string, std::string>> added{{"HOLDFAST_NAME", options.name},
                                                           {"HOLDFAST_TOKEN", std::to_string(held.token)},
                                                           {"HOLDFAST_HELD", list.text()}};
    // A nested run without --url of its own is to find the same servers.
    if (std::string same = url_variable(options.servers); !same.empty()) added.emplace_back("HOLDFAST_URL", same);
    if (!options.max_lease.empty()) added.emplace_back("HOLDFAST_MAX_LEASE", options.max_lease);
    if (!options.fence_retention.empty()) added.emplace_back("HOLDFAST_FENCE_RETENTION", options.fence_retention);
    std::vector<std::string> result;
    for (const auto& [name, value] : added) result.push_back(name + "=" + value);
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        if (std::ranges::none_of(added, [name](const auto& one) { return one.first == name; }))
            result.emplace_back(text);
    }
    return result;
}

class run {
public:
    explicit run(run_options options)
        : options_(std::move(options)), command_(options_.command()), attempt_(options_), terms_(options_.terms()) {}

    int go() {
        attempt_.choose_servers();
        // From here on signals are read, not suffered; before the client is made, whose threads must not get them.
        signals_.emplace();
        const lock_location where = attempt_.where();
        held_list above = held_list::parse(environment("HOLDFAST_HELD"));
        if (!above.find(where)) {
            if (auto held = hold_of_shell_above(where)) above.add(std::move(*held));
        }
        if (const auto held = above.find(where); held && attempt_.may_borrow(*held)) {
            become({command_, environment_with(*held, above, options_)}, *signals_);
        }
        show_program(command_.front());
        client link = attempt_.connect();
        waited result = attempt_.wait(link, *signals_);
        if (result.signal) return killed_by_signal + *result.signal;
        if (!result.hold) return attempt_.refused(link);
        const held_lock mine{where, result.hold.token(), result.hold.id()};
        above.add(mine);
        return run_under(result.hold, {command_, environment_with(mine, above, options_)});
    }

    bool interrupted_at_terminal() const noexcept { return interrupted_at_terminal_; }

private:
    int run_under(lease& hold, const command_line& command) {
        int status = own_failure;
        {
            terminal tty;
            guard watcher;
            supervisor eyes(terms_, hold, *signals_, tty, watcher);
            status = eyes.watch(start_child(command, {*signals_, watcher, tty}));
            interrupted_at_terminal_ = eyes.interrupted_at_terminal();
        }
        if (const auto why = hold.release(); why && status != lock_lost) {
            tell(fmt::format("lock '{}' was not released: {}", options_.name, why.message()));
        }
        return status;
    }

    run_options options_;
    std::vector<std::string> command_;
    lock_attempt attempt_;
    supervision terms_;
    std::optional<signal_inbox> signals_;
    bool interrupted_at_terminal_ = false;
};

int run_and_report(const run_options& options) {
    int status = own_failure;
    bool interrupted = false;
    try {
        run job(options);
        status = job.go();
        interrupted = job.interrupted_at_terminal();
    } catch (const exec_failed& why) {
        tell(why.what());
        return why.status();
    }
    // The terminal sent Ctrl-C to the command alone. The script around this run has to end by it, too.
    if (interrupted) ::kill(0, SIGINT);
    return status;
}

}  // namespace

void add_elect(CLI::App& app, const std::optional<std::vector<std::string>>& words, int& status) {
    CLI::App* const command = app.add_subcommand("elect", "run a command while this is the leader");
    const auto options = std::make_shared<run_options>();
    const auto value = std::make_shared<std::string>();
    command->prefix_command();
    command->callback([command, options, value, words, &status] {
        options->complete(*command);
        options->words = command_words(words, command->remaining(), "elect");
        options->note = *value;
        status = run_and_report(*options);
    });
    declare_election(*command, *options, *value);
    command->formatter(std::make_shared<run_help>("elect"));
    command->footer(
        "Exit status: as that of holdfast run. The value is the note of the lock NAME: holdfast show NAME and\n"
        "holdfast::election tell it. When COMMAND ends, or the leader crashes, the next candidate leads.\n\n"
        "  holdfast elect scheduler --value \"$(hostname):8080\" -- ./scheduler");
}

void add_run(CLI::App& app, const std::optional<std::vector<std::string>>& words, int& status) {
    CLI::App* const command = app.add_subcommand("run", "run a command under a lock");
    const auto options = std::make_shared<run_options>();
    command->prefix_command();  // the first word behind NAME begins the command
    command->callback([command, options, words, &status] {
        options->complete(*command);
        options->words = command_words(words, command->remaining());
        status = run_and_report(*options);
    });
    declare(*command, *options);
    command->formatter(std::make_shared<run_help>("run"));
    command->footer(footer);
}

}  // namespace holdfast::cli
