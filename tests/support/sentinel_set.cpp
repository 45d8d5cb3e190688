#include "support/sentinel_set.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "support/eventually.hpp"
#include "support/replica_set.hpp"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds sentinel_start_limit{60};
constexpr std::chrono::seconds sentinel_failover_limit{60};
// How long a server may be silent before the sentinels consider it down: during a failover, and otherwise.
constexpr std::chrono::milliseconds silent_for{500};
constexpr std::chrono::seconds silent_for_ever{600};

// A field of a reply that is a list of names and values; empty if there is none.
std::string field_of(const redis_reply& list, const std::string& name) {
    for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2) {
        if (list.elements[i].text == name) return list.elements[i + 1].text;
    }
    return {};
}

std::string in_milliseconds(std::chrono::milliseconds time) {
    return std::to_string(time.count());
}

server_options server(const sentinel_options& wanted, const std::vector<redis_server>& before) {
    server_options options{.requirepass = wanted.password, .config = wanted.config};
    if (!wanted.password.empty()) options.config.push_back("masterauth " + wanted.password);
    return replicating(std::move(options), before.empty() ? nullptr : &before.front());
}

server_options sentinel(const sentinel_options& wanted, int primary_port) {
    const std::string& name = wanted.name;
    server_options options{.requirepass = wanted.sentinel_password, .sentinel = true};
    options.config = {"sentinel monitor " + name + " 127.0.0.1 " + std::to_string(primary_port) + " 2",
                      "sentinel down-after-milliseconds " + name + " " + in_milliseconds(silent_for_ever),
                      "sentinel failover-timeout " + name + " 3000"};
    if (!wanted.password.empty()) options.config.push_back("sentinel auth-pass " + name + " " + wanted.password);
    if (!wanted.sentinel_password.empty()) {
        options.config.push_back("sentinel sentinel-pass " + wanted.sentinel_password);
    }
    return options;
}

}  // namespace

sentinel_set::sentinel_set(sentinel_options options) : options_{std::move(options)} {
    for (int i = 0; i < 3; ++i) servers.emplace_back(server(options_, servers));
    for (int i = 0; i < 3; ++i) sentinels.emplace_back(sentinel(options_, servers.front().port()));
    never_tilt();
    if (!is_settled()) throw std::runtime_error{"the sentinels do not find together:\n" + sentinels[0].log_tail()};
}

// A sentinel that did not run for two seconds does nothing for thirty (TILT mode). On a machine that stalls, a failover
// would take longer than the leases of the tests. Before Redis 7 that cannot be changed.
void sentinel_set::never_tilt() {
    for (redis_server& each : sentinels) {
        each.call({"SENTINEL", "DEBUG", "tilt-trigger", in_milliseconds(silent_for_ever)});
    }
}

std::string sentinel_set::url() const {
    std::string url = "redis+sentinel://";
    if (!options_.password.empty()) url += ":" + options_.password + "@";
    for (const redis_server& each : sentinels) {
        url += (&each == &sentinels.front() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each.port());
    }
    return url + "/" + options_.name;
}

redis_server& sentinel_set::server_at(const std::string& port) {
    const auto found =
        std::ranges::find_if(servers, [&](const redis_server& each) { return std::to_string(each.port()) == port; });
    if (found == servers.end()) throw std::runtime_error{"no server of ours has the port " + port};
    return *found;
}

redis_server& sentinel_set::primary_of(redis_server& sentinel) {
    const redis_reply told = sentinel.call({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", options_.name});
    return server_at(told.elements.size() == 2 ? told.elements[1].text : "(none)");
}

redis_server& sentinel_set::primary() {
    const auto running = std::ranges::find_if(sentinels, [](const redis_server& each) { return each.running(); });
    if (running == sentinels.end()) throw std::logic_error{"no sentinel runs"};
    return primary_of(*running);
}

bool sentinel_set::has_moved_from(const redis_server& former) {
    return eventually(
        [&] {
            return std::ranges::all_of(sentinels, [&](redis_server& each) {
                if (!each.running()) return true;
                redis_server& now = primary_of(each);
                return &now != &former && now.info("replication", "role") == "master";
            });
        },
        sentinel_failover_limit);
}

bool sentinel_set::has_replaced(const redis_server& gone) {
    take_for_down_after(silent_for);
    const bool replaced = has_moved_from(gone);
    take_for_down_after(silent_for_ever);
    return replaced;
}

void sentinel_set::take_for_down_after(std::chrono::milliseconds silence) {
    for (redis_server& each : sentinels) {
        if (!each.running()) continue;
        const redis_reply answer =
            each.call({"SENTINEL", "SET", options_.name, "down-after-milliseconds", in_milliseconds(silence)});
        if (answer.is_error()) throw std::runtime_error{"a sentinel does not take its setting: " + answer.text};
    }
}

bool sentinel_set::is_settled() {
    const auto count = [](const std::vector<redis_server>& all) {
        return std::ranges::count_if(all, [](const redis_server& each) { return each.running(); });
    };
    const auto knows_all = [&](redis_server& sentinel) {
        const redis_reply known = sentinel.call({"SENTINEL", "MASTER", options_.name});
        if (field_of(known, "num-other-sentinels") != std::to_string(count(sentinels) - 1)) return false;
        const redis_reply replicas = sentinel.call({"SENTINEL", "REPLICAS", options_.name});
        const auto fit = std::ranges::count_if(replicas.elements, [](const redis_reply& each) {
            return field_of(each, "flags") == "slave" && field_of(each, "master-link-status") == "ok";
        });
        return fit == count(servers) - 1;
    };
    return eventually(
        [&] {
            const std::string online = std::to_string(count(servers) - 1);
            if (primary().info("replication", "connected_slaves") != online) return false;
            return std::ranges::all_of(sentinels,
                                       [&](redis_server& each) { return !each.running() || knows_all(each); });
        },
        sentinel_start_limit);
}

bool sentinel_set::fail_over() {
    return eventually(
        [&] {
            return !sentinels.front().call({"SENTINEL", "FAILOVER", options_.name}).is_error();
        },
        sentinel_failover_limit);
}

}  // namespace holdfast::testing
