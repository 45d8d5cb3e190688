// What the kinds of stream have in common.
//
// Every handler is bound to the serial section, so no two handlers of a client run at the same time. A stream keeps
// itself alive while an operation is in flight.
#pragma once

#include "net/section_executor.hpp"
#include "net/stream.hpp"

#include <boost/system/error_code.hpp>
#include <memory>
#include <utility>

namespace holdfast::net {

failure describe_connect_error(const boost::system::error_code& code, const endpoint& target);
failure describe_stream_error(const boost::system::error_code& code, const endpoint& target);
/// The error of a write whose peer has closed the connection. The peer may have sent something before.
bool is_hang_up(const boost::system::error_code& code);

class stream_base : public stream, public std::enable_shared_from_this<stream_base> {
public:
    void close() final {
        if (closed_) return;
        closed_ = true;
        shut();
    }

    const endpoint& target() const noexcept { return target_; }

    // The handler of an operation. It runs in the section, keeps the stream alive, and does nothing once that is
    // closed.
    template <typename Then>
    auto then(Then next) {
        return boost::asio::bind_executor(
            executor_, [self = shared_from_this(), next = std::move(next)](const auto&... results) mutable {
                if (!self->closed_) next(results...);
            });
    }

protected:
    stream_base(boost::asio::io_context& context, serial_section& section, endpoint target, stream_listener& listener)
        : target_(std::move(target)), executor_(context, section), listener_(listener) {}

    virtual void shut() = 0;

    void received(const boost::system::error_code& failed, std::size_t count) {
        if (failed) return listener_.on_stream_failed(describe_stream_error(failed, target_));
        listener_.on_received(count);
    }

    void sent(const boost::system::error_code& failed) {
        if (failed) return listener_.on_stream_failed(describe_stream_error(failed, target_));
        listener_.on_sent();
    }

    void connected(const boost::system::error_code& failed) {
        if (failed) return listener_.on_stream_failed(describe_connect_error(failed, target_));
        listener_.on_connected();
    }

    const endpoint target_;
    const section_executor executor_;
    stream_listener& listener_;

private:
    bool closed_ = false;
};

}  // namespace holdfast::net
