#include "cli/terminal/waiting_display.hpp"

#include "api/runtime/client_access.hpp"
#include "api/runtime/recovery.hpp"
#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/output/lock_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto patience_of_people = 1s;
constexpr auto between_redraws = 500ms;
constexpr std::string_view empty_line = "\r\x1b[K";
constexpr std::string_view line_above = "\x1b[1A";

// A job in the background would write over what the user types.
bool may_draw() {
    return ::isatty(STDERR_FILENO) == 1 && ::tcgetpgrp(STDERR_FILENO) == ::getpgrp();
}

// The last columns stay empty: the terminal writes ^C there, some begin a new line when the last one is filled, and
// what is on another line than ours is not ours to erase.
std::size_t columns() {
    constexpr std::size_t kept = 3;
    winsize told{};
    return (::ioctl(STDERR_FILENO, TIOCGWINSZ, &told) == 0 && told.ws_col > kept ? told.ws_col : 80U) - kept;
}

client_facts self() {
    std::array<char, HOST_NAME_MAX + 1> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
    return {host.data(), std::to_string(::getpid()), "", ""};
}

void write_out(std::string_view text) noexcept {
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody looks any more
}

// While too few servers grant: "3 servers started 8s ago and grant in 52s (--max-lease)".
std::string describe_recovery(const std::string& who, const engine::recovery& found, milliseconds max_lease) {
    return fmt::format("{} started {} ago and grant{} in {} (--max-lease)", who,
                       about(std::max(max_lease - found.enough_in, 0ms)), found.nodes.size() == 1 ? "s" : "",
                       about(found.enough_in));
}

}  // namespace

wait_text describe_wait(const lock_state& lock, const client_facts& self, milliseconds waited) {
    const auto us = std::ranges::find_if(lock.waiters, [&self](const lock_waiter& waiter) {
        return waiter.client && waiter.client->pid == self.pid && waiter.client->host == self.host;
    });
    std::string position;
    if (us != lock.waiters.end()) {
        position = fmt::format(", position {} of {},", us - lock.waiters.begin() + 1, lock.waiters.size());
    } else if (!lock.waiters.empty()) {
        position = fmt::format(", {} in the queue,", lock.waiters.size());
    }
    return {.wait = fmt::format("holdfast: waiting {}{} for '{}'", about(waited), position,
                                excerpt(lock.where.name.text())),
            .reason = lock.is_free() ? "it is about to be handed over" : describe_holders(lock),
            .note = describe_note(lock)};
}

// A note that would be shorter says nothing.
constexpr std::size_t shortest_note = 20;

std::vector<std::string> lines_of(const wait_text& text, std::size_t columns) {
    const std::string whole = text.wait + text.between + text.reason;
    const std::string note = text.note.empty() ? "" : "; " + text.note;
    if (columns_of(whole) <= columns)
        return {columns_of(whole) + shortest_note <= columns ? clip(whole + note, columns) : whole};
    return {clip(text.wait, columns), clip("  " + text.reason + note, columns)};
}

void end_line_of_interrupt() noexcept {
    if (may_draw()) write_out("\n");
}

waiting_display::waiting_display(server_set servers, lock_ref lock, const client& waiter, milliseconds max_lease)
    : servers_(std::move(servers)),
      lock_(std::move(lock)),
      waiter_(waiter),
      max_lease_(max_lease),
      thread_([this](const std::stop_token& over) { show(over); }) {}

waiting_display::~waiting_display() {
    finish();
}

bool waiting_display::finish() noexcept {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    const bool was_there = drawn_ > 0;
    clear();
    return was_there;
}

void waiting_display::clear() noexcept {
    const std::lock_guard guard(mutex_);
    erase();
}

void waiting_display::erase() noexcept {
    for (; drawn_ > 0; --drawn_) {
        write_out(empty_line);
        if (drawn_ > 1) write_out(line_above);
    }
}

void waiting_display::show(const std::stop_token& over) {
    auto rest = std::chrono::milliseconds(patience_of_people);
    for (;;) {
        {
            std::unique_lock guard(mutex_);
            wake_.wait_for(guard, over, rest, [] { return false; });
        }
        if (over.stop_requested()) return;
        rest = between_redraws;
        if (may_draw()) draw(text());
    }
}

wait_text waiting_display::text() {
    const auto waited = std::chrono::floor<milliseconds>(std::chrono::steady_clock::now() - began_);
    const auto because = [&](std::string reason) {
        return wait_text{fmt::format("holdfast: waiting {} for '{}'", about(waited), excerpt(lock_.name.text())),
                         std::move(reason), ": "};
    };
    try {
        const engine::recovery starting = api::recovery_of(*api::core_of(waiter_), lock_.keys);
        if (starting.enough_in > 0ms) {
            std::vector<std::string> names;
            for (const engine::recovery::node& each : starting.nodes) names.push_back(each.server);
            const auto all = fmt::format("server{} {}", names.size() == 1 ? "" : "s", fmt::join(names, ", "));
            std::string whole = describe_recovery(all, starting, max_lease_);
            if (columns_of(whole) + 2 <= columns()) return because(std::move(whole));
            return because(describe_recovery(counted(names.size(), "server"), starting, max_lease_));
        }
        const lock_state seen = look_at(servers_, lock_);
        const std::size_t answers = servers_.size() - servers_.silent().size();
        if (answers >= servers_.majority()) return describe_wait(seen, self(), waited);
        std::string trouble = fmt::format("{} of {} servers answered", answers, servers_.size());
        for (const silence& one : servers_.silent()) trouble += "; " + one.why;
        return because(printable(trouble));
    } catch (const error& why) {
        return because(printable(why.what()));
    }
}

void waiting_display::draw(const wait_text& text) {
    const std::lock_guard guard(mutex_);
    erase();
    for (const std::string& line : lines_of(text, columns())) {
        write_out((drawn_ > 0 ? "\n" : "") + line);
        ++drawn_;
    }
}

}  // namespace holdfast::cli
