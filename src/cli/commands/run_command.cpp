// One run: choose a server; borrow the hold if a process above this one has it; else wait in the queue, run the command
// while guard and supervisor watch it, and release the lock.
#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "cli/commands/run_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/run/child.hpp"
#include "cli/run/held_list.hpp"
#include "cli/terminal/system.hpp"
#include "redis/url/duration.hpp"

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
    "  holdfast run --shell 'zcat in.gz | load' import";

// CLI11 knows nothing of what is behind the dashes.
class run_help final : public CLI::Formatter {
public:
    run_help() { column_width(36); }  // an option and its text in one line each: completion reads them, too

    std::string make_usage(const CLI::App*, std::string) const override {
        return "Usage: holdfast run [OPTIONS] NAME -- COMMAND...\n";
    }
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

// The client leaves the queue in the background, on this link. The answer to a ping comes after that.
void wait_until_undone(client& link) {
    try {
        link.ping();
    } catch (const error&) {
        return;  // the position in the queue then expires
    }
}

class run {
public:
    explicit run(run_options options)
        : options_(std::move(options)),
          command_(options_.command()),
          lock_(options_.lock()),
          side_(options_.lock_side()),
          link_options_(options_.link_options()),
          lock_options_(options_.lock_options()),
          limit_(options_.wait_limit()),
          terms_(options_.terms()) {}

    int go() {
        servers_ = choose_servers(options_.servers, options_.wanted_notices());
        // From here on signals are read, not suffered; before the client is made, whose threads must not get them.
        signals_.emplace();
        const lock_location where{servers_.identity, lock_.keys.lock()};
        held_list above = held_list::parse(environment("HOLDFAST_HELD"));
        if (const auto held = above.find(where); held && may_borrow(*held)) {
            become({command_, environment_with(*held, above, options_)}, *signals_);
        }
        client link(servers_.urls, link_options_);
        hear_recalls(link);
        waited result = wait_in_queue(link);
        if (result.signal) {
            wait_until_undone(link);
            return killed_by_signal + *result.signal;
        }
        if (!result.hold) return refused(link);
        const held_lock mine{where, result.hold.token(), result.hold.id()};
        above.add(mine);
        return run_under(result.hold, {command_, environment_with(mine, above, options_)});
    }

    bool interrupted_at_terminal() const noexcept { return interrupted_at_terminal_; }

private:
    // A hold above us is enough if it is at least what is wanted here. Waiting for more than it could never end: the
    // holder waits for us.
    bool may_borrow(const held_lock& held) const {
        server_set servers(servers_.urls);
        const standing has = standing_of(servers, lock_, held.hold_id);
        if (has == standing::reads && side_ != side::reading) {
            throw trouble(fmt::format(
                "this runs under a shared hold of '{}', and would wait for itself to hold it alone; have the "
                "outer run say --exclusive, or this one --shared",
                options_.name));
        }
        return has != standing::none;
    }

    // Of `holdfast release`, also where this run does not wait for the lock.
    void hear_recalls(const client& link) const {
        api::core& core = *api::core_of(link);
        core.enter_with([&core, keys = lock_.keys] { core.engine().keep_listening(keys, boot_now()); });
    }

    // To look at the lock with: one server over the link that is there.
    server_set eyes(const client& link) const {
        return servers_.urls.size() == 1 ? server_set(link) : server_set(servers_.urls);
    }

    waited wait_in_queue(const client& link) {
        run_lock lock(link, options_.name, side_, lock_options_);
        std::optional<waiting_display> display;
        if (!options_.quiet && ::isatty(STDERR_FILENO) == 1)
            display.emplace(eyes(link), lock_, link, link_options_.max_lease);
        try {
            return wait_for_lock(lock, limit_, *signals_, display ? &*display : nullptr);
        } catch (const error& why) {
            if (why.condition() != errc::wrong_type) throw;
            display.reset();
            throw trouble(fmt::format("lock '{}': {}", options_.name, advice_on(link)));
        }
    }

    std::string advice_on(const client& link) const {
        server_set servers = eyes(link);
        const auto look = [this](const client& each) { return look_at(each, std::vector{lock_}).front(); };
        return advice_on_kind(merge(servers.ask_each(look)), side_);
    }

    int refused(const client& link) const {
        const bool waited = limit_ && limit_->count() > 0;
        const std::string why = waited ? " within " + redis::format_duration(*limit_) : std::string();
        server_set servers = eyes(link);
        const std::string holder = describe_holders(servers, lock_);
        tell(fmt::format("lock '{}': not acquired{}{}{}", options_.name, why, holder.empty() ? "" : "; ", holder));
        return options_.refused_status;
    }

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
    lock_ref lock_;
    side side_;
    client_options link_options_;
    shared_mutex_options lock_options_;
    patience limit_;
    supervision terms_;
    server_choice servers_;
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

void add_run(CLI::App& app, const std::vector<std::string>& words, int& status) {
    const auto [command, options] =
        add_command<run_options>(app, "run", "run a command under a lock", status, run_and_report);
    options->words = words;
    declare(*command, *options);
    command->formatter(std::make_shared<run_help>());
    command->footer(footer);
}

}  // namespace holdfast::cli
