#include "cli/commands/run_options.hpp"

#include "cli/run/command_note.hpp"
#include "redis/url/duration.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::cli {
namespace {

holdfast::prefer preference(const std::string& text) {
    if (text.empty() || text == "arrival") return prefer::arrival;
    if (text == "readers") return prefer::readers;
    if (text == "writers") return prefer::writers;
    throw trouble(fmt::format("--prefer {}: it is arrival, readers or writers", text));
}

}  // namespace

patience run_options::wait_limit() const {
    if (no_wait && !wait.empty()) throw trouble("either --wait or --no-wait, not both");
    if (no_wait) return milliseconds(0);
    if (wait.empty()) return std::nullopt;
    // flock(1) counts in seconds.
    const bool is_number = wait.find_first_not_of("0123456789.") == wait.npos;
    return duration_of(is_number ? wait + "s" : wait, "--wait");
}

side run_options::lock_side() const {
    if (shared && exclusive) throw trouble("either --shared or --exclusive, not both");
    if (slot_limit > 0) {
        if (shared || exclusive || !prefer.empty())
            throw trouble(
                "--slots does not go with --shared, --exclusive and --prefer: those are of a read-write lock");
        return side::counted;
    }
    if (shared) return side::reading;
    // A preference makes sense only for a lock that has readers.
    return exclusive || !prefer.empty() ? side::writing : side::plain;
}

slots run_options::wanted_slots() const {
    if (slots_taken > 0 && slot_limit == 0) throw trouble("--take is of --slots: say how many there are");
    return {slot_limit, std::max<std::size_t>(slots_taken, 1)};
}

client_options run_options::link_options() const {
    client_options chosen = options_with(max_lease, fence_retention);
    if (mistrust_restarts) chosen.after_restart = restarted_server::mistrusted;
    if (!clock_skew.empty()) chosen.clock_skew = duration_of(clock_skew, "--clock-skew");
    return chosen;
}

std::chrono::milliseconds run_options::lease_time() const {
    const std::chrono::milliseconds longest = link_options().max_lease;
    if (lease.empty()) return std::min(mutex_options{}.lease, longest);
    const std::chrono::milliseconds chosen = duration_of(lease, "--lease");
    if (chosen <= longest) return chosen;
    throw trouble(fmt::format(
        "--lease {}: the longest lease is {}; say --max-lease {}, too, here and wherever these servers are used", lease,
        redis::format_duration(longest), lease));
}

std::chrono::milliseconds run_options::delay_time() const {
    if (delay.empty()) return std::chrono::milliseconds(0);
    if (lock_side() != side::plain)
        throw trouble("--delay: only a plain lock has a delay; leave out -s, -x, --prefer and --slots");
    const std::chrono::milliseconds chosen = duration_of(delay, "--delay");
    const std::chrono::milliseconds longest = link_options().max_lease;
    if (lease_time() + chosen <= longest) return chosen;
    throw trouble(
        fmt::format("--delay {}: together with the lease it may be {} at most; say a shorter --lease, or a longer "
                    "--max-lease here and wherever these servers are used",
                    delay, redis::format_duration(longest)));
}

shared_mutex_options run_options::lock_options() const {
    return {.lease = lease_time(),
            .replicas = replicas,
            .keys = lock().naming == wire::key_naming::raw ? holdfast::keys::raw : holdfast::keys::tagged,
            .prefix = prefix,
            .prefer = preference(prefer)};
}

supervision run_options::terms() const {
    if (reaction != "kill" && reaction != "warn")
        throw trouble(fmt::format("--on-lost {}: it is kill or warn", reaction));
    return {name, lease_time(), duration_of(grace, "--grace"), reaction == "warn" ? on_lost::warn : on_lost::kill};
}

std::vector<std::string> run_options::command() const {
    if (refused_status < 0 || refused_status > 255) throw trouble("-E: an exit status is from 0 to 255");
    if (!shell.empty() && !words.empty()) throw trouble("either --shell or a command, not both");
    if (!shell.empty()) return {"/bin/sh", "-c", shell};
    if (words.empty()) throw trouble("no command: write it behind NAME, as in holdfast run NAME -- COMMAND");
    return words;
}

