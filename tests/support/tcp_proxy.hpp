// A proxy that cuts, stalls, delays or refuses connections to a server on demand.
//
// Lost reply: stall(to_client), send the request, see it run on the server, cut(). Half-open link: stall(both).
//
// One thread runs everything; each setter runs on that thread and returns when it has taken effect.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::testing {

enum class direction { to_server, to_client, both };

class tcp_proxy {
public:
    /// Forwards to that port of 127.0.0.1.
    explicit tcp_proxy(int target_port);
    ~tcp_proxy();
    tcp_proxy(tcp_proxy&&) noexcept;
    tcp_proxy& operator=(tcp_proxy&&) noexcept;

    int port() const;
    std::string url() const;  // redis://127.0.0.1:port

    /// Closes all connections on both sides. Data that was held back is lost.
    void cut();

    /// Refuses new connections (nothing listens) until accept().
    void refuse();
    void accept();

    /// Stops forwarding without closing anything: not even the peer's close is forwarded. Applies to new connections,
    /// too. unstall() forwards what was held back.
    void stall(direction which);
    void unstall(direction which);

    /// Delays everything that arrives from now on.
    void delay(direction which, std::chrono::milliseconds time);

    /// The number of connections now, and in total.
    int connections() const;
    int accepted() const;

private:
    class loop;
    std::unique_ptr<loop> loop_;
};

}  // namespace holdfast::testing
