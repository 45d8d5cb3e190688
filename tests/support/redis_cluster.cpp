#include "support/redis_cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "redis/slots/hash_slot.hpp"
#include "support/eventually.hpp"

namespace holdfast::testing {
namespace {

constexpr std::chrono::seconds start_limit{60};
// Members hear of each other within half of this time, and a member that is silent for longer counts as failed.
constexpr std::chrono::milliseconds soon{1500};
constexpr std::chrono::milliseconds while_voting{5000};
// However busy the machine is.
constexpr std::chrono::milliseconds practically_never{60'000};
constexpr std::chrono::seconds failover_limit{60};
// Redis gives up a manual failover after five seconds.
constexpr std::chrono::seconds by_hand_limit{6};
constexpr int most_tries_by_hand = 10;

redis_reply must(redis_server& member, const std::vector<std::string>& arguments) {
    redis_reply reply = member.call(arguments);
    if (reply.is_error()) throw std::runtime_error{arguments.at(0) + " " + arguments.at(1) + ": " + reply.text};
    return reply;
}

std::string slot_text(const std::string& key) {
    return std::to_string(static_cast<unsigned>(redis::slot_of(key)));
}

// The port of the slot's owner according to that member; 0 if it has none.
std::int64_t owner_port(redis_server& member, const std::string& key) {
    const auto slot = static_cast<std::int64_t>(redis::slot_of(key));
    for (const redis_reply& range : member.call({"CLUSTER", "SLOTS"}).elements) {
        const bool has = range.elements.at(0).integer <= slot && slot <= range.elements.at(1).integer;
        if (has) return range.elements.at(2).elements.at(1).integer;
    }
    return 0;
}

template <typename Port>
std::string url_of(std::string url, const std::vector<redis_server>& members, Port port_of) {
    url += url.ends_with('/') ? "" : "@";
    for (const redis_server& each : members) {
        url += (&each == &members.front() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port_of(each));
    }
    return url;
}

bool says(redis_server& member, const std::string& fact) {
    return member.call({"CLUSTER", "INFO"}).text.find(fact) != std::string::npos;
}

std::string epoch_of(redis_server& member) {
    const std::string said = member.call({"CLUSTER", "INFO"}).text;
    const std::size_t at = said.find("cluster_current_epoch:");
    return said.substr(at, said.find('\r', at) - at);
}

}  // namespace

redis_cluster::redis_cluster(const cluster_options& options) : options_{options} {
    const int count = options.primaries * (options.replicas ? 2 : 1);
    if (options.tls) material_ = make_tls_material(directory_.path());
    members.reserve(static_cast<std::size_t>(count) + 1);  // a member that joins later moves no slot
    for (int i = 0; i < count; ++i) members.emplace_back(member_options());
    join();
    if (!is_settled()) throw std::runtime_error{"the members do not find together:\n" + members[0].log_tail()};
    set_node_timeout(practically_never);
}

server_options redis_cluster::member_options() const {
    server_options options{
        .tls = options_.tls, .tls_from = material_, .acl_users = options_.acl_users, .config = options_.config};
    if (options_.tls) options.config.insert(options.config.end(), {"tls-cluster yes", "tls-replication yes"});
    options.config.insert(options.config.end(),
                          {"cluster-enabled yes", "cluster-config-file nodes.conf",
                           "cluster-node-timeout " + std::to_string(soon.count()), "cluster-replica-no-failover yes",
                           "cluster-allow-replica-migration no", "cluster-replica-validity-factor 0",
                           "repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"});
    return options;
}

void redis_cluster::set_node_timeout(std::chrono::milliseconds silence, const redis_server* not_asked) {
    for (redis_server& each : members) {
        if (&each == not_asked || !each.running()) continue;
        must(each, {"CONFIG", "SET", "cluster-node-timeout", std::to_string(silence.count())});
    }
}

void redis_cluster::join() {
    const int slots = static_cast<int>(redis::hash_slots);
    for (int i = 0; i < options_.primaries; ++i) {
        redis_server& each = members.at(static_cast<std::size_t>(i));
        must(each, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(slots * i / options_.primaries),
                    std::to_string(slots * (i + 1) / options_.primaries - 1)});
        must(each, {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    }
    for (redis_server& each : members) {
        if (&each != &members.front()) meet_first(each);
    }
    know_each_other();
    for (std::size_t i = static_cast<std::size_t>(options_.primaries); i < members.size(); ++i) {
        const std::string primary = id_of(members[i - static_cast<std::size_t>(options_.primaries)]);
        // The server refuses while it does not know that member well enough.
        const auto follows = [&] { return !members[i].call({"CLUSTER", "REPLICATE", primary}).is_error(); };
        if (!eventually(follows, start_limit)) throw std::runtime_error{"a replica knows no primary"};
    }
}

void redis_cluster::meet_first(redis_server& member) {
    must(member, {"CLUSTER", "MEET", "127.0.0.1", port_among_members(members.front())});
}

void redis_cluster::know_each_other() {
    const std::string all = "cluster_known_nodes:" + std::to_string(members.size());
    const auto know_all = [&] {
        return std::ranges::all_of(members, [&](redis_server& each) { return says(each, all); });
    };
    if (!eventually(know_all, start_limit)) throw std::runtime_error{"the members did not meet"};
}

redis_server& redis_cluster::join_another() {
    redis_server& fresh = members.emplace_back(member_options());
    meet_first(fresh);
    know_each_other();
    if (!eventually([&] { return says(fresh, "cluster_state:ok"); }, start_limit)) {
        throw std::runtime_error{"the member that joined does not serve"};
    }
    set_node_timeout(practically_never);
    return fresh;
}

// A member that is slow to forget tells the others about it again; they ignore that for a minute.
void redis_cluster::dismiss_last() {
    const std::string id = id_of(members.back());
    members.pop_back();
    for (redis_server& each : members) must(each, {"CLUSTER", "FORGET", id});
}

bool redis_cluster::is_settled() {
    const auto is_well = [&](redis_server& each) {
        if (!says(each, "cluster_state:ok")) return false;
        if (&each - members.data() < options_.primaries) {
            return each.info("replication", "connected_slaves") == (options_.replicas ? "1" : "0");
        }
        return each.info("replication", "role") == "slave" && each.info("replication", "master_link_status") == "up";
    };
    // Members that do not know yet which replica belongs to which primary refuse a failover.
    const auto knows_replicas = [&](redis_server& each) {
        const std::string nodes = each.call({"CLUSTER", "NODES"}).text;
        std::size_t replicas = 0;
        for (std::size_t at = 0; (at = nodes.find("slave", at)) != std::string::npos; ++at) ++replicas;
        return replicas == members.size() - static_cast<std::size_t>(options_.primaries);
    };
    return eventually(
        [&] {
            return std::ranges::all_of(members,
                                       [&](redis_server& each) { return is_well(each) && knows_replicas(each); });
        },
        start_limit);
}

std::string redis_cluster::url(const std::string& login) const {
    return url_of("redis+cluster://" + login, members, [](const redis_server& each) { return each.port(); });
}

std::string redis_cluster::tls_url(const std::string& login) const {
    return url_of("rediss+cluster://" + login, members, [](const redis_server& each) { return each.tls_port(); });
}

std::string redis_cluster::port_among_members(const redis_server& member) const {
    return std::to_string(options_.tls ? member.tls_port() : member.port());
}

std::string redis_cluster::id_of(redis_server& member) {
    return must(member, {"CLUSTER", "MYID"}).text;
}

redis_server* redis_cluster::find_owner(const std::string& key, const redis_server* not_asked) {
    const auto found = std::ranges::find_if(members, [&](redis_server& each) {
        return &each != not_asked && each.running() && owner_port(each, key) == each.port();
    });
    return found == members.end() ? nullptr : &*found;
}

redis_server& redis_cluster::owner_of(const std::string& key) {
    redis_server* const found = find_owner(key);
    if (found == nullptr) throw std::runtime_error{"nobody owns the slot of " + key};
    return *found;
}

redis_server& redis_cluster::other_than_owner_of(const std::string& key) {
    redis_server& owner = owner_of(key);
    const auto other = std::ranges::find_if(members, [&](redis_server& each) {
        return each.running() && &each != &owner && each.info("replication", "role") == "master";
    });
    if (other == members.end()) throw std::runtime_error{"there is no other primary"};
    return *other;
}

redis_server& redis_cluster::replica_of(const redis_server& primary) {
    const auto index = static_cast<std::size_t>(&primary - members.data());
    const auto half = static_cast<std::size_t>(options_.primaries);
    return members.at(index < half ? index + half : index - half);
}

redis_cluster::move redis_cluster::begin_move(const std::string& key, redis_server& to) {
    const move which{slot_text(key), &owner_of(key), &to};
    must(*which.to, {"CLUSTER", "SETSLOT", which.slot, "IMPORTING", id_of(*which.from)});
    must(*which.from, {"CLUSTER", "SETSLOT", which.slot, "MIGRATING", id_of(*which.to)});
    return which;
}

bool redis_cluster::move_keys(const move& which, int at_most) {
    const redis_reply keys = must(*which.from, {"CLUSTER", "GETKEYSINSLOT", which.slot, std::to_string(at_most)});
    if (keys.elements.empty()) return false;
    std::vector<std::string> names;
    for (const redis_reply& key : keys.elements) names.push_back(key.text);
    move_keys(which, names);
    return true;
}

void redis_cluster::move_keys(const move& which, const std::vector<std::string>& keys) {
    std::vector<std::string> step{"MIGRATE", "127.0.0.1", port_among_members(*which.to), "", "0", "10000", "KEYS"};
    step.insert(step.end(), keys.begin(), keys.end());
    must(*which.from, step);  // NOKEY if they have expired
}

void redis_cluster::finish_move(const move& which, told who) {
    const std::string owner = id_of(*which.to);
    must(*which.to, {"CLUSTER", "SETSLOT", which.slot, "NODE", owner});
    must(*which.from, {"CLUSTER", "SETSLOT", which.slot, "NODE", owner});
    if (who == told::both_sides) return;
    for (redis_server& each : members) {
        const bool is_other = &each != which.from && &each != which.to && each.running();
        if (is_other && each.info("replication", "role") == "master") {
            must(each, {"CLUSTER", "SETSLOT", which.slot, "NODE", owner});
        }
    }
}

void redis_cluster::move_slot(const std::string& key, redis_server& to) {
    if (!have_all_heard(key)) throw std::runtime_error{"the members do not agree whose slot it is"};
    const move which = begin_move(key, to);
    while (move_keys(which, 10)) {
    }
    finish_move(which);
}

// On a busy machine Redis may have given up the failover.
bool redis_cluster::fail_over(const std::string& key) {
    redis_server& former = owner_of(key);
    for (int i = 0; i < most_tries_by_hand; ++i) {
        replica_of(former).call({"CLUSTER", "FAILOVER"});  // refused if it has succeeded late
        if (eventually([&] { return has_moved_from(former, key); }, by_hand_limit)) return true;
    }
    return false;
}

// The timeout is short only until then: no other member should count as failed.
bool redis_cluster::is_given_up(const redis_server& gone) {
    set_node_timeout(soon, &gone);
    const std::string port = ":" + std::to_string(gone.port()) + "@";
    const auto gives_it_up = [&](redis_server& each) {
        const std::string nodes = each.call({"CLUSTER", "NODES"}).text;
        const auto at = nodes.find(port);
        if (at == std::string::npos) return false;
        const std::string line = nodes.substr(at, nodes.find('\n', at) - at);
        // "fail?" is the opinion of one member alone.
        return line.find("master,fail") != std::string::npos && line.find('?') == std::string::npos;
    };
    const bool given_up = eventually(
        [&] {
            return std::ranges::all_of(
                members, [&](redis_server& each) { return &each == &gone || !each.running() || gives_it_up(each); });
        },
        failover_limit);
    set_node_timeout(practically_never, &gone);
    return given_up;
}

// Members do not vote twice for a successor of the same primary within two timeouts, nor is a replica elected again
// within four.
bool redis_cluster::has_replaced(const redis_server& gone, const std::string& key) {
    redis_server& successor = replica_of(gone);
    set_node_timeout(while_voting, &gone);
    must(successor, {"CONFIG", "SET", "cluster-replica-no-failover", "no"});
    const bool replaced = eventually([&] { return has_moved_from(gone, key); }, failover_limit);
    must(successor, {"CONFIG", "SET", "cluster-replica-no-failover", "yes"});
    set_node_timeout(practically_never, &gone);
    return replaced;
}

bool redis_cluster::comes_back(redis_server& gone) {
    if (gone.running()) {
        gone.resume();
    } else {
        gone.restart(redis_server::data::lose);
        must(gone, {"CONFIG", "SET", "cluster-node-timeout", std::to_string(practically_never.count())});
    }
    return eventually(
        [&] {
            return gone.info("replication", "role") == "slave" &&
                   gone.info("replication", "master_link_status") == "up" && says(gone, "cluster_state:ok") &&
                   replica_of(gone).info("replication", "connected_slaves") == "1";
        },
        failover_limit);
}

bool redis_cluster::have_all_heard(const std::string& key) {
    return eventually(
        [&] {
            const redis_server* const now = find_owner(key);
            const std::string epoch = epoch_of(members.front());
            return now != nullptr && std::ranges::all_of(members, [&](redis_server& each) {
                       return owner_port(each, key) == now->port() && epoch_of(each) == epoch;
                   });
        },
        start_limit);
}

bool redis_cluster::has_moved_from(const redis_server& former, const std::string& key) {
    redis_server* const now = find_owner(key, &former);  // it may hang
    if (now == nullptr) return false;
    return std::ranges::all_of(members, [&](redis_server& each) {
        return &each == &former || !each.running() ||
               (owner_port(each, key) == now->port() && says(each, "cluster_state:ok"));
    });
}

}  // namespace holdfast::testing
