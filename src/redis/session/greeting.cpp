#include "redis/session/greeting.hpp"

#include "redis/cluster/slot_map.hpp"
#include "redis/resp/characters.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <charconv>
#include <compare>
#include <string_view>
#include <vector>

namespace holdfast::redis {
namespace {

// The value of `name` in lines or words of the form name<separator>value.
std::string find_field(std::string_view text, std::string_view name) {
    std::size_t at = 0;
    while ((at = text.find(name, at)) != std::string_view::npos) {
        const bool at_start = at == 0 || text[at - 1] == '\n' || text[at - 1] == ' ';
        at += name.size();
        if (!at_start) continue;
        return std::string(text.substr(at, text.find_first_of(" \r\n", at) - at));
    }
    return {};
}

}  // namespace

replication_facts read_replication(const reply_view& reply) {
    return {find_field(reply.text(), "role:") == "slave", find_field(reply.text(), "master_replid:")};
}

// The number is the difference of two wall clock readings (server.unixtime - server.stat_starttime), each truncated to
// seconds: a server that started at .9 says "1" a tenth of a second later. The reading at the start is by time(), which
// may be late by a kernel tick, at most 10 ms. If the clock was set back since, the difference is small or negative.
std::chrono::milliseconds least_uptime(std::chrono::seconds told) noexcept {
    constexpr std::chrono::milliseconds error{1010};
    return std::max<std::chrono::milliseconds>(told - error, std::chrono::milliseconds(0));
}

std::chrono::milliseconds known_for(const server_facts& facts, std::string_view last_run_id) {
    const bool is_another = !last_run_id.empty() && last_run_id != facts.run_id;
    return is_another ? std::chrono::milliseconds(0) : facts.up_at_least.value_or(std::chrono::milliseconds(0));
}

}  // namespace holdfast::redis

namespace holdfast::redis::greeting {
namespace {

struct version_number {
    int major = 0;
    int minor = 0;
    auto operator<=>(const version_number&) const = default;
};

constexpr version_number oldest{6, 2};
constexpr version_number oldest_cluster{7, 0};
constexpr version_number oldest_with_shard_ids{7, 2};  // all of Valkey is later

version_number read_version(std::string_view text) {
    version_number read;
    const auto dot = text.find('.');
    std::from_chars(text.data(), text.data() + std::min(dot, text.size()), read.major);
    if (dot != std::string_view::npos) std::from_chars(text.data() + dot + 1, text.data() + text.size(), read.minor);
    return read;
}

void hide(std::string& text, std::string_view password) {
    if (password.empty()) return;
    for (auto at = text.find(password); at != std::string::npos; at = text.find(password, at + 3)) {
        text.replace(at, password.size(), "***");
    }
}

// Each proxy words it differently.
bool is_unknown_command(std::string_view text) {
    const std::string lower = to_lower(text);
    const auto says = [&](std::string_view words) { return lower.find(words) != std::string::npos; };
    return says("unknown command") || says("unsupported") || says("not support") || says("not allowed") ||
           says("invalid command");
}

std::optional<failure> refused_hello(std::string_view text, const server_settings& settings) {
    failure why = refused_login(text, settings, settings.password);
    if (is_unknown_command(text)) why.code = errc::too_old;
    if (why.code == errc::too_old) why.detail += "; say resp=2 in the URL instead of resp=3";
    return why;
}

// Garnet runs the steps of a script between those of others, unless it was started with --lua-transaction-mode, which
// it does not tell.
failure without_atomic_scripts(const server_settings& settings) {
    return {errc::unsupported,
            settings.display() + " is Garnet, whose scripts are not atomic; locks are scripts: use Redis or Valkey"};
}

// What a server does not tell is no reason to refuse it: without HELLO the user needs the right to INFO.
std::optional<failure> refuse_use(const server_settings& settings, const server_facts& facts) {
    const bool in_cluster = facts.mode == "cluster";
    const bool is_told = facts.resp == 3 || !facts.version.empty();
    if (is_told && read_version(facts.version) < oldest) {
        return failure{errc::too_old, settings.display() + " runs version " + facts.version};
    }
    if (settings.use == link_use::cluster) {
        if (!is_told) return std::nullopt;
        if (!in_cluster) {
            return failure{errc::bad_topology, settings.display() + " is not a member of a Cluster; use redis://"};
        }
        if (read_version(facts.version) < oldest_cluster) {
            return failure{errc::too_old,
                           settings.display() + " runs version " + facts.version + "; a Cluster must be 7.0 or later"};
        }
        return std::nullopt;  // a replica can be asked for the map
    }
    if (in_cluster && settings.use == link_use::server) {
        return failure{errc::bad_topology, settings.display() + " is a member of a Cluster; use redis+cluster://"};
    }
    if (facts.role == "replica") return failure{errc::read_only, settings.display() + " is a replica"};
    return std::nullopt;
}

}  // namespace

std::string hello(const server_settings& settings) {
    std::vector<argument> words{"HELLO", "3"};
    if (settings.has_login()) {
        words.insert(words.end(), {"AUTH", settings.user.empty() ? "default" : std::string_view(settings.user),
                                   settings.password.reveal()});
    }
    if (!settings.client_name.empty()) words.insert(words.end(), {"SETNAME", settings.client_name});
    std::string out;
    append_command(out, words);
    return out;
}

std::string auth(const std::string& user, const secret& password) {
    return encoded_command({"AUTH", user.empty() ? std::string_view("default") : user, password.reveal()});
}

failure refused_login(std::string_view text, const server_settings& settings, const secret& password) {
    std::string shown(text.substr(0, text.find(", with args beginning with")));
    hide(shown, password.reveal());
    return classify_error(shown, settings.display());
}

std::string select(const server_settings& settings) {
    return encoded_command({"SELECT", std::to_string(settings.database)});
}

std::optional<failure> read_hello(const reply_view& reply, const server_settings& settings, server_facts& facts) {
    if (reply.is_error()) return refused_hello(reply.text(), settings);
    if (reply.type() != resp_type::map) {
        return failure{errc::too_old, settings.display() + ": HELLO 3 was not answered in RESP3"};
    }
    for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
        const std::string_view field = reply[i].text();
        const reply_view value = reply[i + 1];
        if (field == "garnet_version") return without_atomic_scripts(settings);
        if (field == "version") facts.version = value.text();
        if (field == "role") facts.role = value.text();
        if (field == "mode") facts.mode = value.text();
        if (field == "id") facts.client_id = value.to_integer().value_or(0);
    }
    return refuse_use(settings, facts);
}

