// Which servers keep the locks: those of --url, of HOLDFAST_URL, or one of our own on this machine.
#pragma once

#include <string>
#include <vector>

namespace holdfast::cli {

enum class notices { shown, hidden };
enum class server_origin { named, local };

struct server_choice {
    std::vector<std::string> urls = {};  // one, or several that vote
    // How they are called in lists: the same for every way of signing in and every order.
    std::string identity = {};
    server_origin origin = server_origin::named;
};

// `options` is what every --url says; HOLDFAST_URL has its URLs separated by blanks. Starts the local server if it is
// the one and does not run.
//
// Throws holdfast::error for a URL that is not understood, trouble for a server named twice, whose vote would count
// twice, and for a password in `options`, because everybody on the machine can read a command line.
server_choice choose_servers(const std::vector<std::string>& options, notices wanted);

// The same as HOLDFAST_URL has them.
std::string joined(const std::vector<std::string>& urls);

}  // namespace holdfast::cli
