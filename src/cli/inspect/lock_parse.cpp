// Ours and foreign are told apart by the form of the id. A reader or writer of ours lives by its own entry in
// the leases, and without one is dead; a foreign one lives by the key's expiry as it was before we extended
// it (the member `foreign`), else by the key's own.
#include "cli/inspect/lock_parse.hpp"

#include "cli/terminal/text.hpp"
#include "wire/hold_id.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace holdfast::cli {
namespace {

using fields = std::map<std::string, std::string, std::less<>>;

// Upgraders stand in front of everybody: their score is their ticket less this.
constexpr double upgrade_offset = 9007199254740992.0;  // 2^53
constexpr std::int64_t end_of_tokens = std::int64_t{1} << 53;

fields pairs_of(const answer& list) {
    fields result;
    for (std::size_t i = 0; i + 1 < list.items.size(); i += 2) result[list.items[i].text] = list.items[i + 1].text;
    return result;
}

std::optional<double> score(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> token(std::string_view text) {
    const auto number = whole_number(text);
    if (!number || *number < 1 || *number >= end_of_tokens) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
}

// From an instant of the server's until now; an instant to come (the clock was set back) is no time ago.
microseconds since(double instant_us, microseconds now) {
    return std::max(microseconds(0), now - microseconds(static_cast<std::int64_t>(instant_us)));
}

std::optional<milliseconds> left_of(std::optional<std::int64_t> ttl_ms) {
    return ttl_ms && *ttl_ms >= 0 ? std::optional(milliseconds(*ttl_ms)) : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

// lease ms, interval ms, seen us, floor, wants, channel
void read_entry(lock_waiter& waiter, std::string_view entry, microseconds now) {
    const auto words = words_of(entry);
    if (words.size() < 6) return;
    if (words[4] == "r") waiter.wants = wish::read;
    if (words[4] == "u") waiter.wants = wish::upgrade;
    const auto interval_ms = whole_number(words[1]);
    const auto seen_us = whole_number(words[2]);
    if (!interval_ms || !seen_us) return;
    waiter.unseen = since(static_cast<double>(*seen_us), now);
    waiter.is_silent = *waiter.unseen > 2 * milliseconds(*interval_ms);
}

std::vector<lock_waiter> waiters_of(const answer& queue, const answer& entries, microseconds now) {
    const fields known = pairs_of(entries);
    std::vector<lock_waiter> result;
    for (std::size_t i = 0; i + 1 < queue.items.size(); i += 2) {
        const double ticket = score(queue.items[i + 1].text).value_or(0);
        lock_waiter waiter{.id = queue.items[i].text};
        if (ticket < 0) waiter.wants = wish::upgrade;
        waiter.waited = since(ticket < 0 ? ticket + upgrade_offset : ticket, now);
        const auto entry = known.find(waiter.id);
        if (entry != known.end()) read_entry(waiter, entry->second, now);
        // Without an entry nobody knows what it wants; it is dropped when its turn comes.
        if (entry == known.end()) waiter.is_silent = true;
        result.push_back(std::move(waiter));
    }
    return result;
}

void set_token(lock_holder& holder, std::optional<std::uint64_t> number, microseconds now) {
    holder.token = number;
    if (number) holder.held = since(static_cast<double>(*number), now);
}

lock_holder mutex_holder(const lock_state& lock, const answer& value, std::optional<std::int64_t> ttl_ms) {
    lock_holder holder{.id = value.text, .is_foreign = !wire::is_ours(value.text), .left = left_of(ttl_ms)};
    // The mark is that of the last grant, which a foreign holder's was not.
    if (!holder.is_foreign) set_token(holder, lock.fence, lock.server_time);
    return holder;
}

// The parts of a read-write lock that are kept beside the hash.
struct side_facts {
    fields leases;
    fields grants;
    std::optional<milliseconds> key_left;
};

// False: its lease is over.
bool add_lease(lock_holder& holder, const side_facts& side, microseconds now) {
    const auto lease = side.leases.find(holder.is_foreign ? "foreign" : std::string_view(holder.id));
    if (lease == side.leases.end()) {
        holder.left = side.key_left;
        return holder.is_foreign;
    }
    const auto deadline_ms = score(lease->second);
    if (!deadline_ms) return false;
    holder.left = std::chrono::ceil<milliseconds>(microseconds(static_cast<std::int64_t>(*deadline_ms * 1000)) - now);
    return *holder.left > milliseconds(0);
}

void add_holder(lock_state& lock, const side_facts& side, lock_holder holder) {
    const auto same = std::ranges::find(lock.holders, holder.id, &lock_holder::id);
    if (same != lock.holders.end()) {
        same->mode = access::both;
        same->count += holder.count;
        return;
    }
    holder.is_foreign = !wire::is_ours(holder.id);
    if (!add_lease(holder, side, lock.server_time)) return;
    if (const auto grant = side.grants.find(holder.id); grant != side.grants.end()) {
        const auto words = words_of(grant->second);
        // A third word says that the hold is lost: see docs/protocol.md.
        if (words.size() >= 2) set_token(holder, token(words[1]), lock.server_time);
    }
    lock.holders.push_back(std::move(holder));
}

// "a Redisson lock", or empty: <client uuid>:<thread id>, of one who writes with :write behind it.
std::string_view whose_field(std::string_view name) {
    constexpr std::string_view hex = "0123456789abcdefABCDEF";
    for (int part = 0; part < 5; ++part) {
        const std::size_t end = name.find_first_not_of(hex);
        if (end == 0 || end == std::string_view::npos || name[end] != (part < 4 ? '-' : ':')) return {};
        name.remove_prefix(end + 1);
    }
    return !name.empty() && name.front() >= '0' && name.front() <= '9' ? "a Redisson lock" : std::string_view();
}

// False: it has a field that no read-write lock of a known form has.
bool is_of_known_form(lock_state& lock, const fields& hash) {
    bool known = hash.contains("mode");
    for (const auto& [name, value] : hash) {
        if (name == "mode" || name == "rcount" || name == "writer" || name == "wcount" || name.starts_with("r:"))
            continue;
        known = false;
        if (lock.looks_like.empty()) lock.looks_like = whose_field(name);
    }
    return known;
}

void read_shared(lock_state& lock, const fields& hash, const side_facts& side) {
    constexpr std::string_view reader = "r:";
    lock.is_shared_kind = true;
    const auto field = [&hash](std::string_view name) {
        const auto found = hash.find(name);
        return found == hash.end() ? std::string() : found->second;
    };
    if (const std::string writer = field("writer"); !writer.empty()) {
        add_holder(lock, side,
                   {.id = writer, .mode = access::write, .count = whole_number(field("wcount")).value_or(1)});
    }
    for (const auto& [name, count] : hash) {
        if (!name.starts_with(reader) || whole_number(count).value_or(0) < 1) continue;
        add_holder(lock, side, {.id = name.substr(reader.size()), .mode = access::read, .count = *whole_number(count)});
    }
    const auto by_age = [](const lock_holder& holder) { return holder.token.value_or(0); };
    std::ranges::stable_sort(lock.holders, {}, by_age);
}

}  // namespace

lock_state parse_lock(const lock_ref& where, const answer& told) {
    const auto& parts = told.items;
    if (parts.size() != 9 || !parts[0].integer) throw error(errc::protocol_error, where.keys.lock());
    lock_state lock(where);
    lock.server_time = microseconds(*parts[0].integer);
    lock.fence = token(parts[6].text);
    lock.waiters = waiters_of(parts[4], parts[5], lock.server_time);
    const std::string& kind = parts[1].text;
    if (kind == "string" && !parts[3].items.empty()) {
        lock.holders.push_back(mutex_holder(lock, parts[3].items.front(), parts[2].integer));
    } else if (kind == "hash" && is_of_known_form(lock, pairs_of(parts[3]))) {
        read_shared(lock, pairs_of(parts[3]), {pairs_of(parts[7]), pairs_of(parts[8]), left_of(parts[2].integer)});
    } else if (kind != "none") {
        lock.is_no_lock = true;
    }
    return lock;
}

}  // namespace holdfast::cli
