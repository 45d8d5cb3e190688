#include "net/plain_stream.hpp"
#include "net/stream_kinds.hpp"
#include "net/tcp_connector.hpp"

namespace holdfast::net {
namespace {

class tcp_stream final : public plain_stream<boost::asio::ip::tcp::socket> {
public:
    tcp_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
               stream_listener& listener)
        : plain_stream(context, section, target, listener), resolver_(context) {}

    void connect() override {
        connect_tcp(*this, resolver_, socket(), [this](const auto& code) { connected(code); });
    }

private:
    void shut() override {
        resolver_.cancel();
        plain_stream::shut();
    }

    boost::asio::ip::tcp::resolver resolver_;
};

}  // namespace

std::shared_ptr<stream> make_tcp_stream(boost::asio::io_context& context, serial_section& section,
                                        const endpoint& target, stream_listener& listener) {
    return std::make_shared<tcp_stream>(context, section, target, listener);
}

}  // namespace holdfast::net
