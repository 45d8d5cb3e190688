// The directory of the local server: its socket, its log, and the file that serialises its starters.
//
// It is HOLDFAST_HOME, or /tmp/holdfast-<uid>: one directory for a user on a machine. XDG_RUNTIME_DIR is set in a login
// session and not in cron(8), and two directories would be two servers that do not know each other's locks. Everybody
// may write to /tmp, so the directory is checked before it is trusted: not a link, ours, and closed to all others.
//
// A cleaner of /tmp may remove the directory while the server runs. A second server would then not know the locks of
// the first. So the server also has a mark that nobody can remove: a socket with an abstract name, which the server
// inherits and which exists as long as the server lives.
#pragma once

#include "cli/terminal/system.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

class local_home {
public:
    // Makes the directory if it is not there. Throws trouble if it cannot be used.
    static local_home open();

    const std::string& directory() const noexcept { return directory_; }
    std::string socket() const { return directory_ + "/redis.sock"; }
    std::string log() const { return directory_ + "/redis.log"; }
    std::string pid_file() const { return directory_ + "/redis.pid"; }
    std::string url() const;

    // Waits until no other process starts or stops the server; it may not while the result lives.
    unique_fd take_turn() const;

    // Something accepts connections on the socket.
    bool is_answered() const;

    // The mark, for the server that the caller is about to start; empty if a server has it.
    unique_fd take_mark() const;
    // The server that has the mark.
    struct living_server {
        pid_t pid = 0;  // 0: not known
        uid_t user = 0;
        // It is in our mount namespace: what is not there for us is not there for it either.
        bool sees_our_files() const;
    };
    std::optional<living_server> find_living_server() const;
    // The same, without asking who it is. Nobody takes the connection that asks, so do not ask in a loop.
    bool has_living_server() const { return !take_mark(); }

    // Sends the server one command of a single line. Not through a client, which would take the server's
    // hanging up for a broken link and ask again.
    void send_line(std::string_view command) const;

private:
    explicit local_home(std::string directory) : directory_(std::move(directory)) {}

    std::string directory_;
};

}  // namespace holdfast::cli
