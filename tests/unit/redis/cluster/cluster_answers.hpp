// Builds answers of Cluster members from parts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "redis/url/server_url.hpp"
#include "unit/redis/session/recorded_command.hpp"

namespace holdfast::redis::testing {

struct node_facts {
    std::string role = "master";
    std::string health = "online";
    std::string ip = "";  // as its endpoint
    int tls_port = 0;     // none
};

/// One member, in CLUSTER SHARDS.
inline std::string node_answer(const server_address& address, const node_facts& facts = {}) {
    const auto number = [](int value) { return ":" + std::to_string(value) + "\r\n"; };
    return (facts.tls_port == 0 ? "%6\r\n" : "%7\r\n" + bulk("tls-port") + number(facts.tls_port)) + bulk("id") +
           bulk("0123456789012345678901234567890123456789") + bulk("port") + number(address.port) + bulk("ip") +
           bulk(facts.ip.empty() ? address.host : facts.ip) + bulk("endpoint") + bulk(address.host) + bulk("role") +
           bulk(facts.role) + bulk("health") + bulk(facts.health);
}

using slot_ranges = std::vector<std::pair<int, int>>;

inline std::string shard_answer(const slot_ranges& slots, const std::vector<std::string>& nodes) {
    std::string out = "%2\r\n" + bulk("slots") + "*" + std::to_string(slots.size() * 2) + "\r\n";
    for (const auto& [first, last] : slots) {
        out += ":" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n";
    }
    out += bulk("nodes") + "*" + std::to_string(nodes.size()) + "\r\n";
    for (const std::string& node : nodes) out += node;
    return out;
}

inline std::string shards_answer(const std::vector<std::string>& shards) {
    std::string out = "*" + std::to_string(shards.size()) + "\r\n";
    for (const std::string& shard : shards) out += shard;
    return out;
}

}  // namespace holdfast::redis::testing
