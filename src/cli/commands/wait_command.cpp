// holdfast wait: ends when a lock is free. It takes no position in the queue and keeps nobody waiting.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/change_bell.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "cli/terminal/signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr int told_rests = 10;

struct wait_options : view_options {
    std::string interval = "100ms";
    std::string timeout;
    int refused_status = not_acquired;
    bool quiet = false;
};

class waiting {
public:
    explicit waiting(const wait_options& options)
        : options_(options), interval_(duration_of(options.interval, "--interval")), where_(options.lock()) {
        if (interval_ < milliseconds(1)) throw trouble("--interval: at least 1ms");
        if (options.refused_status < 0 || options.refused_status > 255)
            throw trouble("-E: an exit status is from 0 to 255");
        if (!options.timeout.empty()) limit_ = duration_of(options.timeout, "--timeout");
    }

    int wait() {
        const auto begun = std::chrono::steady_clock::now();
        signal_inbox signals;  // before the clients, whose threads must not get them
        auto [servers, run] = options_.look();
        if (!run) return all_well;  // no local server, so nothing is locked
        std::optional<change_bell> bell;
        for (;;) {
            const std::optional<lock_state> seen = look(servers);
            if (seen && seen->is_free() && !seen->is_moving) return all_well;
            if (!bell && servers.size() == 1) bell.emplace(servers[0], where_, options_.prefix);
            // Of what is told, a look now and then finds out only that a message is missing.
            milliseconds rest_for = bell && bell->will_tell() ? told_rests * interval_ : interval_;
            if (limit_) {
                const auto left = *limit_ - (std::chrono::steady_clock::now() - begun);
                if (left <= std::chrono::nanoseconds(0)) return give_up(seen);
                rest_for = std::min(rest_for, std::chrono::ceil<milliseconds>(left));
            }
            const woken why = rest(signals, rest_for, bell ? bell->fd() : no_input);
            if (why == woken::by_input) bell->answer();
            if (bell && bell->was_free()) return all_well;  // perhaps not any more
            if (why == woken::by_end) return killed_by_signal + SIGINT;
            if (why == woken::by_stop) stop_this_process();
        }
    }

private:
    // A server that is away may come back; that is said once, and then again.
    std::optional<lock_state> look(server_set& servers) {
        try {
            std::optional<lock_state> seen = look_at(servers, where_);
            blind_ = false;
            return seen;
        } catch (const error& why) {
            if (why.condition() == errc::wrong_type) throw;
            if (!std::exchange(blind_, true)) tell(why.what());
            return std::nullopt;
        }
    }

    int give_up(const std::optional<lock_state>& seen) const {
        if (!options_.quiet) {
            tell(fmt::format("lock '{}': not free within {}{}", options_.name, options_.timeout,
                             seen ? "; " + describe_holders_and_note(*seen) : ""));
        }
        return options_.refused_status;
    }

    const wait_options& options_;
    milliseconds interval_;
    lock_ref where_;
    std::optional<milliseconds> limit_;
    bool blind_ = false;
};

}  // namespace

void add_wait(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<wait_options>(app, "wait", "wait until a lock is free, without acquiring it", status,
                                  [](const wait_options& chosen) { return waiting(chosen).wait(); });
    declare_lock(*command, *options);
    command->add_option("--timeout", options->timeout, "at most this long (no limit)")->type_name("TIME");
    command->add_option("--interval", options->interval, "look so often where it is not told (100ms)")
        ->type_name("TIME");
    command->add_option("-E", options->refused_status, "exit status if it is not free in time (1)")
        ->type_name("STATUS");
    command->add_flag("-q,--quiet", options->quiet, "no notices, only errors");
    declare_server(*command, *options);
    command->footer(
        "Exit status: 0 the lock was free; 1 not within --timeout (-E); 125 holdfast failed. It may be held again by\n"
        "the time this ends: to do something alone, use holdfast run.");
}

}  // namespace holdfast::cli
