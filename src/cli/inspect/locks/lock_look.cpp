#include "cli/inspect/locks/lock_look.hpp"

#include "cli/inspect/servers/ask.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/hold_id.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace holdfast::cli {
namespace {

constexpr int most_looks = 10;
constexpr milliseconds between_looks{50};

lock_state moving_lock(const lock_ref& where) {
    lock_state lock(where);
    lock.is_moving = true;
    lock.server_time = std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
    return lock;
}

template <typename Function>
void for_each_party(std::vector<lock_state>& locks, const Function& function) {
    for (lock_state& lock : locks) {
        for (lock_holder& holder : lock.holders) function(holder);
        for (lock_waiter& waiter : lock.waiters) function(waiter);
    }
}

// A card that cannot be read costs its text only; so does one whose member of a Cluster is away.
std::optional<client_facts> facts_of(const std::optional<answer>& told) {
    if (!told || told->is_error || told->items.size() != wire::card_fields.size() || told->items[0].is_null) return {};
    const auto field = [&told](std::size_t i) { return told->items[i].text; };
    return client_facts{field(0), field(1), field(2), field(3)};
}

// One look at each of these locks that has no state yet. A lock that moves stays without one.
void look_once(const client& server, const std::vector<lock_ref>& locks,
               std::vector<std::optional<lock_state>>& result) {
    std::vector<std::size_t> open;
    std::vector<api::question> requests;
    for (std::size_t i = 0; i < locks.size(); ++i) {
        if (result[i]) continue;
        open.push_back(i);
        requests.emplace_back([&keys = locks[i].keys](redis::command& out) { wire::write_look(out, keys); });
    }
    std::optional<failure> refused;
    ask_in_bursts(server, requests, [&](std::size_t at, const redis::reply_view& reply) {
        const lock_ref& lock = locks[open[at]];
        auto seen = reply.is_error() ? std::nullopt : wire::read_look(reply);
        if (seen) {
            result[open[at]].emplace(lock, std::move(*seen));
        } else {
            failure why{errc::protocol_error, lock.keys.lock()};
            if (reply.is_error()) why = redis::classify_error(reply.text(), server.server());
            if (why.code != errc::moving && !refused) refused = std::move(why);
        }
    });
    if (refused) throw error(refused->code, refused->detail);
}

}  // namespace

void add_cards(const client& server, std::vector<lock_state>& locks) {
    std::map<std::string, std::optional<client_facts>, std::less<>> known;
    for_each_party(locks, [&known](const auto& party) {
        if (const std::string_view client = wire::client_of(party.id); !client.empty())
            known.emplace(client, std::nullopt);
    });
    std::vector<request> requests;
    for (const auto& [client, facts] : known) {
        request& one = requests.emplace_back(request{{"HMGET", wire::card_key_of(client)}});
        one.words.insert(one.words.end(), wire::card_fields.begin(), wire::card_fields.end());
    }
    const auto answers = ask_what_can_be(server, requests);
    std::size_t i = 0;
    for (auto& [client, facts] : known) facts = facts_of(answers[i++]);
    for_each_party(locks, [&known](auto& party) {
        if (const auto found = known.find(wire::client_of(party.id)); found != known.end())
            party.client = found->second;
    });
}

std::vector<lock_state> look_at_keys(const client& server, const std::vector<lock_ref>& locks) {
    std::vector<std::optional<lock_state>> seen(locks.size());
    const auto is_open = [](const std::optional<lock_state>& one) { return !one; };
    look_once(server, locks, seen);
    for (int tries = 0; tries < most_looks && std::ranges::any_of(seen, is_open); ++tries) {
        std::this_thread::sleep_for(between_looks);
        look_once(server, locks, seen);
    }
    std::vector<lock_state> result;
    result.reserve(locks.size());
    for (std::size_t i = 0; i < locks.size(); ++i) {
        result.push_back(seen[i] ? std::move(*seen[i]) : moving_lock(locks[i]));
    }
    return result;
}

std::vector<lock_state> look_at(const client& server, const std::vector<lock_ref>& locks) {
    std::vector<lock_state> result = look_at_keys(server, locks);
    add_cards(server, result);
    return result;
}

lock_state look_at(const client& server, const lock_ref& lock) {
    lock_state seen = std::move(look_at(server, std::vector{lock}).front());
    if (seen.is_no_lock) {
        const std::string looks = seen.looks_like.empty() ? "" : " looks like " + seen.looks_like;
        throw error(errc::wrong_type, server.server() + ": " + lock.keys.lock() + looks);
    }
    if (seen.is_moving) throw error(errc::moving, server.server() + ": " + lock.keys.lock());
    return seen;
}

lock_state look_at(server_set& servers, const lock_ref& lock) {
    return merge(servers.ask_each([&lock](const client& server) { return look_at(server, lock); }));
}

}  // namespace holdfast::cli
