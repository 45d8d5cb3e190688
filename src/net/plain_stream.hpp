// TCP and unix sockets.
//
// write() first tries to send on the calling thread: a socket almost always has room, and this saves a system call on
// every request.
#pragma once

#include "net/stream_base.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace holdfast::net {

template <typename Socket>
class plain_stream : public stream_base {
public:
    plain_stream(boost::asio::io_context& context, serial_section& section, endpoint target, stream_listener& listener)
        : stream_base(context, section, std::move(target), listener), socket_(context) {}

    void read(std::span<char> room) final {
        socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                                then([this](const auto& code, std::size_t count) { received(code, count); }));
    }

    sending write(std::string_view bytes) final {
        boost::system::error_code code;
        std::size_t at_once = socket_.write_some(boost::asio::buffer(bytes), code);
        if (!code && at_once == bytes.size()) return sending::done;
        if (code) at_once = 0;  // the socket is full, or the asynchronous write will report the error
        boost::asio::async_write(socket_, boost::asio::buffer(bytes.substr(at_once)),
                                 then([this](const auto& failed, std::size_t) { sent(failed); }));
        return sending::in_flight;
    }

protected:
    void shut() override {
        boost::system::error_code ignored;
        socket_.close(ignored);
    }

    Socket& socket() noexcept { return socket_; }

private:
    Socket socket_;
};

}  // namespace holdfast::net
