// holdfast watch: a line for everything that happens to a lock.
#include "cli/commands/view_options.hpp"
#include "cli/inspect/locks/change_bell.hpp"
#include "cli/inspect/locks/lock_events.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/terminal/signals.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

namespace holdfast::cli {
namespace {

// A lock that changes all the time is not looked at all the time.
constexpr milliseconds shortest_rest{2};

struct watch_options : view_options {
    std::string interval = "100ms";
    std::uint64_t count = 0;
};

std::string details(const lock_event& event) {
    std::vector<std::string> facts;
    if (event.mode != "exclusive" && event.mode != "write" && !event.mode.empty()) facts.push_back("to " + event.mode);
    if (event.position) facts.push_back(fmt::format("position {}", *event.position));
    if (event.waited && event.what != happening::waiting) facts.push_back("waited " + about(*event.waited));
    if (event.held) facts.push_back("held " + about(*event.held));
    if (event.token) facts.push_back(fmt::format("token {}", *event.token));
    return fmt::format("{}", fmt::join(facts, ", "));
}

emphasis colour_of(happening what) {
    if (what == happening::expired) return emphasis::danger;
    if (what == happening::waiting || what == happening::gave_up) return emphasis::warning;
    return what == happening::missed || what == happening::released ? emphasis::dim : emphasis::good;
}

std::string line_of(const lock_event& event, const palette& colours) {
    const std::string who = event.what == happening::missed ? "acquired and released between two looks" : event.who;
    const std::string facts = details(event);
    return fmt::format("{}  {}  {}{}{}\n", colours.paint(emphasis::dim, utc(event.when)),
                       colours.paint(colour_of(event.what), fmt::format("{:11}", name_of(event.what))), who,
                       facts.empty() ? "" : "  ", facts);
}

class watcher {
public:
    explicit watcher(const watch_options& options)
        : options_(options), interval_(duration_of(options.interval, "--interval")), where_(options.lock()) {
        if (interval_ < milliseconds(1)) throw trouble("--interval: at least 1ms");
    }

    int watch() {
        const std::string url = options_.only_url("watch");
        signal_inbox signals;  // before the client, whose threads must not get them
        const client link(url);
        lock_state before = look_at(link, where_);
        if (!print(first_events(before))) return all_well;
        change_bell bell(link, where_, options_.prefix);
        for (;;) {
            const woken why = rest_until_next_look(signals, bell);
            if (why == woken::by_end) return all_well;
            if (why == woken::by_stop) stop_this_process();
            std::optional<lock_state> now = look_again(link);
            if (!now) continue;
            keep_clients(before, *now);
            if (!print(events_between(before, *now))) return all_well;
            before = std::move(*now);
        }
    }

private:
    // A mutex tells its grants and releases. All else is found by looking: waiters, locks of other kinds, programs that
    // announce nothing.
    woken rest_until_next_look(signal_inbox& signals, change_bell& bell) const {
        const woken why = rest(signals, shortest_rest);
        if (why != woken::by_time || interval_ <= shortest_rest) return why;
        const woken then = rest(signals, interval_ - shortest_rest, bell.fd());
        if (then == woken::by_input) bell.answer();
        return then;
    }

    // A server that is away may come back; that is said once, and then again.
    std::optional<lock_state> look_again(const client& link) {
        try {
            std::optional<lock_state> now = look_at(link, where_);
            if (std::exchange(blind_, false)) tell(link.server() + " answers again");
            return now;
        } catch (const error& why) {
            if (!std::exchange(blind_, true)) tell(why.what());
            return std::nullopt;
        }
    }

    // False: enough, or nobody reads it any more.
    bool print(const std::vector<lock_event>& events) {
        for (const lock_event& event : events) {
            std::cout << (options_.json ? one_line(to_json(event, where_)) : line_of(event, colours_));
            if (options_.count != 0 && ++printed_ >= options_.count) {
                std::cout.flush();
                return false;
            }
        }
        std::cout.flush();
        return std::cout.good();
    }

    const watch_options& options_;
    milliseconds interval_;
    lock_ref where_;
    palette colours_ = palette::of(STDOUT_FILENO);
    std::uint64_t printed_ = 0;
    bool blind_ = false;
};

}  // namespace

void add_watch(CLI::App& app, int& status) {
    const auto [command, options] =
        add_command<watch_options>(app, "watch", "print a line for everything that happens to a lock", status,
                                   [](const watch_options& chosen) { return watcher(chosen).watch(); });
    declare_lock(*command, *options);
    command->add_option("--interval", options->interval, "look at least so often (100ms)")->type_name("TIME");
    command->add_option("--count", options->count, "end after N lines")->type_name("N");
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Events: held (at the start), acquired, handed over, upgraded, downgraded, released, expired, waiting,\n"
        "gave up, missed (a hold that was over before the next look). Ends by Ctrl-C, with status 0.");
}

}  // namespace holdfast::cli
