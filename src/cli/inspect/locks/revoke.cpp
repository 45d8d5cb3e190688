#include "cli/inspect/locks/revoke.hpp"

#include "cli/inspect/servers/ask.hpp"
#include "cli/inspect/servers/server_set.hpp"
#include "cli/terminal/system.hpp"
#include "wire/hold_id.hpp"
#include "wire/kind.hpp"
#include "wire/push.hpp"

#include <optional>

namespace holdfast::cli {
namespace {

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

}  // namespace

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

}  // namespace holdfast::cli
