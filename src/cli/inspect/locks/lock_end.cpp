#include "cli/inspect/locks/lock_end.hpp"

#include "cli/inspect/locks/lock_look.hpp"
#include "cli/inspect/servers/ask.hpp"
#include "cli/terminal/system.hpp"
#include "wire/hold_id.hpp"
#include "wire/kind.hpp"
#include "wire/push.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto recall_interval = 50ms;

// The token names the grant. A mutex compares it with the fence, the token of the last grant. Another program's hold
// has no token: the fence as it was seen names it, or any number if there is no fence.
std::uint64_t token_of(const lock_state& lock, const lock_holder& holder) {
    return holder.token.value_or(lock.fence.value_or(1));
}

wire::hold_answer end_grant(const client& server, const lock_state& lock, const lock_holder& holder) {
    const wire::lock_terms terms{.keys = lock.where.keys,
                                 .kind = lock.kind.value_or(wire::lock_kind::mutex),
                                 .fence_retention = client_options{}.fence_retention};
    const api::question release = [&](redis::command& out) {
        wire::write(out, terms, wire::release_request{.id = holder.id, .token = token_of(lock, holder)});
    };
    std::optional<wire::hold_answer> told;
    const auto why =
        ask_script(server, release, [&](const redis::reply_view& reply) { told = wire::read_release(reply); });
    if (why) throw error(why->code, why->detail);
    if (!told) throw error(errc::protocol_error, server.server());
    told->holder = {};  // it points into a buffer that is gone
    return *told;
}

// Publishes on the holder's wake-up channel. Returns the number of subscribers.
std::int64_t tell_holder(wire::push_kind what, const client& server, const lock_state& lock,
                         const lock_holder& holder) {
    const std::string_view client = wire::client_of(holder.id);
    const bool sharded = is_cluster(server);
    const std::string channel = sharded ? wire::channel_of(lock.where.keys, client) : wire::channel_of(client);
    // 0 means any grant of this id: only the fence knows a mutex's token, and it may expire before a long hold ends.
    const std::string text = wire::push_text(what, {.id = holder.id, .token = holder.token.value_or(0)});
    return ask(server, {sharded ? "SPUBLISH" : "PUBLISH", channel, text}).integer.value_or(0);
}

// False: nobody listens, or the push could not be sent.
bool recall(const client& server, const lock_state& lock, const lock_holder& holder) {
    if (holder.is_foreign) return false;
    try {
        return tell_holder(wire::push_kind::recall, server, lock, holder) > 0;
    } catch (const error&) {
        return false;  // the caller revokes it then, and reports what is wrong
    }
}

revocation revoke(const client& server, const lock_state& lock, const lock_holder& holder) {
    if (holder.is_foreign && lock.kind && !wire::kind_of(*lock.kind).can_end_foreign_holds()) {
        return revocation::impossible;
    }
    if (end_grant(server, lock, holder).what != wire::hold_answer::verdict::done) return revocation::too_late;
    if (holder.is_foreign) return revocation::done;
    try {
        tell_holder(wire::push_kind::revoked, server, lock, holder);
    } catch (const error& why) {
        // The grant has ended. The holder learns it at its next renewal.
        tell(std::string("the holder could not be told: ") + why.what());
    }
    return revocation::done;
}

// The token of a mutex is known by its fencing mark only, which may end between two looks.
bool has_grant(const lock_state& lock, const lock_holder& meant) {
    return std::ranges::any_of(lock.holders, [&](const lock_holder& one) {
        return one.id == meant.id && (!one.token || !meant.token || one.token == meant.token);
    });
}

// Asks every holder to stop, and waits until each has released the lock, or the grace is over. Returns the ids of
// those who have. It does not wait for a holder that does not listen.
std::set<std::string> recall_holders(server_set& servers, const sightings& seen, milliseconds grace) {
    struct grant {
        std::size_t server;
        const lock_holder* holder;
    };
    if (grace <= 0ms) return {};
    std::set<std::string> asked;
    std::vector<grant> open;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!seen[i]) continue;
        for (const lock_holder& holder : seen[i]->holders) {
            open.push_back({i, &holder});
            if (recall(servers[i], *seen[i], holder)) asked.insert(holder.id);
        }
    }
    std::erase_if(open, [&](const grant& one) { return !asked.contains(one.holder->id); });
    const auto give_up = std::chrono::steady_clock::now() + grace;
    while (!open.empty() && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(recall_interval);
        std::erase_if(open, [&](const grant& one) {
            try {
                return !has_grant(look_at(servers[one.server], seen[one.server]->where), *one.holder);
            } catch (const error&) {
                return false;  // revoke() reports what is wrong
            }
        });
    }
    for (const grant& one : open) asked.erase(one.holder->id);
    return asked;
}

outcome end_holder(const server_set& servers, const sightings& seen, const std::string& id) {
    outcome result;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (!seen[i]) {
            ++result.left;  // it did not answer
            continue;
        }
        const auto holder = std::ranges::find(seen[i]->holders, id, &lock_holder::id);
        if (holder == seen[i]->holders.end()) continue;
        try {
            const revocation here = revoke(servers[i], *seen[i], *holder);
            if (here == revocation::done) ++result.ended;
            if (here == revocation::impossible) ++result.left;
            if (result.what != revocation::done) result.what = here;
        } catch (const error& why) {
            if (servers.size() == 1) throw;
            ++result.left;
            result.trouble = why.what();
        }
    }
    return result;
}

}  // namespace

sightings look_at_each(server_set& servers, const lock_ref& where, const std::string& only) {
    return servers.ask_each([&](const client& server) {
        lock_state lock = look_at(server, where);
        if (!only.empty()) std::erase_if(lock.holders, [&only](const lock_holder& h) { return h.id != only; });
        return lock;
    });
}

std::string describe(const outcome& one, const server_set& servers) {
    if (one.gave_back && one.ended == 0) return "stopped, and released it";
    // In the order of `revocation`.
    constexpr std::array outcome_texts{"released", "already over",
                                       "cannot be ended: another program's part in a read-write lock ends by itself"};
    std::string text = outcome_texts[static_cast<std::size_t>(one.what)];
    if (servers.size() > 1 && one.ended > 0) text += fmt::format(" on {} of {} servers", one.ended, servers.size());
    if (one.what == revocation::done && !one.is_over(servers)) text += "; a majority may have it still";
    return one.trouble.empty() ? text : text + ": " + one.trouble;
}

std::vector<outcome> end_holds(server_set& servers, const sightings& seen, const lock_state& lock, milliseconds grace) {
    const std::set<std::string> gave_back = recall_holders(servers, seen, grace);
    std::vector<outcome> outcomes;
    for (const lock_holder& holder : lock.holders) {
        // Also of one who gave it back: it may not have reached every server.
        outcomes.push_back(end_holder(servers, seen, holder.id));
        outcomes.back().gave_back = gave_back.contains(holder.id);
    }
    return outcomes;
}

}  // namespace holdfast::cli
