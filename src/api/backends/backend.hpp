// One node that votes, as the core sees it: a single server, the primary that the sentinels name, or a whole Cluster.
// Lives in the serial section of the core.
#pragma once

#include "api/backends/run_claims.hpp"
#include "api/runtime/recorder.hpp"
#include "base/serial_section.hpp"
#include "engine/engine.hpp"
#include "net/io_context_fwd.hpp"
#include "redis/url/server_url.hpp"

#include <holdfast/options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

class backend {
public:
    virtual ~backend() = default;

    // How the engine reaches the node.
    virtual engine::node_link link() = 0;
    // First call: `mine` gets the events; the card at the node names `client_id`.
    virtual void attach(engine::node_input& mine, const std::string& client_id) = 0;

    // Whether it is connected; in a Cluster to any primary.
    virtual bool up() const = 0;
    virtual void submit(redis::command& request, instant now) = 0;

    // Runs before pump() of any backend: the engine may react by sending something to another node.
    virtual void look_around(instant now) = 0;
    // Connects, disconnects and sends.
    virtual void pump(instant now) = 0;
    // Whether bytes wait for the loop: the socket is full, or uses TLS.
    virtual bool is_sending() const = 0;
    virtual void close(instant now) = 0;
    virtual void on_timer(instant now) = 0;
    virtual instant deadline() const noexcept = 0;

    // The known primaries of a Cluster, for tools. Empty for a single server.
    virtual std::vector<redis::server_settings> members() const { return {}; }
};

struct surroundings {
    boost::asio::io_context& context;
    serial_section& section;
    api::recorder& recorder;
    // A server that started less than this ago is not trusted.
    milliseconds mistrusted_for;
    std::uint64_t jitter_seed;
    run_claims& runs;
};

// Makes the kind that the settings require.
std::unique_ptr<backend> make_backend(const surroundings& where, const redis::server_settings& settings);

}  // namespace holdfast::api
