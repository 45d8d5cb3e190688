#include <holdfast/election.hpp>

#include "api/operations/blocking_command.hpp"
#include "api/runtime/client_access.hpp"
#include "engine/quorum/majority_watch.hpp"
#include "redis/resp/error_reply.hpp"
#include "wire/mutex/watch.hpp"

#include <thread>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

constexpr int most_looks = 20;
constexpr milliseconds between_looks{5};

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
    const wire::lock_keys keys = wire::make_keys(wire::lock_name(name_), wire::key_naming::tagged, prefix_);
    const std::vector<api::question> looks(where->servers(), [&](redis::command& out) {
        wire::write_watch(out, keys, {.id = "-", .channel = "", .lasts = milliseconds(1)});
    });
    // Between two leaders a majority may say nothing in common for a moment.
    for (int tries = 0; tries < most_looks; ++tries) {
        if (tries > 0) std::this_thread::sleep_for(between_looks);
        engine::majority_sight seen(where->servers());
        for (std::size_t i = 0; i < where->servers(); ++i) seen.is_silent(i);
        failure why{errc::protocol_error, where->display() + ": a lock script was answered with something else"};
        const auto silent = api::ask_each_server(*where, looks, [&](std::size_t i, const redis::reply_view& reply) {
            if (auto answer = reply.is_error() ? std::nullopt : wire::read_watch(reply))
                seen.said(i, std::move(*answer));
            else if (reply.is_error())
                why = redis::classify_error(reply.text(), where->display());
        });
        if (seen.is_out_of_reach()) throw silent ? error(silent->code, silent->detail) : error(why.code, why.detail);
        const auto common = seen.common();
        if (common && common->is_free()) return std::nullopt;
        if (common) return holdfast::leader{common->note, common->token, common->holder};
    }
    return std::nullopt;
}

}  // namespace holdfast
