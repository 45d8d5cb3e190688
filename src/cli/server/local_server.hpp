// A redis-server of the user's own, for locks that need to hold on this machine only.
//
// It listens on a unix socket in a private directory only, keeps nothing on disk and evicts nothing. The first command
// that needs it starts it, and it goes on after that command. Commands that start it at the same time take turns.
#pragma once

#include "cli/server/local_home.hpp"

#include <holdfast/client.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

enum class found { running, started };

// Returns when it answers. Throws trouble if there is no redis-server to start, or it does not come up.
found start_local_server(const local_home& home);

struct local_status {
    long long pid = 0;
    std::string version;
    std::chrono::seconds uptime{0};
    std::vector<std::string> held;  // keys of the locks somebody holds
};

// Nothing if it does not run.
std::optional<local_status> ask_local_status(const local_home& home);

// Returns when it is gone, also where its files were removed. The caller has the turn.
void stop_local_server(const local_home& home);

}  // namespace holdfast::cli
