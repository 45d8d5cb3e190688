// TLS over TCP through OpenSSL.
//
// OpenSSL itself checks the host name or address as a part of the verification. So a failed handshake can tell "not
// trusted" from "for another host". TLS 1.2 is the oldest version that is accepted.

#include "net/stream_base.hpp"
#include "net/stream_kinds.hpp"
#include "net/tcp_connector.hpp"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace holdfast::net {
namespace {

namespace ssl = boost::asio::ssl;

void require(const boost::system::error_code& code, const std::string& what, const std::string& file) {
    if (code) throw error(errc::tls_failed, "cannot use the " + what + " " + file + ": " + code.message());
}

ssl::context make_context(const tls_settings& settings) {
    ssl::context context(ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    boost::system::error_code code;
    if (!settings.ca_file.empty()) {
        context.load_verify_file(settings.ca_file, code);
        require(code, "CA file", settings.ca_file);
    }
    if (!settings.ca_directory.empty()) {
        context.add_verify_path(settings.ca_directory, code);
        require(code, "CA directory", settings.ca_directory);
    }
    if (settings.ca_file.empty() && settings.ca_directory.empty()) context.set_default_verify_paths(code);
    if (!settings.certificate_file.empty()) {
        context.use_certificate_chain_file(settings.certificate_file, code);
        require(code, "client certificate", settings.certificate_file);
    }
    if (!settings.key_file.empty()) {
        context.use_private_key_file(settings.key_file, ssl::context::pem, code);
        require(code, "client key", settings.key_file);
    }
    context.set_verify_mode(settings.verify ? ssl::verify_peer : ssl::verify_none, code);
    return context;
}

bool is_address(const std::string& host) {
    boost::system::error_code code;
    boost::asio::ip::make_address(host, code);
    return !code;
}

class tls_stream final : public stream_base {
public:
    tls_stream(boost::asio::io_context& context, serial_section& section, const endpoint& target,
               stream_listener& listener)
        : stream_base(context, section, target, listener),
          tls_context_(make_context(target.tls)),
          wrapped_(context, tls_context_),
          resolver_(context) {
        expect_name(target.tls.server_name.empty() ? target.host : target.tls.server_name);
    }

    void connect() override {
        connect_tcp(*this, resolver_, wrapped_.next_layer(), [this](const auto& code) {
            if (code) return connected(code);
            listener_.on_reached();
            shake_hands();
        });
    }

    void read(std::span<char> room) override {
        reads_ = true;
        wrapped_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                                 then([this](const auto& code, std::size_t count) {
                                     reads_ = false;
                                     received(code, count);
                                 }));
    }

    // A peer that refuses us sends the reason and closes. A later write fails, but the read gets the reason.
    sending write(std::string_view bytes) override {
        boost::asio::async_write(wrapped_, boost::asio::buffer(bytes), then([this](const auto& code, std::size_t) {
                                     if (reads_ && is_hang_up(code)) return;
                                     sent(code);
                                 }));
        return sending::in_flight;
    }

private:
    void expect_name(const std::string& name) {
        SSL* const handle = wrapped_.native_handle();
        X509_VERIFY_PARAM* const rules = SSL_get0_param(handle);
        if (is_address(name)) {
            X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str());
        } else {
            // SSL_set_tlsext_host_name() is a macro with a cast that -Wold-style-cast rejects.
            SSL_ctrl(handle, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
            X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
            X509_VERIFY_PARAM_set1_host(rules, name.c_str(), 0);
        }
    }

    void shake_hands() {
        wrapped_.async_handshake(ssl::stream_base::client, then([this](const auto& failed) {
                                     if (!failed) return connected(failed);
                                     listener_.on_stream_failed(describe_handshake_error(failed));
                                 }));
    }

    failure describe_handshake_error(const boost::system::error_code& code) {
        const long verdict = SSL_get_verify_result(wrapped_.native_handle());
        if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
            return {errc::certificate_mismatch, target_.display + ": its certificate does not name this host"};
        }
        if (verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID) {
            return {errc::certificate_expired, target_.display + ": " + X509_verify_cert_error_string(verdict)};
        }
        if (verdict != X509_V_OK) {
            return {errc::certificate_untrusted, target_.display + ": " + X509_verify_cert_error_string(verdict)};
        }
        const auto reason = ERR_GET_REASON(static_cast<unsigned long>(code.value()));
        const bool not_tls = code.category() == boost::asio::error::get_ssl_category() &&
                             (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
                              reason == SSL_R_PACKET_LENGTH_TOO_LONG);
        if (not_tls) return {errc::tls_unexpected, target_.display + ": " + code.message()};
        return describe_stream_error(code, target_);
    }

    void shut() override {
        // No close_notify: it could block on a peer that is gone.
        resolver_.cancel();
        boost::system::error_code ignored;
        wrapped_.next_layer().close(ignored);
    }

    bool reads_ = false;
    ssl::context tls_context_;
    ssl::stream<boost::asio::ip::tcp::socket> wrapped_;
    boost::asio::ip::tcp::resolver resolver_;
};

}  // namespace

std::shared_ptr<stream> make_tls_stream(boost::asio::io_context& context, serial_section& section,
                                        const endpoint& target, stream_listener& listener) {
    return std::make_shared<tls_stream>(context, section, target, listener);
}

void require_tls(const std::string&) {}

tls_trouble tls_trouble_of(const boost::system::error_code& code) {
    if (code == ssl::error::stream_truncated) return tls_trouble::closed;
    return code.category() == boost::asio::error::get_ssl_category() ? tls_trouble::failed : tls_trouble::none;
}

}  // namespace holdfast::net
