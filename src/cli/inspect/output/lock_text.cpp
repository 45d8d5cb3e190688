#include "cli/inspect/output/lock_text.hpp"

#include "cli/inspect/locks/lock_look.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::cli {
namespace {

std::string person(const std::string& id, const std::optional<client_facts>& client) {
    if (!client) return excerpt(id);
    return excerpt(fmt::format("{}@{} {}[{}]", client->user, client->host, client->program, client->pid));
}

// "2 of 3": how many servers say that it holds the lock.
std::string backing_text(const lock_state& lock, const lock_holder& holder) {
    return fmt::format("{} of {}", holder.backing, lock.servers);
}

std::string permits_text(const lock_state& lock) {
    return fmt::format("{} of {}", lock.permits_out(), counted(lock.limit->present, "permit"));
}

std::string heading(const lock_state& lock, const palette& colours) {
    std::string text = colours.paint(emphasis::bold, excerpt(lock.where.name.text())) + ": ";
    if (lock.limit) {
        text += lock.is_free() ? fmt::format("free, {}", counted(lock.limit->present, "permit"))
                               : permits_text(lock) + " held";
        if (lock.limit->present != lock.limit->declared)
            text += fmt::format(" (resized, declared with {})", lock.limit->declared);
    } else if (lock.is_free()) {
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
        facts += fmt::format("for {}, since {}, ", about(*holder.held), utc(lock.server_time - *holder.held));
    facts += holder.left ? fmt::format("lease left {}", about(*holder.left)) : std::string("without a time limit");
    if (holder.token) facts += fmt::format(", token {}", *holder.token);
    if (lock.is_shared_kind())
        facts += fmt::format(", {}", holder.mode == access::both ? "reads and writes" : name_of(holder.mode));
    if (lock.limit) facts += ", " + counted(holder.permits, "permit");
    if (is_kept(holder)) facts += ", kept: its client gives it back when asked and not in use";
    if (holder.count > 1) facts += fmt::format(", entered {} times", holder.count);
    if (lock.servers > 1) facts += fmt::format(", on {} servers", backing_text(lock, holder));
    const std::string note = holder.note.empty() ? "" : fmt::format("          note: {}\n", excerpt(holder.note));
    return fmt::format("  holder  {}\n{}          {}\n          {}\n", colours.paint(emphasis::good, person(holder)),
                       note, facts, colours.paint(emphasis::dim, "id " + excerpt(holder.id)));
}

std::string name_text(const lock_state& lock) {
    const std::string name = excerpt(lock.where.name.text());
    return lock.where.naming == wire::key_naming::raw ? name + " (raw)" : name;
}

std::string mode_text(const lock_state& lock) {
    const bool kept = !lock.is_free() && std::ranges::all_of(lock.holders, is_kept);
    if (lock.limit && !lock.is_free()) return permits_text(lock);
    return std::string(mode_of(lock)) + (kept ? ", kept" : "");
}

bool has_note(const lock_state& lock) {
    return !lock.is_free() && !lock.holders.front().note.empty();
}

std::string holder_text(const lock_state& lock) {
    if (lock.is_free()) return "-";
    const std::string first = person(lock.holders.front());
    return lock.holders.size() == 1 ? first : fmt::format("{} and {} more", first, lock.holders.size() - 1);
}

cell backing_cell(const lock_state& lock) {
    if (lock.is_free()) return {"-"};
    const lock_holder& first = lock.holders.front();
    return {backing_text(lock, first), lock.is_backed(first) ? emphasis::none : emphasis::warning};
}

std::vector<cell> row(const lock_state& lock, bool with_note) {
    std::vector<cell> cells{{name_text(lock), emphasis::bold}, {mode_text(lock)}, {holder_text(lock)}};
    if (lock.is_free()) {
        cells.insert(cells.end(), {{"-"}, {"-"}, {"-"}});
    } else {
        const lock_holder& first = lock.holders.front();
        cells.push_back({first.held ? about(*first.held) : "-"});
        cells.push_back({first.left ? about(*first.left) : "no end", first.left ? emphasis::none : emphasis::warning});
        cells.push_back({first.token ? std::to_string(*first.token) : "-", emphasis::dim});
    }
    const bool waited_for = !lock.waiters.empty();
    cells.push_back({std::to_string(lock.waiters.size()), waited_for ? emphasis::warning : emphasis::dim});
    cells.push_back({waited_for ? about(lock.oldest_wait()) : "-"});
    if (lock.servers > 1) cells.push_back(backing_cell(lock));
    if (with_note) cells.push_back({has_note(lock) ? excerpt(lock.holders.front().note) : "-", emphasis::dim});
    return cells;
}

}  // namespace

std::string person(const lock_holder& holder) {
    return person(holder.id, holder.client) + (holder.is_foreign ? " (another program)" : "");
}

std::string person(const lock_waiter& waiter) {
    return person(waiter.id, waiter.client);
}

std::string describe_holders(const lock_state& lock) {
    if (lock.is_free()) return "it is free by now";
    const lock_holder& first = lock.holders.front();
    std::string text = fmt::format("{} by {}", first.mode == access::read ? "read" : "held", person(first));
    if (first.held) text += " for " + about(*first.held);
    if (lock.holders.size() > 1) return text + " and " + counted(lock.holders.size() - 1, "other");
    if (!first.left) return text + ", without a time limit";
    return *first.left > milliseconds(0) ? text + fmt::format(", {} of its lease left", about(*first.left)) : text;
}

std::string describe_note(const lock_state& lock) {
    return has_note(lock) ? "note: " + excerpt(lock.holders.front().note) : "";
}

std::string describe_holders_and_note(const lock_state& lock) {
    const std::string note = describe_note(lock);
    return describe_holders(lock) + (note.empty() ? "" : "; ") + note;
}

std::string describe_holders(server_set& servers, const lock_ref& lock) {
    try {
        return describe_holders_and_note(look_at(servers, lock));
    } catch (const error&) {
        return {};  // it is only a courtesy
    }
}

std::string report(const lock_state& lock, const palette& colours) {
    std::string text = heading(lock, colours);
    for (const lock_holder& holder : lock.holders) text += holder_lines(lock, holder, colours);
    if (lock.is_idle() && lock.fence) text += fmt::format("  last token {}\n", *lock.fence);
    if (lock.waiters.empty()) return text;
    using enum table::align;
    table queue({left, right, left, right, left, left, left});
    for (std::size_t i = 0; i < lock.waiters.size(); ++i) {
        const lock_waiter& waiter = lock.waiters[i];
        queue.add({{i == 0 ? "  queue" : ""},
                   {std::to_string(i + 1)},
                   {person(waiter), emphasis::warning},
                   {"waits " + about(waiter.waited)},
                   {lock.limit                                             ? "for " + counted(waiter.permits, "permit")
                    : lock.is_shared_kind() || waiter.wants != wish::write ? fmt::format("to {}", name_of(waiter.wants))
                                                                           : ""},
                   {waiter.note.empty() ? "" : excerpt(waiter.note), emphasis::dim},
                   {waiter.is_silent ? "not heard of; will be passed over" : "", emphasis::danger}});
    }
    return text + queue.text(colours);
}

table tabulate(const std::vector<lock_state>& locks) {
    using enum table::align;
    const bool several = !locks.empty() && locks.front().servers > 1;
    std::vector<table::align> columns{left, left, left, right, right, right, right, right};
    std::vector titles{"NAME", "MODE", "HOLDER", "FOR", "LEFT", "TOKEN", "WAITERS", "LONGEST"};
    if (several) {
        columns.push_back(right);
        titles.push_back("SERVERS");
    }
    const bool with_note = std::ranges::any_of(locks, has_note);
    if (with_note) {
        columns.push_back(left);
        titles.push_back("NOTE");
    }
    table result(std::move(columns));
    result.add_heading(titles, emphasis::dim);
    result.leave_out({5, 1});  // a narrow screen still tells who waits
    for (const lock_state& lock : locks) result.add(row(lock, with_note));
    return result;
}

}  // namespace holdfast::cli
