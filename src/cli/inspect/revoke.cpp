#include "cli/inspect/revoke.hpp"

#include "api/operations/blocking_command.hpp"
#include "api/runtime/client_access.hpp"
#include "cli/inspect/ask.hpp"
#include "cli/inspect/cluster_members.hpp"
#include "cli/terminal/system.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/hold_id.hpp"
#include "wire/requests.hpp"

#include <fmt/format.h>

#include <optional>

namespace holdfast::cli {
namespace {

// What names the grant: its token. A mutex compares it with the mark of the last grant; another program's hold
// has none of its own, and is named by the mark as it stood, or anything if there was none.
std::uint64_t token_of(const lock_state& lock, const lock_holder& holder) {
    return holder.token.value_or(lock.fence.value_or(1));
}

wire::hold_answer end_grant(const client& server, const lock_state& lock, const lock_holder& holder) {
    const wire::lock_terms terms{.keys = lock.where.keys,
                                 .kind = lock.is_shared_kind ? wire::lock_kind::read_write : wire::lock_kind::mutex,
                                 .prefer = wire::preference::arrival,
                                 .fence_retention = client_options{}.fence_retention};
    const api::question release = [&](redis::command& out) {
        wire::write(out, terms, wire::release_request{.id = holder.id, .token = token_of(lock, holder)});
    };
    std::optional<wire::hold_answer> told;
    failure why{errc::protocol_error, server.server()};
    api::ask_server(*api::core_of(server), {&release, 1}, [&](std::size_t, const redis::reply_view& reply) {
        if (reply.is_error()) {
            why = redis::classify_error(reply.text(), server.server());
        } else {
            told = wire::read_release(reply);
        }
    });
    if (!told) throw error(why.code, why.detail);
    told->holder = {};  // it looks into a buffer that is gone
    return *told;
}

// Says it on the holder's wake-up channel. Returns how many listen there.
std::int64_t tell_holder(const char* verb, const client& server, const lock_state& lock, const lock_holder& holder) {
    const std::string_view client = wire::client_of(holder.id);
    const bool sharded = is_cluster(server);
    const std::string channel = sharded ? wire::channel_of(lock.where.keys, client) : "hf:wake:" + std::string(client);
    // 0, any grant of this id: the mark, which is all that knows the token, is gone before a hold that lasts for long.
    const std::string text = fmt::format("{} {} {}", verb, holder.id, holder.token.value_or(0));
    return ask(server, {sharded ? "SPUBLISH" : "PUBLISH", channel, text}).integer.value_or(0);
}

}  // namespace

bool recall(const client& server, const lock_state& lock, const lock_holder& holder) {
    if (holder.is_foreign) return false;
    try {
        return tell_holder("recall", server, lock, holder) > 0;
    } catch (const error&) {
        return false;  // it is revoked all the same, and what is wrong is said then
    }
}

revocation revoke(const client& server, const lock_state& lock, const lock_holder& holder) {
    if (lock.is_shared_kind && holder.is_foreign) return revocation::impossible;
    if (end_grant(server, lock, holder).what != wire::hold_answer::verdict::done) return revocation::too_late;
    if (holder.is_foreign) return revocation::done;
    try {
        tell_holder("revoked", server, lock, holder);
    } catch (const error& why) {
        // It is done all the same, and the holder learns it at its next renewal.
        tell(std::string("the holder could not be told: ") + why.what());
    }
    return revocation::done;
}

}  // namespace holdfast::cli
