#include "support/cluster_member.hpp"

#include <fstream>
#include <stdexcept>

#include "support/eventually.hpp"

namespace holdfast::testing {
namespace {

const std::string self(40, '1');
const std::string other(40, '2');

// In the format of Redis 7.0; the server adds its own address when it starts. Nothing listens on port 1.
void write_nodes(const std::filesystem::path& file, cluster_member::share owned) {
    const bool ours = owned == cluster_member::share::all_slots;
    std::ofstream out{file};
    out << self << " 127.0.0.1:1@1 myself,master - 0 0 1 connected" << (ours ? " 0-16383" : "") << "\n"
        << other << " 127.0.0.1:1@1 master - 0 0 2 connected" << (ours ? "" : " 0-16383") << "\n"
        << "vars currentEpoch 2 lastVoteEpoch 0\n";
    if (!out.flush()) throw std::runtime_error{"cannot write " + file.string()};
}

}  // namespace

cluster_member::cluster_member(share owned, node_map from) : owned_{owned} {
    const std::filesystem::path nodes = directory_.path() / "nodes.conf";
    write_nodes(nodes, owned);
    server_options options;
    options.unix_socket = true;
    // The other member does not count as failed within an hour.
    options.config = {"cluster-enabled yes", "cluster-config-file " + nodes.string(), "cluster-node-timeout 3600000"};
    server_ = std::make_unique<redis_server>(std::move(options));
    if (from == node_map::of_this_server) {
        must({"CLUSTER", "SAVECONFIG"});
        server_->restart(redis_server::data::lose);
    }
    const auto well = [&] {
        return server_->call({"CLUSTER", "INFO"}).text.find("cluster_state:ok") != std::string::npos;
    };
    if (!eventually(well))
        throw std::runtime_error{"the member is not well: " + server_->call({"CLUSTER", "INFO"}).text};
}

void cluster_member::begin_move(const std::string& key) {
    must({"CLUSTER", "SETSLOT", slot_of(key), owned_ == share::all_slots ? "MIGRATING" : "IMPORTING", other});
}

void cluster_member::call_off_move(const std::string& key) {
    must({"CLUSTER", "SETSLOT", slot_of(key), "STABLE"});
}

std::string cluster_member::slot_of(const std::string& key) {
    return std::to_string(server_->call({"CLUSTER", "KEYSLOT", key}).integer);
}

void cluster_member::must(const std::vector<std::string>& arguments) {
    const redis_reply reply = server_->call(arguments);
    if (reply.is_error()) throw std::runtime_error{arguments.at(1) + ": " + reply.text};
}

}  // namespace holdfast::testing
