#include "cli/inspect/lock_look.hpp"

#include "cli/inspect/ask.hpp"
#include "cli/inspect/lock_parse.hpp"
#include "cli/inspect/tool_script.hpp"
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

const redis::script& look_script() {
    static const tool_script script("look", R"lua(
-- look: a lock of whatever kind as it stands, in one instant. Reads only.
-- KEYS  1 lock  2 queue  3 waiters  4 fence  5 leases  6 grants
-- Returns  {server time us, type of the lock key, its ms left, its value or fields, queue with tickets, waiters,
--          fence, leases with deadlines, grants}; what is not there, or of another type, is an empty list
local function type_of(key) return redis.call('TYPE', key).ok end
local function read(key, type, ...)
    if type_of(key) ~= type then return {} end
    return redis.call(...)
end
local clock = redis.call('TIME')
local kind = type_of(KEYS[1])
local value = {}
if kind == 'string' then value = {redis.call('GET', KEYS[1])} end
if kind == 'hash' then value = redis.call('HGETALL', KEYS[1]) end
return {string.format('%.0f', clock[1] * 1000000 + clock[2]), kind, redis.call('PTTL', KEYS[1]), value,
    read(KEYS[2], 'zset', 'ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
    read(KEYS[3], 'hash', 'HGETALL', KEYS[3]),
    read(KEYS[4], 'string', 'GET', KEYS[4]),
    read(KEYS[5], 'zset', 'ZRANGE', KEYS[5], 0, -1, 'WITHSCORES'),
    read(KEYS[6], 'hash', 'HGETALL', KEYS[6])}
)lua");
    return script.source();
}

question look_question(const lock_ref& lock) {
    return {{"6", lock.keys.lock(), lock.keys.queue(), lock.keys.waiters(), lock.keys.fence(), lock.keys.leases(),
             lock.keys.grants()},
            &look_script(),
            question::moving::told};
}

bool is_moving(const answer& told) {
    return told.is_error && redis::classify_error(told.text, "").code == errc::moving;
}

// Asks those again that were moving, for a while.
std::vector<answer> ask_patiently(const client& server, const std::vector<question>& questions) {
    std::vector<answer> answers = ask_all(server, questions);
    for (int tries = 0; tries < most_looks && std::ranges::any_of(answers, is_moving); ++tries) {
        std::this_thread::sleep_for(between_looks);
        std::vector<std::size_t> which;
        std::vector<question> again;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (!is_moving(answers[i])) continue;
            which.push_back(i);
            again.push_back(questions[i]);
        }
        std::vector<answer> later = ask_all(server, again);
        for (std::size_t i = 0; i < which.size(); ++i) answers[which[i]] = std::move(later[i]);
    }
    return answers;
}

lock_state moving_lock(const lock_ref& where) {
    lock_state lock(where);
    lock.is_moving = true;
    lock.server_time = std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
    return lock;
}

using cards = std::map<std::string, std::optional<client_facts>, std::less<>>;

template <typename Function>
void for_each_party(std::vector<lock_state>& locks, const Function& function) {
    for (lock_state& lock : locks) {
        for (lock_holder& holder : lock.holders) function(holder);
        for (lock_waiter& waiter : lock.waiters) function(waiter);
    }
}

// A card that may not be read costs its text, no more; nor does one whose member of a Cluster is away.
std::optional<client_facts> facts_of(const std::optional<answer>& told) {
    if (!told || told->is_error || told->items.size() != 4 || told->items[0].is_null) return std::nullopt;
    const auto field = [&told](std::size_t i) { return told->items[i].text; };
    return client_facts{field(0), field(1), field(2), field(3)};
}

}  // namespace

void add_cards(const client& server, std::vector<lock_state>& locks) {
    cards known;
    for_each_party(locks, [&known](const auto& party) {
        if (const std::string_view client = wire::client_of(party.id); !client.empty())
            known.emplace(client, std::nullopt);
    });
    std::vector<question> questions;
    for (const auto& [client, facts] : known) {
        questions.push_back({{"HMGET", "hf:client:" + client, "host", "pid", "program", "user"}});
    }
    const auto answers = ask_what_can_be(server, questions);
    std::size_t i = 0;
    for (auto& [client, facts] : known) facts = facts_of(answers[i++]);
    for_each_party(locks, [&known](auto& party) {
        if (const auto found = known.find(wire::client_of(party.id)); found != known.end())
            party.client = found->second;
    });
}

std::vector<lock_state> look_at_keys(const client& server, const std::vector<lock_ref>& locks) {
    std::vector<question> questions;
    questions.reserve(locks.size());
    for (const lock_ref& lock : locks) questions.push_back(look_question(lock));
    const std::vector<answer> answers = ask_patiently(server, questions);
    std::vector<lock_state> result;
    result.reserve(locks.size());
    for (std::size_t i = 0; i < locks.size(); ++i) {
        if (is_moving(answers[i])) {
            result.push_back(moving_lock(locks[i]));
            continue;
        }
        if (answers[i].is_error) {
            const failure why = redis::classify_error(answers[i].text, server.server());
            throw error(why.code, why.detail);
        }
        result.push_back(parse_lock(locks[i], answers[i]));
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

}  // namespace holdfast::cli
