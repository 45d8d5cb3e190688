// Which server keeps the locks: the one of --url, of HOLDFAST_URL, or one of our own on this machine.
#pragma once

#include <string>

namespace holdfast::cli {

enum class notices { shown, hidden };
enum class server_origin { named, local };

struct server_choice {
    std::string url;
    // How it is called in lists: the same for every way of signing in.
    std::string identity;
    server_origin origin;
};

// `option` is what --url says; empty without it. Starts the local server if it is the one and does not run.
//
// Throws holdfast::error for a URL that is not understood, trouble for a password in `option`, because
// everybody on the machine can read a command line.
server_choice choose_server(const std::string& option, notices wanted);

}  // namespace holdfast::cli
