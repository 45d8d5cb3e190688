// In place of tls_stream.cpp in a build without OpenSSL (HOLDFAST_TLS=OFF).
#include "net/stream_base.hpp"
#include "net/stream_kinds.hpp"

namespace holdfast::net {

void require_tls(const std::string& who) {
    throw error(errc::unsupported, who +
                                       ": this holdfast was built without TLS (HOLDFAST_TLS=OFF); build it with "
                                       "OpenSSL, or use a URL without TLS on a network that you trust");
}

std::shared_ptr<stream> make_tls_stream(boost::asio::io_context&, serial_section&, const endpoint& target,
                                        stream_listener&) {
    require_tls(target.display);
    return nullptr;
}

tls_trouble tls_trouble_of(const boost::system::error_code&) {
    return tls_trouble::none;
}

}  // namespace holdfast::net
