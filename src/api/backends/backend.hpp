// One of the places that vote, as the core sees it: a single server, whichever server the sentinels call the primary,
// or a whole Cluster. Lives in the core's serial section.
#pragma once

#include "api/runtime/watcher.hpp"
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

    // How the engine reaches it.
    virtual engine::node_link link() = 0;
    // Before anything else: whom events are for, and whose card is shown there.
    virtual void attach(engine::node_input& mine, const std::string& client_id) = 0;

    // Connected; in a Cluster to any primary.
    virtual bool up() const = 0;
    virtual void submit(redis::command& request, instant now) = 0;

    // Before any place is pumped: what has been heard may make the engine send something to another one.
    virtual void look_around(instant now) = 0;
    // Connects, hangs up and sends.
    virtual void pump(instant now) = 0;
    // Some bytes wait for the loop to go on: the socket is full, or it speaks TLS.
    virtual bool is_sending() const = 0;
    virtual void close(instant now) = 0;
    virtual void on_timer(instant now) = 0;
    virtual instant deadline() const noexcept = 0;

    // The primaries of a Cluster as far as they are known, for a tool that looks at each; a single server has none.
    virtual std::vector<redis::server_settings> members() const { return {}; }
};

struct surroundings {
    boost::asio::io_context& context;
    serial_section& section;
    api::watcher& watcher;
    // Nothing is believed of a server that was started less than this ago.
    milliseconds mistrusted_for;
    std::uint64_t jitter_seed;
};

// Of the kind that the settings ask for.
std::unique_ptr<backend> make_backend(const surroundings& where, const redis::server_settings& settings);

}  // namespace holdfast::api
