#include "net/plain_stream.hpp"
#include "net/stream_kinds.hpp"
#include "net/tcp_connector.hpp"

namespace holdfast::net {
namespace {

class tcp_stream final : public plain_stream<boost::asio::ip::tcp::socket> {
public:
    tcp_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
               stream_listener& listener)
        : plain_stream(context, section, target, listener), connector_(context) {}

    void connect() override {
        connector_.connect(socket(), target_, [self = shared_from_this(), this](const auto& code) {
            code ? not_connected(code) : connected();
        });
    }

private:
    void shut() override {
        connector_.cancel();
        plain_stream::shut();
    }

    tcp_connector connector_;
};

}  // namespace

std::shared_ptr<stream> make_tcp_stream(boost::asio::io_context& context, serial_section& section,
                                        const endpoint& target, stream_listener& listener) {
    return std::make_shared<tcp_stream>(context, section, target, listener);
}

}  // namespace holdfast::net
