// The first commands on a new link, and what the client learns from the answers.
//
// There are two bursts. First: HELLO 3 (with user, password and name), SELECT, CLIENT INFO, INFO server. Second, if the
// first succeeds: CLIENT KILL of the previous link, so that no old copy of a request can run after the next request;
// CLUSTER SHARDS, to a primary that may not survive SPUBLISH; the subscriptions. Then the link takes other commands.
//
// Only HELLO and SELECT must succeed. An ACL may forbid the rest, which costs precision, not safety.
//
// Without HELLO the first burst is AUTH, CLIENT SETNAME, SELECT, CLIENT INFO, INFO server, INFO replication, and the
// link speaks RESP2: by the URL, or after the server has refused HELLO 3. A link that only listens asks no more than it
// needs to be recognized.
//
// Sans-I/O.
#pragma once

#include "base/errc_table.hpp"
#include "redis/resp/resp_reply.hpp"
#include "redis/url/server_url.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// What the server says about itself and this link.
struct server_facts {
    std::string version;
    std::string role;
    std::string mode;
    std::string run_id;  // empty: not allowed to ask
    std::int64_t client_id = 0;
    std::string client_address;  // as the server sees it; empty: not allowed to ask
    // Lower bound for how long it has been running; none: not allowed to ask.
    std::optional<std::chrono::milliseconds> up_at_least = std::nullopt;
    // Since 1970, when it answered; none: not allowed to ask.
    std::optional<std::chrono::microseconds> clock = std::nullopt;
    // False: a member of a Cluster that does not survive SPUBLISH; see is_in_a_shard().
    bool in_a_shard = true;
    unsigned resp = 3;  // which protocol the link speaks: 2 or 3
};

// What INFO replication tells.
struct replication_facts {
    bool is_replica = false;
    std::string history;  // changes when the server was a replica meanwhile
};
replication_facts read_replication(const reply_view& reply);

// Lower bound for the time that a server has run, from its `uptime_in_seconds`.
std::chrono::milliseconds least_uptime(std::chrono::seconds told) noexcept;

// Lower bound for how long the server has kept its data, for a client whose last link was to the run `last_run_id`
// (empty: there was none). Zero for another run, and if the server does not say.
std::chrono::milliseconds known_for(const server_facts& facts, std::string_view last_run_id);

namespace greeting {

std::string hello(const server_settings& settings);
std::string auth(const std::string& user, const secret& password);
std::string select(const server_settings& settings);

// Reads one answer into `facts`, or returns why the link cannot be used.
using reader = std::optional<failure>(const reply_view& reply, const server_settings& settings, server_facts& facts);
// Also refuses a server that does not suit the purpose of the link: a replica, a Cluster before 7.0 (it has no sharded
// channels), a Cluster where the URL says a single server, or the other way round.
reader read_hello;
reader read_auth;
reader read_select;
reader read_client_info;
reader read_server_info;
reader read_replication_info;
reader read_shards;

// The server does not know HELLO 3, or the user may not send it: RESP2 may do.
bool lacks_hello(const reply_view& reply, const server_settings& settings);

// The first burst without HELLO, in order.
struct question {
    std::string command;
    reader* read;  // null: nothing is to be learnt from the answer
};
std::vector<question> in_resp2(const server_settings& settings);

// Why a server refuses a login. No server's text may show the password: one that does not know a command shows its
// arguments.
failure refused_login(std::string_view text, const server_settings& settings, const secret& password);

// The command that ends the previous link, if it can be identified for certain: same run of the server, and an address
// to match besides the id. Empty if not.
std::string kill_previous(const server_facts& previous, const server_facts& present);

// The command that asks whether the member is in a shard. Empty for servers for which that is known.
std::string shards(const server_settings& settings, const server_facts& facts);

}  // namespace greeting
}  // namespace holdfast::redis
