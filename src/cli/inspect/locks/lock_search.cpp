#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/servers/ask.hpp"
#include "wire/hold_id.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace holdfast::cli {
namespace {

using wire::key_naming;

bool is_locks_own(const lock_state& lock) {
    if (lock.is_moving) return lock.where.naming == key_naming::tagged;  // what other programs' keys hold is unknown
    const bool has_waiters =
        std::ranges::any_of(lock.waiters, [](const lock_waiter& w) { return wire::is_ours(w.id); });
    if (lock.where.naming == key_naming::tagged)
        return !lock.is_no_lock && (lock.fence || has_waiters || !lock.is_idle());
    return !lock.is_no_lock && (lock.fence || has_waiters);
}

// The names x and {x} share their side keys. Keeps the one that is held; if none is, x.
void drop_doubles(std::vector<lock_state>& locks) {
    std::set<std::string> held;
    std::set<std::string> plain_queues;
    for (const lock_state& lock : locks) {
        if (!lock.is_free()) held.insert(lock.where.keys.queue());
        if (lock.where.keys.lock() != lock.where.keys.queue().substr(0, lock.where.keys.lock().size())) {
            plain_queues.insert(lock.where.keys.queue());
        }
    }
    std::erase_if(locks, [&](const lock_state& lock) {
        if (lock.where.naming == key_naming::tagged || !lock.is_free()) return false;
        const std::string& queue = lock.where.keys.queue();
        return held.contains(queue) || (plain_queues.contains(queue) && lock.where.keys.lock().starts_with('{'));
    });
}

// The locks whose keys are on this server, each once, the tagged ones first.
std::vector<lock_ref> scan(const client& server, std::string_view prefix) {
    std::set<std::pair<key_naming, std::string>> found;
    std::string cursor = "0";
    do {
        const answer page = ask(server, {"SCAN", cursor, "MATCH", "*{*}*", "COUNT", "1000"});
        if (page.items.size() != 2) throw error(errc::protocol_error, server.server());
        cursor = page.items[0].text;
        for (const answer& key : page.items[1].items) {
            for (const wire::key_owner& owner : wire::owners_of(key.text, prefix)) {
                found.emplace(owner.naming, owner.name);
            }
        }
    } while (cursor != "0");
    std::vector<lock_ref> result;
    for (const auto& [naming, name] : found) {
        try {
            result.emplace_back(wire::lock_name(name), naming, prefix);
        } catch (const error&) {
            continue;  // not the name of a lock
        }
    }
    return result;
}

}  // namespace

found_locks find_locks(const client& server, std::string_view prefix, const member_list& members) {
    found_locks result;
    std::set<std::string> known;
    // Scans the server itself, or a member. The look goes through the whole Cluster: a slot may have moved.
    const auto add_those_of = [&](const client& scanned) {
        std::vector<lock_ref> fresh = scan(scanned, prefix);
        std::erase_if(fresh, [&known](const lock_ref& lock) { return known.contains(lock.keys.lock()); });
        for (lock_state& lock : look_at_keys(server, fresh)) {
            known.insert(lock.where.keys.lock());
            if (is_locks_own(lock)) result.locks.push_back(std::move(lock));
        }
    };
    if (members.empty()) add_those_of(server);
    for (const client* each : members) {
        try {
            add_those_of(*each);
        } catch (const error& why) {
            result.silent.push_back({each->server(), why.what()});
            if (result.silent.size() == members.size()) throw;
        }
    }
    drop_doubles(result.locks);
    std::ranges::sort(result.locks, {},
                      [](const lock_state& lock) -> const std::string& { return lock.where.name.text(); });
    add_cards(server, result.locks);
    return result;
}

std::vector<lock_state> find_locks(server_set& servers, std::string_view prefix) {
    std::map<std::pair<std::string, std::string>, std::vector<lock_state>> seen;  // by name and key
    for (auto& one :
         servers.ask_by_number([&](std::size_t i) { return find_locks(servers[i], prefix, servers.members(i)); })) {
        if (!one) continue;
        servers.note_silent_members(std::move(one->silent));
        for (lock_state& lock : one->locks) {
            std::pair key(lock.where.name.text(), lock.where.keys.lock());
            seen[std::move(key)].push_back(std::move(lock));
        }
    }
    std::vector<lock_state> result;
    for (auto& [key, locks] : seen) result.push_back(merge(std::move(locks), servers.size()));
    return result;
}

}  // namespace holdfast::cli
