// Which servers keep the locks: those of --url, of HOLDFAST_URL, of the configuration, or one of our own on this
// machine.
//
// The local server's locks exclude nobody else's commands. So a user who did not ask for it is told so, every time, and
// an empty URL is an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class notices { shown, hidden };
enum class local_start { if_needed, never };
enum class server_origin { named, local };

// What the options say: every --url, and whether there is a --local.
struct server_words {
    std::vector<std::string> urls = {};
    bool local = false;
};

struct server_choice {
    std::vector<std::string> urls = {};  // one, or several of which a majority grants
    // How they are called in lists: the same for every way of signing in and every order.
    std::string identity = {};
    server_origin origin = server_origin::named;
    bool runs = true;  // false: the local server, which does not and was not to be started
};

// HOLDFAST_URL has its URLs separated by blanks; the word `local`, there or in --url, is the same as --local. Starts
// the local server if needed and allowed. `wanted` hides the warning of unknown variables, but not the one of the local
// server.
//
// Throws holdfast::error for a URL that is not understood, trouble for an empty one, for a server named twice, which
// would count twice, and for a password in an option, because everybody on the machine can read a command line.
server_choice choose_servers(const server_words& options, notices wanted, local_start start = local_start::if_needed);

// Whether the URL itself has a password in it.
bool has_password(std::string_view url);

// True if it is the local server that is used, asked for or not.
bool is_local(const server_words& options);

// What HOLDFAST_URL is to be for a command that is to find the same servers; empty where the options name none.
std::string url_variable(const server_words& options);

}  // namespace holdfast::cli
