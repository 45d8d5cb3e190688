#include "cli/commands/lock_attempt.hpp"

#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/lock_text.hpp"
#include "redis/url/duration.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>

namespace holdfast::cli {
namespace {

// The client leaves the queue in the background, on this link. The answer to a ping comes after that.
void wait_until_undone(client& link) {
    try {
        link.ping();
    } catch (const error&) {
        return;  // the position in the queue then expires
    }
}

// With what becomes of the lock written there, if anywhere.
client_options traced(client_options options, const std::string& path) {
    if (path.empty()) return options;
    try {
        options.trace = trace_to(path);
    } catch (const std::system_error& why) {
        throw trouble(fmt::format("--trace {}: {}", path, why.code().message()));
    }
    return options;
}

}  // namespace

void show_program(const std::string& program) {
    static std::string shown;  // the system's variable points into it
    shown = "holdfast:" + program.substr(program.rfind('/') + 1).substr(0, 40);
    program_invocation_short_name = shown.data();
}

lock_attempt::lock_attempt(const run_options& options)
    : options_(options),
      lock_(options.lock()),
      side_(options.lock_side()),
      slots_(options.wanted_slots()),
      link_options_(options.link_options()),
      lock_options_(options.lock_options()),
      delay_(options.delay_time()),
      limit_(options.wait_limit()) {}

void lock_attempt::choose_servers() {
    servers_ = cli::choose_servers(options_.servers, options_.wanted_notices());
}

bool lock_attempt::may_borrow(const held_lock& held) const {
    if (side_ == side::counted) return false;
    server_set servers(servers_.urls);
    const standing has = standing_of(servers, lock_, held.hold_id);
    if (has == standing::reads && side_ != side::reading) {
        throw trouble(
            fmt::format("this runs under a shared hold of '{}', and would wait for itself to hold it alone; have the "
                        "outer run say --exclusive, or this one --shared",
                        options_.name));
    }
    return has != standing::none;
}

client lock_attempt::connect() const {
    client link(servers_.urls, traced(link_options_, options_.trace));
    api::core& core = *api::core_of(link);
    core.enter_with([&core, keys = lock_.keys] { core.engine().keep_listening(keys, boot_now()); });
    return link;
}

// To look at the lock with: one server over the link that is there.
server_set lock_attempt::eyes(const client& link) const {
    return servers_.urls.size() == 1 ? server_set(link) : server_set(servers_.urls);
}

waited lock_attempt::wait(client& link, signal_inbox& signals) const {
    run_lock lock(link, options_.name, side_, lock_options_, {delay_, slots_, options_.note_text()});
    std::optional<waiting_display> display;
    if (!options_.quiet && ::isatty(STDERR_FILENO) == 1)
        display.emplace(eyes(link), lock_, link, link_options_.max_lease);
    try {
        waited result = wait_for_lock(lock, limit_, signals, display ? &*display : nullptr);
        const bool was_shown = display && display->finish();
        if (result.signal == SIGINT && !was_shown) end_line_of_interrupt();
        if (result.signal) wait_until_undone(link);
        return result;
    } catch (const error& why) {
        if (why.condition() != errc::wrong_type) throw;
        display.reset();
        throw trouble(fmt::format("lock '{}': {}", options_.name, advice_on(link)));
    }
}

std::string lock_attempt::advice_on(const client& link) const {
    server_set servers = eyes(link);
    const auto look = [this](const client& each) { return look_at(each, std::vector{lock_}).front(); };
    return advice_on_kind(merge(servers.ask_each(look)), side_);
}

int lock_attempt::refused(const client& link) const {
    if (options_.quiet) return options_.refused_status;
    const bool waited = limit_ && limit_->count() > 0;
    const std::string why = waited ? " within " + redis::format_duration(*limit_) : std::string();
    server_set servers = eyes(link);
    const std::string holder = describe_holders(servers, lock_);
    tell(fmt::format("lock '{}': not acquired{}{}{}", options_.name, why, holder.empty() ? "" : "; ", holder));
    return options_.refused_status;
}

}  // namespace holdfast::cli