// Neither a semaphore nor a key that other programs share has a place for a note.
std::string run_options::note_text() const {
    const bool has_place = lock_side() != side::counted && lock().naming == wire::key_naming::tagged;
    if (note && !note->empty() && !has_place) throw trouble("--note does not go with --slots and --keys raw");
    if (note) return *note;
    if (!has_place) return {};
    return shell.empty() ? note_of_command(words) : note_of_command({shell});
}

std::vector<std::string> command_words(const std::optional<std::vector<std::string>>& behind_dashes,
                                       const std::vector<std::string>& left, std::string_view command) {
    if (!left.empty() && left.front().starts_with('-')) {
        throw trouble(fmt::format("{0} has no option {1}; put -- before the command: holdfast {0} NAME -- COMMAND",
                                  command, left.front()));
    }
    if (!behind_dashes) return left;
    if (!left.empty()) {
        throw trouble(fmt::format("'{}' stands between NAME and --; NAME is one word, and the command stands behind --",
                                  left.front()));
    }
    return *behind_dashes;
}

namespace {

auto adder_to(CLI::App& command) {
    return [&command](const char* names, auto& value, const char* type, const char* text) {
        return command.add_option(names, value, text)->type_name(type);
    };
}

// How long to wait and to hold, and on which servers: of every command that acquires a lock.
void declare_acquisition(CLI::App& command, run_options& options) {
    const auto add = adder_to(command);
    add("-w,--wait", options.wait, "TIME", "wait at most this long, as in 30s (no limit)");
    command.add_flag("-n,--no-wait", options.no_wait, "give up at once if somebody else holds the lock");
    add("--lease", options.lease, "TIME", "how long the lock outlives a crash (30s)");
    add("--delay", options.delay, "TIME", "how long nobody acquires the lock after a crash and its lease (0s)");
    declare_max_lease(command, options.max_lease);
    add("--fence-retention", options.fence_retention, "TIME", "how long tokens are remembered (1h)");
    command.add_flag("--mistrust-restarts", options.mistrust_restarts, "a new server grants nothing for --max-lease");
    add("--replicas", options.replicas, "N", "replicas that must acknowledge the hold (0)");
    add("--clock-skew", options.clock_skew, "TIME", "how far servers' clocks may be apart (0s)");
    declare_servers(command, options.servers);
    add("--prefix", options.prefix, "TEXT", "prefix of tagged keys (hf:)");
    add("-E", options.refused_status, "STATUS", "exit status if the lock was not acquired (1)");
    command.add_flag("-q,--quiet", options.quiet, "no notices, only errors");
}

// Of every command that runs another one meanwhile.
void declare_command(CLI::App& command, run_options& options) {
    const auto add = adder_to(command);
    add("--on-lost", options.reaction, "kill|warn", "what to do with COMMAND if the lock is lost (kill)");
    add("--grace", options.grace, "TIME", "from TERM to KILL if the lock is lost, at most (5s)");
    add("-c,--shell", options.shell, "TEXT", "run this by /bin/sh -c instead of COMMAND");
    add("--trace", options.trace, "FILE", "write what becomes of the lock there, for Perfetto");
}

}  // namespace

void declare_lock_options(CLI::App& command, run_options& options) {
    const auto add = adder_to(command);
    add("NAME", options.name, "", "what to lock")->required();
    command.add_flag("-s,--shared", options.shared, "with others: the reading side of a read-write lock");
    command.add_flag("-x,--exclusive", options.exclusive, "alone: the writing side of what others hold by -s");
    add("--prefer", options.prefer, "arrival|readers|writers", "who goes first where both wait (arrival)");
    add("--slots", options.slot_limit, "N", "one of N at a time: takes a permit of a semaphore")
        ->check(CLI::PositiveNumber);
    add("--take", options.slots_taken, "N", "with --slots: take N of the permits (1)")->check(CLI::PositiveNumber);
    add("--note", options.note, "TEXT", "a text about this hold for others to read (run: the command)");
    add("--keys", options.keys, "FORM", "tagged, or raw: the key is NAME itself (tagged)");
    declare_acquisition(command, options);
}

void declare_election(CLI::App& elect, run_options& options, std::string& value) {
    const auto add = adder_to(elect);
    add("NAME", options.name, "", "the election")->required();
    add("--value", value, "TEXT", "a text about this leader for others to read")->required();
    declare_acquisition(elect, options);
    declare_command(elect, options);
}

void declare(CLI::App& run, run_options& options) {
    declare_lock_options(run, options);
    declare_command(run, options);
}

}  // namespace holdfast::cli
