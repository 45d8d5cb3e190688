// What a client says first on a new link, and what it learns from the answers.
//
// Two bursts. The first: HELLO 3 (with user, password and name), SELECT, CLIENT INFO, INFO server. The
// second, when the first went well: CLIENT KILL of our previous link, so that no old copy of a request can
// still run after what we send next; CLUSTER SHARDS, to a primary that may not survive SPUBLISH; then the
// subscriptions. Only then does the link take other commands.
//
// Of all this only HELLO and SELECT must succeed: an ACL may forbid the rest, which costs precision, not safety.
//
// Sans-I/O.
#pragma once

#include "base/failure.hpp"
#include "redis/resp/resp_reply.hpp"
#include "redis/url/server_url.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

// What the server told about itself and about this link.
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
};

// Lower bound for how long a server has been running that says `uptime_in_seconds`.
std::chrono::milliseconds least_uptime(std::chrono::seconds told) noexcept;

// Lower bound for how long the server has kept all that it was told, for a client whose last link was to the run
// `last_run_id` (empty: there was none). Zero for another run than that one, and where the server does not say.
std::chrono::milliseconds known_for(const server_facts& facts, std::string_view last_run_id);

namespace greeting {

std::string hello(const server_settings& settings);
std::string select(const server_settings& settings);

// Each reads one answer into `facts`, or says why the link cannot be used.
std::optional<failure> read_hello(const reply_view& reply, const server_settings& settings, server_facts& facts);
// Why a server that is what it says cannot be used for what the link is for: a replica, a Cluster before 7.0 (it has no
// sharded channels), a Cluster where the URL says a single server, or the other way round.
std::optional<failure> refuse_use(const server_settings& settings, const server_facts& facts);
std::optional<failure> read_select(const reply_view& reply, const server_settings& settings);
void read_client_info(const reply_view& reply, server_facts& facts);
void read_server_info(const reply_view& reply, server_facts& facts);

// The command that ends our previous link, if that can be told apart from everybody else's for certain: same
// run of the server, an address to match beside the id. Empty if not.
std::string kill_previous(const server_facts& previous, const server_facts& present);

// The question whether the member is in a shard. Empty for servers of which that is known.
std::string shards(const server_settings& settings, const server_facts& facts);
void read_shards(const reply_view& reply, const server_settings& settings, server_facts& facts);

}  // namespace greeting
}  // namespace holdfast::redis
