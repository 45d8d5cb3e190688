// A connection that bytes flow through: TCP, unix socket or TLS. One object is one connection, used once.
//
// All calls are made inside the client's serial section, and so are the listener's: completions come on
// whichever thread drives the io_context and enter the section first. After close() the listener hears nothing more.
#pragma once

#include "base/failure.hpp"
#include "base/serial_section.hpp"
#include "net/endpoint.hpp"
#include "net/io_context_fwd.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast::net {

class stream_listener {
public:
    // The peer was reached and the TLS handshake begins. Only for TLS.
    virtual void on_reached() = 0;
    virtual void on_connected() = 0;
    virtual void on_received(std::size_t count) = 0;
    // What write() could not send at once has been sent.
    virtual void on_sent() = 0;
    // Connecting, reading or writing failed; the stream is of no more use.
    virtual void on_stream_failed(failure why) = 0;

protected:
    ~stream_listener() = default;
};

class stream {
public:
    virtual ~stream() = default;

    virtual void connect() = 0;
    // Reads once into `room`, which must stay valid until on_received(). One read at a time.
    virtual void read(std::span<char> room) = 0;
    enum class sending { done, under_way };
    // Sends all of `bytes`; they must stay valid until on_sent() unless the answer is `done`. One write at a time.
    virtual sending write(std::string_view bytes) = 0;
    virtual void close() = 0;
};

// Throws holdfast::error if the TLS files cannot be used.
std::shared_ptr<stream> make_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
                                    stream_listener& listener);

}  // namespace holdfast::net
