// A link that can go bad: forwards connections to a server and cuts, stalls, delays or refuses them on demand.
//
// Lost reply: stall(to_client), send the request, see it run on the server, cut(). Half-open link:
// stall(both). One thread runs everything; each setter is carried out by that thread and returns when it has
// taken effect.
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

    /// Closes all present connections, on both sides. What was held back in them is lost.
    void cut();

    /// New connections are refused (nothing listens) until accept().
    void refuse();
    void accept();

    /// Stops forwarding, without closing anything: not even the peer's closing is passed on. Holds for new
    /// connections, too. After unstall() what was held back goes on its way.
    void stall(direction which);
    void unstall(direction which);

    /// From now on what comes is passed on so much later.
    void delay(direction which, std::chrono::milliseconds time);

    /// How many connections there are now, and how many there ever were.
    int connections() const;
    int accepted() const;

private:
    class loop;
    std::unique_ptr<loop> loop_;
};

}  // namespace holdfast::testing
