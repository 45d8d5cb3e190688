#include "cli/run_options.hpp"

#include "cli/exit_code.hpp"
#include "redis/duration.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

milliseconds duration_of(const std::string& text, const char* option) {
    const auto duration = redis::parse_duration(text);
    if (!duration) {
        throw trouble(
            fmt::format("{} {}: not a duration; write a number and one of ms, s, m, h, as in 500ms or 1.5s",
                        option, text));
    }
    return *duration;
}

}  // namespace

patience run_options::wait_limit() const {
    if (no_wait) return milliseconds(0);
    if (wait.empty()) return std::nullopt;
    return duration_of(wait, "--wait");
}

mutex_options run_options::lock_options() const {
    return {.lease = duration_of(lease, "--lease"),
            .keys = keys == "raw" ? holdfast::keys::raw : holdfast::keys::tagged,
            .prefix = prefix};
}

supervision run_options::terms() const {
    return {name, duration_of(lease, "--lease"), duration_of(grace, "--grace"),
            reaction == "warn" ? on_lost::warn : on_lost::kill};
}

std::vector<std::string> run_options::command() const {
    if (!shell.empty() && !words.empty()) throw trouble("either --shell or a command after --, not both");
    if (!shell.empty()) return {"/bin/sh", "-c", shell};
    if (words.empty()) throw trouble("no command: write it after --, as in holdfast run NAME -- COMMAND");
    return words;
}

void declare(CLI::App& run, run_options& options) {
    run.add_option("NAME", options.name, "what to lock")->required();
    auto* const wait = run.add_option("--wait", options.wait, "wait at most so long, as in 30s (no limit)");
    run.add_flag("--no-wait", options.no_wait, "give up at once if the lock is taken")->excludes(wait);
    run.add_option("--lease", options.lease, "how long the lock outlives a crash (30s)");
    run.add_option("--url", options.url, "the server, else HOLDFAST_URL, else one on this machine");
    run.add_option("--keys", options.keys, "tagged, or raw: the key is NAME itself (tagged)")
        ->check(CLI::IsMember({"tagged", "raw"}));
    run.add_option("--prefix", options.prefix, "stands before tagged keys (hf:)");
    run.add_option("--grace", options.grace, "from TERM to KILL if the lock is lost, at most (5s)");
    run.add_option("--on-lost", options.reaction, "kill the command, or only warn (kill)")
        ->check(CLI::IsMember({"kill", "warn"}));
    run.add_option("-E", options.refused_status, "exit so if the lock was not had (1)")
        ->check(CLI::Range(0, 255));
    run.add_option("--shell", options.shell, "run this text by /bin/sh -c instead of COMMAND");
    run.add_flag("-q,--quiet", options.quiet, "no notices, only errors");
}

}  // namespace holdfast::cli
