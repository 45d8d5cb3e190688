#include <holdfast/election.hpp>

#include "api/operations/blocking.hpp"
#include "api/operations/blocking_command.hpp"
#include "api/runtime/client_access.hpp"
#include "api/runtime/core.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/mutex/watch.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast {
namespace {

const election_options& checked(const election_options& options) {
    if (options.keys == keys::raw || options.keep != milliseconds(0) || options.passes != 0)
        throw error(errc::bad_option,
                    "an election cannot be used with keys::raw, keep and passes: its leader has a value");
    return options;
}

// The first that a majority says. A server that does not answer keeps nobody waiting.
sight sight_of_majority(const client& client, const api::core& where, const std::string& name,
                        const std::string& prefix) {
    where.check_not_forked();
    api::check_may_block();
    std::mutex mutex;
    std::condition_variable told;
    std::optional<sight> seen;
    std::optional<refusal> trouble;
    const auto tell = [&](auto& where_to, const auto& what) {
        const std::lock_guard guard(mutex);
        where_to = what;
        told.notify_one();
    };
    const watching eye = watch(client, name, [&](const sight& one) { tell(seen, one); },
                               {.prefix = prefix, .on_trouble = [&](const refusal& why) { tell(trouble, why); }});
    std::unique_lock guard(mutex);
    told.wait_for(guard, where.request_timeout(), [&] { return seen || trouble; });
    if (seen) return *seen;
    if (trouble) throw error(trouble->code, trouble->detail);
    throw error(errc::no_quorum, where.display());
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
    if (where->servers() > 1) return leader_in(sight_of_majority(*where_, *where, name_, prefix_));
    const wire::lock_keys keys = wire::make_keys(wire::lock_name(name_), wire::key_naming::tagged, prefix_);
    const api::question look = [&](redis::command& out) {
        wire::write_watch(out, keys, {.id = "-", .channel = "", .lasts = milliseconds(1)});
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
