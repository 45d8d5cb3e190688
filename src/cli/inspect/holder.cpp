#include "cli/inspect/holder.hpp"

#include "cli/inspect/ask.hpp"
#include "cli/inspect/lock_merge.hpp"
#include "cli/inspect/person.hpp"
#include "cli/inspect/tool_script.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>

#include <charconv>

namespace holdfast::cli {
namespace {

// A hold of a read-write lock counts only while its lease runs: what a dead one left in the hash is swept up later.
bool lease_runs(const answer& deadline_ms, const answer& time) {
    if (deadline_ms.is_null || time.items.size() != 2) return false;
    double deadline = 0;
    const std::string& text = deadline_ms.text;
    if (std::from_chars(text.data(), text.data() + text.size(), deadline).ec != std::errc()) return false;
    const auto now_us = time.items[0].integer.value_or(0) * 1'000'000 + time.items[1].integer.value_or(0);
    return deadline * 1000 > static_cast<double>(now_us);
}

// One script: the lease's end is by the clock of whoever keeps it, which in a Cluster is not anybody's.
const redis::script& standing_script() {
    static const tool_script script("standing", R"lua(
-- standing: what one hold has of a read-write lock. Reads only.
-- KEYS  1 lock  2 leases
-- ARGV  1 hold id
-- Returns  {{writer, how often it has entered to read}, end of its lease in ms, TIME}
return {redis.call('HMGET', KEYS[1], 'writer', 'r:' .. ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1]),
    redis.call('TIME')}
)lua");
    return script.source();
}

standing standing_in_hash(const client& server, const lock_ref& lock, const std::string& hold_id) {
    const answer told = ask(server, question{{"2", lock.keys.lock(), lock.keys.leases(), hold_id}, &standing_script()});
    if (told.items.size() != 3) throw error(errc::protocol_error, server.server());
    const std::vector<answer>& sides = told.items[0].items;
    if (sides.size() != 2 || !lease_runs(told.items[1], told.items[2])) return standing::none;
    if (sides[0].text == hold_id) return standing::holds_alone;
    return sides[1].is_null ? standing::none : standing::reads;
}

}  // namespace

standing standing_of(const client& server, const lock_ref& lock, const std::string& hold_id) {
    try {
        const answer holder = ask(server, {"GET", lock.keys.lock()});
        return !holder.is_null && holder.text == hold_id ? standing::holds_alone : standing::none;
    } catch (const error& why) {
        if (why.condition() != errc::wrong_type) throw;
        return standing_in_hash(server, lock, hold_id);
    }
}

standing standing_of(server_set& servers, const lock_ref& lock, const std::string& hold_id) {
    std::size_t alone = 0;
    std::size_t some = 0;
    for (const auto& told : servers.ask_each([&](const client& one) { return standing_of(one, lock, hold_id); })) {
        if (told == standing::holds_alone) ++alone;
        if (told && *told != standing::none) ++some;
    }
    if (alone >= servers.majority()) return standing::holds_alone;
    if (some >= servers.majority()) return standing::reads;
    if (some + servers.silent().size() < servers.majority()) return standing::none;
    throw error(errc::no_quorum, servers.text());
}

std::string describe_holders(const lock_state& lock) {
    if (lock.is_free()) return "it is free by now";
    const lock_holder& first = lock.holders.front();
    std::string text = fmt::format("{} by {}", first.mode == access::read ? "read" : "held", person(first));
    if (first.held) text += " for " + about(std::chrono::floor<milliseconds>(*first.held));
    if (lock.holders.size() > 1) return text + " and " + counted(lock.holders.size() - 1, "other");
    if (!first.left) return text + ", without a time limit";
    return *first.left > milliseconds(0) ? text + fmt::format(", {} of its lease left", about(*first.left)) : text;
}

std::string describe_holders(server_set& servers, const lock_ref& lock) {
    try {
        return describe_holders(look_at(servers, lock));
    } catch (const error&) {
        return {};  // it is only a courtesy
    }
}

}  // namespace holdfast::cli
