#include "support/fake_server.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::testing {
class misbehaving_server::state {
public:
    state(session behaviour, fake_server_options options)
        : behaviour_{std::move(behaviour)}, options_{std::move(options)}, tcp_{reserve_port()} {
        if (::listen(tcp_.socket.get(), SOMAXCONN) != 0) throw_errno("listen");
        if (!options_.unix_path.empty()) unix_ = listen_unix(options_.unix_path);
        set_nonblocking(tcp_.socket);
        if (unix_) set_nonblocking(unix_);
        accepting_ = std::thread{[this] { accept_all(); }};
    }

    ~state() { stop(); }

    void stop() {
        stopping_.set();
        if (accepting_.joinable()) accepting_.join();
        // No more sessions are added: the accepting thread has ended.
        for (std::thread& running : sessions_) running.join();
        sessions_.clear();
        tcp_.socket.reset();
        unix_.reset();
    }

    int port() const noexcept { return tcp_.port; }
    const std::filesystem::path& unix_path() const noexcept { return options_.unix_path; }
    int accepted() const noexcept { return accepted_; }

private:
    void accept_all() {
        for (;;) {
            pollfd waiting[3] = {{.fd = stopping_.descriptor(), .events = POLLIN, .revents = 0},
                                 {.fd = tcp_.socket.get(), .events = POLLIN, .revents = 0},
                                 {.fd = unix_.get(), .events = POLLIN, .revents = 0}};
            if (::poll(waiting, 3, -1) < 0 && errno != EINTR) throw_errno("poll");
            if (waiting[0].revents != 0) return;
            for (const int i : {1, 2}) {
                if (waiting[i].revents != 0) accept_one(waiting[i].fd);
            }
        }
    }

    void accept_one(int listener) {
        unique_fd socket{::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)};
        if (!socket) return;  // the peer has already closed
        const int number = accepted_++;
        sessions_.emplace_back([this, number, owned = std::move(socket)]() mutable {
            fake_connection connection{std::move(owned), stopping_, number};
            behaviour_(connection);
        });
    }

    session behaviour_;
    fake_server_options options_;
    reserved_port tcp_;
    unique_fd unix_;
    stop_event stopping_;
    std::atomic<int> accepted_ = 0;
    std::vector<std::thread> sessions_;  // used by accepting_ while that runs, then by stop()
    std::thread accepting_;
};

misbehaving_server::misbehaving_server(session behaviour, fake_server_options options)
    : state_{std::make_unique<state>(std::move(behaviour), std::move(options))} {}
misbehaving_server::~misbehaving_server() = default;
misbehaving_server::misbehaving_server(misbehaving_server&&) noexcept = default;
misbehaving_server& misbehaving_server::operator=(misbehaving_server&&) noexcept = default;

int misbehaving_server::port() const {
    return state_->port();
}

std::string misbehaving_server::url() const {
    return "redis://127.0.0.1:" + std::to_string(port());
}

std::string misbehaving_server::unix_url() const {
    if (state_->unix_path().empty()) throw std::logic_error{"this server has no unix socket"};
    return "unix://" + state_->unix_path().string();
}

int misbehaving_server::connections() const {
    return state_->accepted();
}

void misbehaving_server::stop() {
    state_->stop();
}

}  // namespace holdfast::testing
