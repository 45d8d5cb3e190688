// A small HTTP/1.1 server for one who asks now and then (a scraper), and for a few browsers that listen.
//
// A connection carries one request and is closed. The request is small and comes within a time; a connection that
// becomes a stream stays open until either end closes it. A reader of a stream that is too slow is dropped: it may
// connect again and begin anew. There are so many connections at most, and fewer streams. So whatever comes from the
// network costs little and ends.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::cli {

struct http_request {
    std::string method = {};
    std::string path = {};                           // without the query
    std::string query = {};                          // behind the first '?', as it came
    std::map<std::string, std::string> fields = {};  // of the head; names in small letters
    std::string body = {};

    // Empty if there is none.
    std::string_view field(const std::string& name) const;
};

// Text that is sent as it comes. Used on the thread that runs the context.
class http_stream {
public:
    http_stream(const http_stream&) = delete;
    http_stream& operator=(const http_stream&) = delete;
    virtual void send(std::shared_ptr<const std::string> text) = 0;
    virtual bool is_open() const = 0;

protected:
    http_stream() = default;
    ~http_stream() = default;
};

struct http_answer {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body = {};
    std::map<std::string, std::string> fields = {};  // further ones of the head
    // If set, the answer is a stream that begins with `body`.
    std::function<void(std::shared_ptr<http_stream>)> listener = {};
};

struct http_limits {
    std::size_t connections = 64;
    std::size_t streams = 32;
    std::size_t head_bytes = 8 * 1024;
    std::size_t body_bytes = 0;                  // 0: POST is refused
    std::size_t unread_bytes = 8 * 1024 * 1024;  // beyond it nothing more is taken
    // For the request and its answer, and for every piece of a stream.
    std::chrono::milliseconds talk{std::chrono::seconds(10)};
};

class http_server {
public:
    // Answers a request; runs on the thread that runs the context.
    using handler = std::function<http_answer(const http_request& asked)>;

    // `address` is HOST:PORT or [IPV6]:PORT; port 0 takes a free one. Throws trouble if it cannot listen there.
    http_server(boost::asio::io_context& context, const std::string& address, handler handle, http_limits limits = {});
    ~http_server();

    // http://HOST:PORT, as it really is.
    std::string url() const;
    // Only this machine can connect.
    bool is_loopback() const { return acceptor_.local_endpoint().address().is_loopback(); }
    // No more connections; those there are may end.
    void stop();

private:
    class connection;

    struct shared_state {
        handler handle;
        http_limits limits;
        std::size_t connections = 0;
        std::size_t streams = 0;
    };

    void accept_next();

    boost::asio::ip::tcp::acceptor acceptor_;
    std::shared_ptr<shared_state> shared_;
};

}  // namespace holdfast::cli
