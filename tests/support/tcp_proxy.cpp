#include "support/tcp_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <queue>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/proxy_flow.hpp"
#include "support/sockets.hpp"

namespace holdfast::testing {

struct proxy_lane {  // settings of one direction
    bool stalled = false;
    std::chrono::milliseconds delay{0};
};

struct proxy_connection {
    proxy_connection(unique_fd from, unique_fd to)
        : client{std::move(from)},
          server{std::move(to)},
          up{client.get(), server.get()},
          down{server.get(), client.get()} {}

    unique_fd client;
    unique_fd server;
    proxy_flow up;
    proxy_flow down;
    bool broken = false;
};

namespace {

using clock = proxy_flow::clock;

void prepare_socket(const unique_fd& socket) {
    set_nonblocking(socket);
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

class tcp_proxy::loop {
public:
    explicit loop(int target_port)
        : target_port_{target_port}, reserved_{reserve_port()}, wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (!wake_) throw_errno("eventfd");
        allow_listeners_beside(reserved_);
        listen();
        thread_ = std::thread{[this] { run(); }};
    }

    ~loop() {
        post([this] { stopping_ = true; });
        thread_.join();
    }

    int port() const noexcept { return reserved_.port; }

    // Runs the function on the loop's thread and waits for it, so the caller's captures stay alive.
    void post(std::function<void()> task) {
        std::packaged_task<void()> packaged{std::move(task)};
        std::future<void> done = packaged.get_future();
        {
            const std::lock_guard guard{mutex_};
            tasks_.push(std::move(packaged));
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
        done.get();
    }

    // Used by functions passed to post().
    void listen() {
        if (listener_) return;
        listener_ = listen_beside(reserved_);
        set_nonblocking(listener_);
    }
    void refuse() { listener_.reset(); }
    void cut() { connections_.clear(); }
    int connections() const { return static_cast<int>(connections_.size()); }
    int accepted() const { return accepted_; }

    void set(direction which, const std::function<void(proxy_lane&)>& change) {
        if (which != direction::to_client) change(to_server_);
        if (which != direction::to_server) change(to_client_);
    }

private:
    void run() {
        while (!stopping_) {
            wait_and_forward();
            run_tasks();
        }
    }

    void run_tasks() {
        std::uint64_t ignored;
        [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &ignored, sizeof ignored);
        std::unique_lock lock{mutex_};
        while (!tasks_.empty()) {
            std::packaged_task<void()> task = std::move(tasks_.front());
            tasks_.pop();
            lock.unlock();
            task();
            lock.lock();
        }
    }

    // Layout: wake, listener, then four entries per connection (up source, up sink, down source, down sink). A
    // descriptor that nobody waits for is -1: poll reports a hang-up even without being asked, and a stalled connection
    // whose peer has closed would spin.
    void wait_and_forward() {
        const clock::time_point before = clock::now();
        std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
        for (const proxy_connection& each : connections_) {
            add(waiting, each.up, to_server_, before);
            add(waiting, each.down, to_client_, before);
        }
        if (::poll(waiting.data(), waiting.size(), poll_limit_ms(before)) < 0 && errno != EINTR) throw_errno("poll");
        const clock::time_point now = clock::now();
        auto ready = waiting.cbegin() + 2;
        for (proxy_connection& each : connections_) {
            forward(each, each.up, to_server_, *ready, now);
            forward(each, each.down, to_client_, *(ready + 2), now);
            ready += 4;
        }
        connections_.remove_if(
            [](const proxy_connection& each) { return each.broken || (each.up.finished() && each.down.finished()); });
        if (waiting[1].revents != 0) accept_one();
    }

    static void add(std::vector<pollfd>& waiting, const proxy_flow& flow, const proxy_lane& settings,
                    clock::time_point now) {
        const bool reads = !settings.stalled && flow.wants_to_read();
        const bool writes = !settings.stalled && flow.wants_to_write(now);
        waiting.push_back({reads ? flow.source() : -1, POLLIN, 0});
        waiting.push_back({writes ? flow.sink() : -1, POLLOUT, 0});
    }

    static void forward(proxy_connection& owner, proxy_flow& flow, const proxy_lane& settings, const pollfd& source,
                        clock::time_point now) {
        if (owner.broken || settings.stalled) return;
        if (source.revents != 0 && !flow.read(now + settings.delay)) owner.broken = true;
        if (!owner.broken && !flow.write(now)) owner.broken = true;
    }

    // Until the first delayed chunk is due; POLLOUT waits for what is due already.
    int poll_limit_ms(clock::time_point now) const {
        std::chrono::milliseconds limit{60'000};
        const auto consider = [&](const proxy_flow& flow, const proxy_lane& settings) {
            const auto due = flow.due();
            if (settings.stalled || !due || *due <= now) return;
            limit = std::min(limit, std::chrono::ceil<std::chrono::milliseconds>(*due - now));
        };
        for (const proxy_connection& each : connections_) {
            consider(each.up, to_server_);
            consider(each.down, to_client_);
        }
        return static_cast<int>(limit.count());
    }

    void accept_one() {
        unique_fd client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        if (!client) return;
        ++accepted_;
        try {
            // Blocking, but local: it connects or is refused at once.
            unique_fd server = connect_tcp(target_port_);
            prepare_socket(client);
            prepare_socket(server);
            connections_.emplace_back(std::move(client), std::move(server));
        } catch (const std::system_error&) {
            // The server is down: close the client's connection.
        }
    }

    const int target_port_;
    const reserved_port reserved_;  // keeps the port reserved while nothing listens
    const unique_fd wake_;
    std::mutex mutex_;  // guards tasks_; everything else belongs to the thread
    std::queue<std::packaged_task<void()>> tasks_;
    unique_fd listener_;
    std::list<proxy_connection> connections_;
    proxy_lane to_server_;
    proxy_lane to_client_;
    int accepted_ = 0;
    bool stopping_ = false;
    std::thread thread_;
};

tcp_proxy::tcp_proxy(int target_port) : loop_{std::make_unique<loop>(target_port)} {}
tcp_proxy::~tcp_proxy() = default;
tcp_proxy::tcp_proxy(tcp_proxy&&) noexcept = default;
tcp_proxy& tcp_proxy::operator=(tcp_proxy&&) noexcept = default;

int tcp_proxy::port() const {
    return loop_->port();
}

std::string tcp_proxy::url() const {
    return "redis://127.0.0.1:" + std::to_string(port());
}

void tcp_proxy::cut() {
    loop_->post([this] { loop_->cut(); });
}

void tcp_proxy::refuse() {
    loop_->post([this] { loop_->refuse(); });
}

void tcp_proxy::accept() {
    loop_->post([this] { loop_->listen(); });
}

void tcp_proxy::stall(direction which) {
    loop_->post([&] { loop_->set(which, [](proxy_lane& each) { each.stalled = true; }); });
}

void tcp_proxy::unstall(direction which) {
    loop_->post([&] { loop_->set(which, [](proxy_lane& each) { each.stalled = false; }); });
}

void tcp_proxy::delay(direction which, std::chrono::milliseconds time) {
    loop_->post([&] { loop_->set(which, [time](proxy_lane& each) { each.delay = time; }); });
}

int tcp_proxy::connections() const {
    int count = 0;
    loop_->post([&] { count = loop_->connections(); });
    return count;
}

int tcp_proxy::accepted() const {
    int count = 0;
    loop_->post([&] { count = loop_->accepted(); });
    return count;
}

}  // namespace holdfast::testing
