#include "cli/inspect/lock_report.hpp"

#include "cli/inspect/person.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

std::string rough(microseconds span) {
    return about(std::chrono::floor<milliseconds>(span));
}

std::string heading(const lock_state& lock, const palette& colours) {
    std::string text = colours.paint(emphasis::bold, excerpt(lock.where.name.text())) + ": ";
    if (lock.is_free()) {
        text += "free";
    } else if (!lock.is_shared_kind()) {
        text += "held";
    } else {
        text += mode_of(lock) == "write" ? "held for writing" : "held for reading";
    }
    if (!lock.is_free() && !lock.is_backed(lock.holders.front())) text += ", but not by a majority of the servers";
    if (!lock.waiters.empty()) text += fmt::format(", {}", counted(lock.waiters.size(), "waiter"));
    return text + colours.paint(emphasis::dim, fmt::format("  (key {})", excerpt(lock.where.keys.lock()))) + "\n";
}

std::string holder_lines(const lock_state& lock, const lock_holder& holder, const palette& colours) {
    std::string facts;
    if (holder.held)
        facts += fmt::format("for {}, since {}, ", rough(*holder.held), utc(lock.server_time - *holder.held));
    facts += holder.left ? fmt::format("lease left {}", about(*holder.left)) : std::string("without a time limit");
    if (holder.token) facts += fmt::format(", token {}", *holder.token);
    if (lock.is_shared_kind())
        facts += fmt::format(", {}", holder.mode == access::both ? "reads and writes" : name_of(holder.mode));
    if (holder.count > 1) facts += fmt::format(", entered {} times", holder.count);
    if (lock.servers > 1) facts += fmt::format(", on {} servers", backing_text(lock, holder));
    return fmt::format("  holder  {}\n          {}\n          {}\n", colours.paint(emphasis::good, person(holder)),
                       facts, colours.paint(emphasis::dim, "id " + excerpt(holder.id)));
}

}  // namespace

std::string report(const lock_state& lock, const palette& colours) {
    std::string text = heading(lock, colours);
    for (const lock_holder& holder : lock.holders) text += holder_lines(lock, holder, colours);
    if (lock.is_idle() && lock.fence) text += fmt::format("  last token {}\n", *lock.fence);
    if (lock.waiters.empty()) return text;
    using enum table::align;
    table queue({left, right, left, right, left, left});
    for (std::size_t i = 0; i < lock.waiters.size(); ++i) {
        const lock_waiter& waiter = lock.waiters[i];
        queue.add(
            {{i == 0 ? "  queue" : ""},
             {std::to_string(i + 1)},
             {person(waiter), emphasis::warning},
             {"waits " + rough(waiter.waited)},
             {lock.is_shared_kind() || waiter.wants != wish::write ? fmt::format("to {}", name_of(waiter.wants)) : ""},
             {waiter.is_silent ? "not heard of; will be passed over" : "", emphasis::danger}});
    }
    for (const std::string& row : queue.lines(colours)) text += row + "\n";
    return text;
}

}  // namespace holdfast::cli
