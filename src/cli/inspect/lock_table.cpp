#include "cli/inspect/lock_table.hpp"

#include "cli/inspect/person.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

std::string name_text(const lock_state& lock) {
    const std::string name = excerpt(lock.where.name.text());
    return lock.where.naming == wire::key_naming::raw ? name + " (raw)" : name;
}

std::string holder_text(const lock_state& lock) {
    if (lock.is_free()) return "-";
    const std::string first = person(lock.holders.front());
    return lock.holders.size() == 1 ? first : fmt::format("{} and {} more", first, lock.holders.size() - 1);
}

template <typename Duration>
std::string or_dash(const std::optional<Duration>& span) {
    return span ? about(std::chrono::floor<milliseconds>(*span)) : "-";
}

cell backing_cell(const lock_state& lock) {
    if (lock.is_free()) return {"-"};
    const lock_holder& first = lock.holders.front();
    return {backing_text(lock, first), lock.is_backed(first) ? emphasis::none : emphasis::warning};
}

std::vector<cell> row(const lock_state& lock) {
    std::vector<cell> cells{{name_text(lock), emphasis::bold}, {std::string(mode_of(lock))}, {holder_text(lock)}};
    if (lock.is_free()) {
        cells.insert(cells.end(), {{"-"}, {"-"}, {"-"}});
    } else {
        const lock_holder& first = lock.holders.front();
        cells.push_back({or_dash(first.held)});
        cells.push_back({first.left ? or_dash(first.left) : "no end", first.left ? emphasis::none : emphasis::warning});
        cells.push_back({first.token ? std::to_string(*first.token) : "-", emphasis::dim});
    }
    const bool waited_for = !lock.waiters.empty();
    cells.push_back({std::to_string(lock.waiters.size()), waited_for ? emphasis::warning : emphasis::dim});
    cells.push_back({waited_for ? about(std::chrono::floor<milliseconds>(lock.oldest_wait())) : "-"});
    if (lock.servers > 1) cells.push_back(backing_cell(lock));
    return cells;
}

}  // namespace

table tabulate(const std::vector<lock_state>& locks) {
    using enum table::align;
    const bool several = !locks.empty() && locks.front().servers > 1;
    std::vector<table::align> columns{left, left, left, right, right, right, right, right};
    if (several) columns.push_back(right);
    table result(std::move(columns));
    std::vector<cell> heading;
    for (const char* title : {"NAME", "MODE", "HOLDER", "FOR", "LEFT", "TOKEN", "WAITERS", "LONGEST"}) {
        heading.push_back({title, emphasis::dim});
    }
    if (several) heading.push_back({"SERVERS", emphasis::dim});
    result.add(std::move(heading));
    for (const lock_state& lock : locks) result.add(row(lock));
    return result;
}

}  // namespace holdfast::cli
