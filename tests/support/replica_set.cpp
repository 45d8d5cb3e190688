#include "support/replica_set.hpp"

#include <stdexcept>
#include <string>

#include "support/eventually.hpp"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds replica_start_limit{60};

}  // namespace

server_options replicating(server_options options, const redis_server* primary) {
    options.config.insert(options.config.end(), {"repl-diskless-sync yes", "repl-diskless-sync-delay 0",
                                                 "repl-ping-replica-period 1", "repl-timeout 10"});
    if (primary != nullptr) options.config.push_back("replicaof 127.0.0.1 " + std::to_string(primary->port()));
    return options;
}

replica_set::replica_set(std::size_t replicas_wanted, const server_options& each)
    : primary(replicating(each, nullptr)) {
    for (std::size_t i = 0; i < replicas_wanted; ++i) replicas.emplace_back(replicating(each, &primary));
    if (!has_caught_up()) throw std::runtime_error{"the replicas do not follow:\n" + primary.log_tail()};
}

void replica_set::pause_replicas() {
    for (redis_server& each : replicas) each.pause();
}

void replica_set::resume_replicas() {
    for (redis_server& each : replicas) each.resume();
}

bool replica_set::has_caught_up() {
    const auto all = static_cast<std::int64_t>(replicas.size());
    return eventually(
        [&] {
            // WAIT covers the writes of its own link.
            primary.call({"SET", "caught up", "1", "PX", "1"});
            return primary.call({"WAIT", std::to_string(all), "100"}).integer == all;
        },
        replica_start_limit);
}

}  // namespace holdfast::testing
