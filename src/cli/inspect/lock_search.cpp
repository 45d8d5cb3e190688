#include "cli/inspect/lock_search.hpp"

#include "cli/inspect/ask.hpp"
#include "cli/inspect/lock_look.hpp"
#include "wire/hold_id.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace holdfast::cli {
namespace {

using wire::key_naming;
using wire::lock_name;

// The names behind the keys that a search finds, each once.
class findings {
public:
    explicit findings(std::string_view prefix) : prefix_(prefix) {}

    void add(std::string_view key) {
        for (const wire::key_owner& owner : wire::owners_of(key, prefix_)) {
            (owner.naming == key_naming::tagged ? tagged_ : raw_).emplace(owner.name);
        }
    }

    std::vector<lock_ref> locks() const {
        std::vector<lock_ref> result;
        const auto take = [&](const std::string& name, key_naming naming) {
            try {
                result.emplace_back(lock_name(name), naming, prefix_);
            } catch (const error&) {
                return;  // not the name of a lock
            }
        };
        for (const std::string& name : tagged_) take(name, key_naming::tagged);
        for (const std::string& name : raw_) take(name, key_naming::raw);
        return result;
    }

private:
    const std::string_view prefix_;
    std::set<std::string, std::less<>> tagged_;
    std::set<std::string, std::less<>> raw_;
};

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

void search(const client& server, findings& found) {
    std::string cursor = "0";
    do {
        const answer page = ask(server, {"SCAN", cursor, "MATCH", "*{*}*", "COUNT", "1000"});
        if (page.items.size() != 2) throw error(errc::protocol_error, server.server());
        cursor = page.items[0].text;
        for (const answer& key : page.items[1].items) found.add(key.text);
    } while (cursor != "0");
}

// The locks of all members, each lock once.
class collection {
public:
    collection(const client& server, std::string_view prefix) : server_(server), prefix_(prefix) {}

    // Searches the server itself, or a member. The look goes through the whole Cluster: a slot may have moved.
    void add_those_of(const client& searched) {
        findings found(prefix_);
        search(searched, found);
        std::vector<lock_ref> fresh = found.locks();
        std::erase_if(fresh, [this](const lock_ref& lock) { return known_.contains(lock.keys.lock()); });
        for (lock_state& lock : look_at_keys(server_, fresh)) {
            known_.insert(lock.where.keys.lock());
            if (is_locks_own(lock)) locks_.push_back(std::move(lock));
        }
    }

    std::vector<lock_state> finish() {
        drop_doubles(locks_);
        std::ranges::sort(locks_, {},
                          [](const lock_state& lock) -> const std::string& { return lock.where.name.text(); });
        add_cards(server_, locks_);
        return std::move(locks_);
    }

private:
    const client& server_;
    const std::string_view prefix_;
    std::set<std::string> known_;
    std::vector<lock_state> locks_;
};

}  // namespace

found_locks find_locks(const client& server, std::string_view prefix, const member_list& members) {
    collection all(server, prefix);
    found_locks result;
    if (members.empty()) all.add_those_of(server);
    for (const client* each : members) {
        try {
            all.add_those_of(*each);
        } catch (const error& why) {
            result.silent.push_back({each->server(), why.what()});
            if (result.silent.size() == members.size()) throw;
        }
    }
    result.locks = all.finish();
    return result;
}

}  // namespace holdfast::cli
