// A small HTTP/1.1 server for one who asks now and then: a scraper.
//
// Every connection carries one request and is closed. It has ten seconds to ask and to read its answer, and a head of
// 8 KiB; there are 64 connections at most. So whatever comes from the network costs little and ends.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::cli {

struct http_answer {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body;
};

class http_server {
public:
    // Answers a GET of `path`; runs on the thread that runs the context.
    using handler = std::function<http_answer(const std::string& path)>;

    // `address` is HOST:PORT or [IPV6]:PORT; port 0 takes a free one. Throws trouble if it cannot listen there.
    http_server(boost::asio::io_context& context, const std::string& address, handler handle);
    ~http_server();

    // http://HOST:PORT, as it really is.
    std::string url() const;
    // No more connections; those there are may end.
    void stop();

private:
    class connection;

    void accept_next();

    boost::asio::ip::tcp::acceptor acceptor_;
    handler handle_;
    std::shared_ptr<std::size_t> open_;
};

}  // namespace holdfast::cli
