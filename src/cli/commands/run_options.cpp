#include "cli/commands/run_options.hpp"

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
    return duration_of(wait, "--wait");
}

side run_options::lock_side() const {
    if (shared && exclusive) throw trouble("either --shared or --exclusive, not both");
    if (shared) return side::reading;
    // A preference makes sense only for a lock that has readers.
    return exclusive || !prefer.empty() ? side::writing : side::plain;
}

client_options run_options::link_options() const {
    return options_with(max_lease, fence_retention);
}

std::chrono::milliseconds run_options::lease_time() const {
    if (lease.empty()) return std::min(mutex_options{}.lease, link_options().max_lease);
    return duration_of(lease, "--lease");
}

shared_mutex_options run_options::lock_options() const {
    return {.lease = lease_time(),
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
    if (!shell.empty() && !words.empty()) throw trouble("either --shell or a command after --, not both");
    if (!shell.empty()) return {"/bin/sh", "-c", shell};
    if (words.empty()) throw trouble("no command: write it after --, as in holdfast run NAME -- COMMAND");
    return words;
}

void declare(CLI::App& run, run_options& options) {
    const auto add = [&run](const char* names, auto& value, const char* type, const char* text) {
        return run.add_option(names, value, text)->type_name(type);
    };
    add("NAME", options.name, "", "what to lock")->required();
    run.add_flag("-s,--shared", options.shared, "with others: the reading side of a read-write lock");
    run.add_flag("-x,--exclusive", options.exclusive, "alone: the writing side of what others hold by -s");
    add("--prefer", options.prefer, "arrival|readers|writers", "who goes first where both wait (arrival)");
    add("--wait", options.wait, "TIME", "wait at most this long, as in 30s (no limit)");
    run.add_flag("--no-wait", options.no_wait, "give up at once if somebody else holds the lock");
    add("--lease", options.lease, "TIME", "how long the lock outlives a crash (30s)");
    declare_max_lease(run, options.max_lease);
    add("--fence-retention", options.fence_retention, "TIME", "how long tokens are remembered (1h)");
    declare_servers(run, options.servers);
    add("--keys", options.keys, "FORM", "tagged, or raw: the key is NAME itself (tagged)");
    add("--prefix", options.prefix, "TEXT", "prefix of tagged keys (hf:)");
    add("--on-lost", options.reaction, "kill|warn", "what to do with COMMAND if the lock is lost (kill)");
    add("--grace", options.grace, "TIME", "from TERM to KILL if the lock is lost, at most (5s)");
    add("-E", options.refused_status, "STATUS", "exit status if the lock was not acquired (1)");
    add("--shell", options.shell, "TEXT", "run this by /bin/sh -c instead of COMMAND");
    run.add_flag("-q,--quiet", options.quiet, "no notices, only errors");
}

}  // namespace holdfast::cli
