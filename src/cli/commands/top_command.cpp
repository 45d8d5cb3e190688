// holdfast top: the locks of a server, live.
#include "base/boot_clock.hpp"
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/terminal/screen.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/top_page.hpp"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

struct top_options : view_options {
    std::string interval = "1s";
    std::uint64_t count = 0;

    milliseconds pause() const {
        const milliseconds chosen = duration_of(interval, "--interval");
        if (chosen < milliseconds(10)) throw trouble("--interval: at least 10ms");
        return chosen;
    }
};

class live_page {
public:
    live_page(server_set& servers, const top_options& options, signal_inbox& signals)
        : servers_(servers), options_(options), signals_(signals), page_(servers.text()) {}

    int run() {
        page_.show(find_locks(servers_, options_.prefix));  // while messages can be read
        show_silent();
        screen_.emplace();
        instant look_at = boot_now() + options_.pause();
        for (;;) {
            screen_->draw(page_.lines(screen_->size(), palette::of(STDOUT_FILENO)));
            if (screen_->is_gone() || !obey(look_at)) return all_well;
            if (boot_now() < look_at) continue;
            look();
            look_at = boot_now() + options_.pause();
        }
    }

private:
    // Waits for a key, a signal, or the time of the next look. False: it is over.
    bool obey(instant look_at) {
        const auto left = std::chrono::ceil<milliseconds>(look_at - boot_now());
        const woken why = rest(signals_, left, STDIN_FILENO);
        if (why == woken::by_input) return page_.press(screen_->read_keys());
        if (why == woken::by_stop) {
            screen_->leave();
            stop_this_process();
            screen_->enter();
        }
        return why != woken::by_end;
    }

    void look() {
        try {
            page_.show(find_locks(servers_, options_.prefix));
            show_silent();
        } catch (const error& why) {
            page_.show_trouble(why.what());
        }
    }

    void show_silent() {
        if (const auto silent = servers_.all_silent(); !silent.empty()) page_.show_trouble(silent.front().why);
    }

    server_set& servers_;
    const top_options& options_;
    signal_inbox& signals_;
    top_page page_;
    std::optional<screen> screen_;
};

int write_lines(server_set& servers, const top_options& options, signal_inbox& signals) {
    std::vector<std::string> told;  // people hear of silent servers only when that has changed
    for (std::uint64_t written = 1;; ++written) {
        std::vector<lock_state> locks = find_locks(servers, options.prefix);
        std::erase_if(locks, [](const lock_state& lock) { return lock.is_idle(); });
        std::cout << one_line(document(servers, "locks", to_json(locks))) << std::flush;
        std::vector<std::string> silent;
        for (const silence& one : servers.all_silent()) silent.push_back(one.server);
        if (silent != std::exchange(told, silent)) servers.tell_silent();
        if (!std::cout || written == options.count) return all_well;
        const woken why = rest(signals, options.pause());
        if (why == woken::by_end) return all_well;
        if (why == woken::by_stop) stop_this_process();
    }
}

int top(const top_options& options) {
    options.pause();
    const server_choice choice = choose_servers(options.servers, notices::shown);
    signal_inbox signals;  // before the clients, whose threads must not get them
    server_set servers(choice.urls);
    if (options.json) return write_lines(servers, options, signals);
    return live_page(servers, options, signals).run();
}

}  // namespace

void add_top(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<top_options>(app, "top", "show the locks live, the most wanted first", status, top);
    command->add_option("--interval", options->interval, "look so often (1s)")->type_name("TIME");
    command->add_option("--count", options->count, "with --json: end after N lines")->type_name("N");
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Keys: q quit; s sort by the next of w waiters, o longest wait, h time held, l lease left, n name;\n"
        "r reverse; / filter by a part of the name, Esc drops it; a free ones too; arrows and space scroll.\n"
        "With --json: what ls --json writes, one line for each look, also without a terminal.");
}

}  // namespace holdfast::cli
