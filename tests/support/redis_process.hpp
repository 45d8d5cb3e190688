// The process behind a redis_server: configuration, ports, start, signals.
//
// Invariants:
//  (1) pid_ is 0 exactly when there is no child to wait for; no stale pid is ever signalled.
//  (2) Ports are chosen once; only the first start may change them, if another process took one.
#pragma once

#include <mutex>

#include "support/admin_link.hpp"
#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing {

class redis_server::process {
public:
    explicit process(server_options options);
    ~process();

    const server_options& options() const noexcept { return options_; }
    int port() const noexcept { return port_; }
    int tls_port() const noexcept { return tls_port_; }
    pid_t pid() const noexcept { return pid_; }
    const std::filesystem::path& directory() const noexcept { return directory_.path(); }
    std::filesystem::path socket_path() const { return directory() / "redis.sock"; }
    const tls_material& tls() const noexcept { return tls_; }

    bool running();
    void kill();
    void stop();
    void pause();
    void resume();
    void start_again();
    void remove_data();
    void set_clock_ahead(std::chrono::microseconds by);
    redis_reply call(const std::vector<std::string>& arguments);
    std::string log_tail() const;

private:
    enum class outcome { ready, port_taken };

    void start_on_free_ports();
    outcome start();
    void launch();
    bool answers();
    void write_config() const;
    void write_tls_config(std::ostream& out) const;
    void signal(int number);
    void gone() noexcept;
    std::filesystem::path clock_path() const { return directory() / "clock"; }
    std::filesystem::path log_path() const { return directory() / "redis.log"; }

    server_options options_;
    temp_directory directory_{"hf-redis-"};
    tls_material tls_;
    admin_login login_;
    int port_ = 0;
    int tls_port_ = 0;
    pid_t pid_ = 0;
    std::mutex link_mutex_;  // guards link_
    admin_link link_;
};

}  // namespace holdfast::testing
