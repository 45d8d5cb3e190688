// One connection by TCP, unix socket or TLS. An object is used for one connection only.
//
// All calls, also those of the listener, are made inside the client's serial section: a completion handler enters it
// first, on the thread that drives the io_context. After close() the listener is not called any more.
#pragma once

#include "base/errc_table.hpp"
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
    // Only for TLS: the peer is reached and the handshake begins.
    virtual void on_reached() = 0;
    virtual void on_connected() = 0;
    virtual void on_received(std::size_t count) = 0;
    // The rest of what write() could not send at once is sent.
    virtual void on_sent() = 0;
    // Connecting, reading or writing failed. The stream cannot be used any more.
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
    enum class sending { done, in_flight };
    // Sends all of `bytes`. They must stay valid until on_sent(), unless the result is `done`. One write at a time.
    virtual sending write(std::string_view bytes) = 0;
    virtual void close() = 0;
};

// Throws holdfast::error if the TLS files cannot be used.
std::shared_ptr<stream> make_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
                                    stream_listener& listener);

}  // namespace holdfast::net
