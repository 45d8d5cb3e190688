#include "cli/inspect/holder.hpp"

#include "api/runtime/client_access.hpp"

#include "api/operations/blocking_command.hpp"
#include "cli/inspect/lock_merge.hpp"
#include "cli/inspect/person.hpp"
#include "cli/terminal/text.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/kind.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

standing to_standing(wire::shape held) {
    if (held == wire::shape::nothing) return standing::none;
    return held == wire::shape::reading ? standing::reads : standing::holds_alone;
}

}  // namespace

// The key does not say its kind before it is read: a request of the wrong kind is answered WRONGTYPE.
standing standing_of(const client& server, const lock_ref& lock, const std::string& hold_id) {
    failure why{errc::protocol_error, server.server()};
    for (const wire::kind* const kind : wire::all_kinds()) {
        const api::question standing_request = [&](redis::command& out) {
            kind->write_standing(out, lock.keys, hold_id);
        };
        std::optional<wire::shape> held;
        api::ask_server(*api::core_of(server), {&standing_request, 1},
                        [&](std::size_t, const redis::reply_view& reply) {
                            if (reply.is_error()) {
                                why = redis::classify_error(reply.text(), server.server());
                            } else {
                                held = kind->read_standing(reply, hold_id);
                            }
                        });
        if (held) return to_standing(*held);
        if (why.code != errc::wrong_type) break;
    }
    throw error(why.code, why.detail);
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
