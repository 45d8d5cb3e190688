#include "cli/web/http_server.hpp"

#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <chrono>
#include <map>
#include <sstream>
#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t longest_head = 8 * 1024;
constexpr std::size_t most_connections = 64;
constexpr auto longest_talk = std::chrono::seconds(10);

const std::map<int, const char*> reasons{{200, "OK"},
                                         {400, "Bad Request"},
                                         {404, "Not Found"},
                                         {405, "Method Not Allowed"},
                                         {431, "Request Header Fields Too Large"}};

// Host and port.
std::pair<std::string, std::string> split(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    std::string host = address.substr(0, colon == std::string::npos ? 0 : colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
    const bool number = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
    if (host.empty() || !number) {
        throw trouble(fmt::format("--listen {}: write HOST:PORT, as in 127.0.0.1:9421 or [::1]:9421", address));
    }
    return {host, port};
}

}  // namespace

// Alive as long as one of its handlers is.
class http_server::connection : public std::enable_shared_from_this<connection> {
public:
    connection(tcp::socket socket, const handler& handle, std::shared_ptr<std::size_t> open)
        : socket_(std::move(socket)), timer_(socket_.get_executor()), handle_(handle), open_(std::move(open)) {
        ++*open_;
    }
    ~connection() { --*open_; }

    void start() {
        timer_.expires_after(longest_talk);
        timer_.async_wait([self = shared_from_this()](error_code why) {
            if (!why) self->hang_up();
        });
        asio::async_read_until(socket_, asio::dynamic_buffer(head_, longest_head), "\r\n\r\n",
                               [self = shared_from_this()](error_code why, std::size_t) { self->was_asked(why); });
    }

private:
    void hang_up() {
        error_code ignored;
        socket_.shutdown(tcp::socket::shutdown_both, ignored);
        socket_.close(ignored);
        timer_.cancel();
    }

    void was_asked(error_code why) {
        if (why == asio::error::not_found) return answer({431, "text/plain", "too long\n"});
        if (why) return hang_up();
        std::istringstream line(head_.substr(0, head_.find("\r\n")));
        std::string method;
        std::string path;
        std::string version;
        line >> method >> path >> version;
        if (!version.starts_with("HTTP/1.")) return answer({400, "text/plain", "this is HTTP/1.1\n"});
        if (method != "GET" && method != "HEAD") return answer({405, "text/plain", "only GET and HEAD\n"});
        without_body_ = method == "HEAD";
        answer(handle_(path.substr(0, path.find('?'))));
    }

    void answer(const http_answer& what) {
        reply_ = fmt::format(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: "
            "close\r\n{}\r\n",
            what.status, reasons.at(what.status), what.type, what.body.size(),
            what.status == 405 ? "Allow: GET, HEAD\r\n" : "");
        if (!without_body_) reply_ += what.body;
        asio::async_write(socket_, asio::buffer(reply_),
                          [self = shared_from_this()](error_code, std::size_t) { self->hang_up(); });
    }

    tcp::socket socket_;
    asio::steady_timer timer_;
    const handler& handle_;
    std::shared_ptr<std::size_t> open_;
    std::string head_;
    std::string reply_;
    bool without_body_ = false;
};

http_server::http_server(asio::io_context& context, const std::string& address, handler handle)
    : acceptor_(context), handle_(std::move(handle)), open_(std::make_shared<std::size_t>(0)) {
    const auto [host, port] = split(address);
    try {
        const tcp::endpoint local = tcp::resolver(context).resolve(host, port, tcp::resolver::passive)->endpoint();
        acceptor_.open(local.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(local);
        acceptor_.listen();
    } catch (const boost::system::system_error& why) {
        throw trouble(fmt::format("--listen {}: {}", address, why.code().message()));
    }
    accept_next();
}

http_server::~http_server() = default;

std::string http_server::url() const {
    std::ostringstream text;
    text << "http://" << acceptor_.local_endpoint();
    return text.str();
}

void http_server::stop() {
    error_code ignored;
    acceptor_.close(ignored);
}

void http_server::accept_next() {
    acceptor_.async_accept([this](error_code why, tcp::socket socket) {
        if (!acceptor_.is_open()) return;
        if (!why && *open_ < most_connections) std::make_shared<connection>(std::move(socket), handle_, open_)->start();
        accept_next();
    });
}

}  // namespace holdfast::cli
