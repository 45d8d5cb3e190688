#include <holdfast/election.hpp>

#include "api/operations/blocking_command.hpp"
#include "api/runtime/client_access.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/mutex/watch.hpp"

namespace holdfast {
namespace {

const election_options& checked(const election_options& options) {
    if (options.keys == keys::raw || options.keep != milliseconds(0) || options.passes != 0)
        throw error(errc::bad_option,
                    "an election cannot be used with keys::raw, keep and passes: its leader has a value");
    return options;
}

}  // namespace

election::election(const client& client, const std::string& name, const election_options& options)
    : where_(&client), name_(name), prefix_(options.prefix), mutex_(client, name, checked(options)) {}

watching election::observe(std::function<void(const std::optional<holdfast::leader>&)> callback,
                           std::function<void(const refusal&)> on_trouble) const {
    return watch(*where_, name_, [told = std::move(callback)](const sight& seen) { told(leader_in(seen)); },
                 {.prefix = prefix_, .on_trouble = std::move(on_trouble)});
}

watch_stream election::observe_by_stream() const {
    return watch_stream(*where_, name_, prefix_);
}

std::optional<leader> election::leader() const {
    const auto where = api::core_of(*where_);
    if (where->servers() > 1) throw error(errc::bad_option, "leader() asks one server; here are several");
    const wire::lock_keys keys = wire::make_keys(wire::lock_name(name_), wire::key_naming::tagged, prefix_);
    const api::question look = [&](redis::command& out) {
        wire::write_watch(out, keys, {.id = "-", .channel = "", .lasts = std::chrono::milliseconds(1)});
    };
    std::optional<wire::watch_answer> seen;
    failure why{errc::protocol_error, where->display() + ": a lock script was answered with something else"};
    api::ask_server(*where, {&look, 1}, [&](std::size_t, const redis::reply_view& reply) {
        if (reply.is_error())
            why = redis::classify_error(reply.text(), where->display());
        else
            seen = wire::read_watch(reply);
    });
    if (!seen) throw error(why.code, why.detail);
    if (seen->is_free()) return std::nullopt;
    return holdfast::leader{seen->note, seen->token, seen->holder};
}

}  // namespace holdfast
