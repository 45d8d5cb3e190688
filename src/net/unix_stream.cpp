#include "net/close_on_exec.hpp"
#include "net/plain_stream.hpp"
#include "net/stream_kinds.hpp"

#include <boost/asio/local/stream_protocol.hpp>

namespace holdfast::net {
namespace {

class unix_stream final : public plain_stream<boost::asio::local::stream_protocol::socket> {
public:
    using plain_stream::plain_stream;

    void connect() override {
        boost::system::error_code unopened;
        open_close_on_exec(socket(), boost::asio::local::stream_protocol(), unopened);
        socket().async_connect(boost::asio::local::stream_protocol::endpoint(target_.path),
                               then([this](const auto& code) {
                                   boost::system::error_code ignored;
                                   if (!code) socket().non_blocking(true, ignored);
                                   connected(code);
                               }));
    }
};

}  // namespace

std::shared_ptr<stream> make_unix_stream(boost::asio::io_context& context, serial_section& section,
                                         const endpoint& target, stream_listener& listener) {
    return std::make_shared<unix_stream>(context, section, target, listener);
}

std::shared_ptr<stream> make_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
                                    stream_listener& listener) {
    switch (target.kind) {
        case transport::unix_socket:
            return make_unix_stream(context, section, target, listener);
        case transport::tls:
            return make_tls_stream(context, section, target, listener);
        case transport::tcp:
            break;
    }
    return make_tcp_stream(context, section, target, listener);
}

}  // namespace holdfast::net
