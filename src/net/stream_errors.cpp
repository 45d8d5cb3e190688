#include "net/stream_base.hpp"
#include "net/stream_kinds.hpp"

#include <boost/asio/error.hpp>

namespace holdfast::net {

failure describe_connect_error(const boost::system::error_code& code, const endpoint& target) {
    namespace ae = boost::asio::error;
    failure why{errc::unreachable, target.display + ": " + code.message()};
    if (code == ae::connection_refused || code == boost::system::errc::no_such_file_or_directory) {
        why.code = errc::connection_refused;
    } else if (code == ae::host_not_found || code == ae::host_not_found_try_again || code == ae::no_data) {
        why.code = errc::host_not_found;
    } else if (code == boost::system::errc::permission_denied) {
        why.code = errc::no_permission;
    }
    return why;
}

bool is_hang_up(const boost::system::error_code& code) {
    namespace ae = boost::asio::error;
    return code == ae::connection_reset || code == ae::broken_pipe;
}

failure describe_stream_error(const boost::system::error_code& code, const endpoint& target) {
    namespace ae = boost::asio::error;
    const tls_trouble trouble = tls_trouble_of(code);
    if (code == ae::eof || is_hang_up(code) || trouble == tls_trouble::closed) {
        return {errc::unreachable, target.display + " closed the connection"};
    }
    return {trouble == tls_trouble::failed ? errc::tls_failed : errc::unreachable,
            target.display + ": " + code.message()};
}

}  // namespace holdfast::net