// Any error that does not say something else: RESP2 shows whether the server is of use. A proxy that does not know
// HELLO may want an AUTH before it, though HELLO brings the login.
bool lacks_hello(const reply_view& reply, const server_settings& settings) {
    if (!reply.is_error() || reply.text().starts_with("ERR max number of clients")) return false;
    const errc code = classify_error(reply.text(), {}).code;
    return code == errc::server_error || code == errc::unsupported || code == errc::too_old ||
           reply.text().starts_with("NOPERM") || (code == errc::auth_required && settings.has_login());
}

std::vector<question> in_resp2(const server_settings& settings) {
    std::vector<question> all;
    if (settings.has_login()) all.push_back({auth(settings.user, settings.password), read_auth});
    if (!settings.client_name.empty()) {
        all.push_back({encoded_command({"CLIENT", "SETNAME", settings.client_name}), nullptr});
    }
    const bool only_listens = settings.use == link_use::wakes;
    if (settings.database != 0 && !only_listens) all.push_back({select(settings), read_select});
    all.push_back({encoded_command({"CLIENT", "INFO"}), read_client_info});
    all.push_back({encoded_command({"INFO", "server"}), read_server_info});
    if (!only_listens) all.push_back({encoded_command({"INFO", "replication"}), read_replication_info});
    return all;
}

std::optional<failure> read_auth(const reply_view& reply, const server_settings& settings, server_facts&) {
    if (!reply.is_error()) return std::nullopt;
    return refused_login(reply.text(), settings, settings.password);
}

std::optional<failure> read_select(const reply_view& reply, const server_settings& settings, server_facts&) {
    if (!reply.is_error()) return std::nullopt;
    failure why = classify_error(reply.text(), settings.display());
    if (why.code == errc::server_error) why.code = errc::no_such_database;
    return why;
}

std::optional<failure> read_client_info(const reply_view& reply, const server_settings&, server_facts& facts) {
    if (reply.is_error() || reply.is_aggregate()) return std::nullopt;
    facts.client_address = find_field(reply.text(), "addr=");
    if (facts.resp == 2) facts.client_id = number_in<std::int64_t>(find_field(reply.text(), "id=")).value_or(0);
    return std::nullopt;
}

std::optional<failure> read_server_info(const reply_view& reply, const server_settings& settings, server_facts& facts) {
    if (reply.is_error() || reply.is_aggregate()) return std::nullopt;
    if (!find_field(reply.text(), "garnet_version:").empty()) return without_atomic_scripts(settings);
    facts.run_id = find_field(reply.text(), "run_id:");
    const auto number = [&](const char* field) { return number_in<std::int64_t>(find_field(reply.text(), field)); };
    if (const auto up = number("uptime_in_seconds:")) facts.up_at_least = least_uptime(std::chrono::seconds(*up));
    if (const auto clock = number("server_time_usec:")) facts.clock = std::chrono::microseconds(*clock);
    if (facts.resp == 2) {
        facts.version = find_field(reply.text(), "redis_version:");
        facts.mode = find_field(reply.text(), "redis_mode:");
        if (facts.mode.empty()) facts.mode = find_field(reply.text(), "server_mode:");  // Valkey
    }
    return std::nullopt;
}

std::optional<failure> read_replication_info(const reply_view& reply, const server_settings& settings,
                                             server_facts& facts) {
    if (!reply.is_error() && !reply.is_aggregate()) {
        facts.role = read_replication(reply).is_replica ? "replica" : "master";
    }
    return refuse_use(settings, facts);
}

std::string kill_previous(const server_facts& previous, const server_facts& present) {
    const bool same_run = !previous.run_id.empty() && previous.run_id == present.run_id;
    if (!same_run || previous.client_address.empty() || previous.client_id == present.client_id) return {};
    return encoded_command(
        {"CLIENT", "KILL", "ID", std::to_string(previous.client_id), "ADDR", previous.client_address});
}

std::string shards(const server_settings& settings, const server_facts& facts) {
    if (settings.use != link_use::cluster || facts.role == "replica") return {};
    if (read_version(facts.version) < oldest_with_shard_ids) return {};
    return encoded_command({"CLUSTER", "SHARDS"});
}

std::optional<failure> read_shards(const reply_view& reply, const server_settings& settings, server_facts& facts) {
    facts.in_a_shard = is_in_a_shard({settings.host, settings.port}, reply, settings.kind);
    return std::nullopt;
}

}  // namespace holdfast::redis::greeting
