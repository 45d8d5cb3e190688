#include "cli/inspect/lock_merge.hpp"

#include "cli/inspect/lock_look.hpp"
#include "cli/inspect/lock_search.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::cli {
namespace {

template <typename Party>
void add(std::vector<Party>& all, std::vector<Party> more) {
    for (Party& one : more) {
        const auto known = std::ranges::find(all, one.id, &Party::id);
        if (known == all.end()) {
            all.push_back(std::move(one));
            continue;
        }
        known->backing += one.backing;
        if (!known->client) known->client = std::move(one.client);
    }
}

}  // namespace

lock_state merge(std::vector<lock_state> seen, std::size_t servers) {
    lock_state all = std::move(seen.front());
    for (std::size_t i = 1; i < seen.size(); ++i) {
        lock_state& next = seen[i];
        if (!all.kind || next.is_shared_kind()) all.kind = next.kind ? next.kind : all.kind;
        all.is_moving = all.is_moving || next.is_moving;
        all.is_no_lock = all.is_no_lock || next.is_no_lock;
        if (all.looks_like.empty()) all.looks_like = next.looks_like;
        all.fence = std::max(all.fence, next.fence);
        add(all.holders, std::move(next.holders));
        add(all.waiters, std::move(next.waiters));
    }
    std::ranges::stable_sort(all.holders, std::ranges::greater(), &lock_holder::backing);
    all.servers = servers;
    return all;
}

lock_state look_at(server_set& servers, const lock_ref& lock) {
    std::vector<lock_state> seen;
    for (auto& one : servers.ask_each([&lock](const client& server) { return look_at(server, lock); })) {
        if (one) seen.push_back(std::move(*one));
    }
    return merge(std::move(seen), servers.size());
}

std::vector<lock_state> find_locks(server_set& servers, std::string_view prefix) {
    std::map<std::pair<std::string, std::string>, std::vector<lock_state>> seen;  // in the order of their names
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

void keep_majorities(std::vector<lock_state>& locks) {
    for (lock_state& lock : locks) {
        std::erase_if(lock.holders, [&lock](const lock_holder& holder) { return !lock.is_backed(holder); });
    }
}

}  // namespace holdfast::cli
