// A redis-server for one test: the constructor starts it, the destructor ends it, and it ends with the test process
// even if that is killed (see spawn.hpp).
//
// Each server has a temporary directory with its configuration, log, data and sockets. It always has a unix socket,
// which the harness uses: whatever the test does to TCP or TLS, `call()` works. That connection is named "harness" in
// CLIENT LIST, and the statistics count its commands like any others.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis_reply.hpp"
#include "support/tls_material.hpp"

namespace holdfast::testing {

enum class server_certificate { localhost, wrong_host, expired, not_yet_valid };

struct server_options {
    bool tcp = true;               // 127.0.0.1, a free port
    bool unix_socket = false;      // offer the unix socket to the test
    bool tls = false;              // TLS on its own port, with certificates made on the fly
    bool tls_client_auth = false;  // clients need a certificate
    server_certificate certificate = server_certificate::localhost;
    std::optional<tls_material> tls_from{};  // use these certificates: for servers that trust each other
    std::string requirepass{};               // password of the default user
    std::vector<std::string> acl_users{};    // what follows "user ", e.g. "bob on >pw ~* +@all"
    std::vector<std::string> config{};       // further configuration lines, e.g. "maxmemory 2mb"
    bool persistent = false;                 // append-only file, synced at every write
    std::chrono::seconds clock_ahead{0};     // relative to this machine's wall clock; may be negative
    bool clock_moves = false;                // set_clock_ahead() may be called
    bool sentinel = false;                   // a sentinel instead of a server; `config` says what it watches
};

/// Movable. Several threads may call it; starting and stopping is for one at a time.
class redis_server {
public:
    enum class data { keep, lose };

    /// Returns when the server answers; throws std::runtime_error with the end of its log if it does not.
    explicit redis_server(server_options options = {});
    ~redis_server();
    redis_server(redis_server&&) noexcept;
    redis_server& operator=(redis_server&&) noexcept;

    int port() const;
    int tls_port() const;
    std::string unix_path() const;
    pid_t pid() const;
    const std::filesystem::path& directory() const;
    const tls_material& tls() const;  // for servers with `tls`

    std::string url() const;       // redis://[:password@]127.0.0.1:port
    std::string unix_url() const;  // unix://[:password@]/path
    std::string tls_url() const;   // rediss://[:password@]localhost:port

    bool running() const;
    void kill();    // SIGKILL, and wait
    void stop();    // SIGTERM, and wait
    void pause();   // SIGSTOP, and wait until it has stopped
    void resume();  // SIGCONT

    /// Same ports, same sockets. A running server is stopped first. Keeping data needs `persistent`.
    void restart(data what);

    /// Runs a command with all rights. An error reply is a value; without a connection or an answer it throws.
    redis_reply call(const std::vector<std::string>& arguments);

    /// Shifts its wall clock relative to this machine's while it runs, with `clock_moves`.
    void set_clock_ahead(std::chrono::microseconds by);
    std::int64_t clock_us();

    /// The number of calls of a command since the start or `reset_stats()`; subcommands as "config|get".
    std::int64_t command_calls(std::string_view command);
    void reset_stats();

    /// One field of INFO; throws std::out_of_range if there is no such field.
    std::string info(std::string_view section, std::string_view field);

    /// The end of the server's log, for messages.
    std::string log_tail() const;

private:
    class process;
    std::unique_ptr<process> process_;
};

}  // namespace holdfast::testing
