// The certificates that tests make, and the servers that show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <memory>

#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::harness_tls_test {
namespace {

struct tls_attempt {
    std::filesystem::path ca;
    certificate_files client{};
    std::string host = "localhost";
};

// The reply to a PING over TLS, or the reason why there is none.
std::string tls_ping(int port, const tls_attempt& attempt) {
    const std::unique_ptr<SSL_CTX, decltype(&::SSL_CTX_free)> context{::SSL_CTX_new(::TLS_client_method()),
                                                                      &::SSL_CTX_free};
    ::SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    ::SSL_CTX_load_verify_file(context.get(), attempt.ca.c_str());
    if (!attempt.client.key.empty()) {
        ::SSL_CTX_use_certificate_file(context.get(), attempt.client.certificate.c_str(), SSL_FILETYPE_PEM);
        ::SSL_CTX_use_PrivateKey_file(context.get(), attempt.client.key.c_str(), SSL_FILETYPE_PEM);
    }
    const std::unique_ptr<SSL, decltype(&::SSL_free)> ssl{::SSL_new(context.get()), &::SSL_free};
    const unique_fd socket = connect_tcp(port);
    ::SSL_set_fd(ssl.get(), socket.get());
    ::SSL_set1_host(ssl.get(), attempt.host.c_str());
    if (::SSL_connect(ssl.get()) != 1) {
        return ::X509_verify_cert_error_string(::SSL_get_verify_result(ssl.get()));
    }
    ::SSL_write(ssl.get(), ping.data(), static_cast<int>(ping.size()));
    char reply[16];
    const int got = ::SSL_read(ssl.get(), reply, sizeof reply);
    return got > 0 ? std::string(reply, static_cast<std::size_t>(got)) : "no reply";
}

TEST(TlsServer, AnswersWhoTrustsItsAuthority) {
    redis_server server{{.tls = true}};
    EXPECT_NE(server.port(), server.tls_port());
    EXPECT_EQ(server.tls_url(), "rediss://localhost:" + std::to_string(server.tls_port()));
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = server.tls().ca}), pong);
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = server.tls().unrelated_ca}),
              "self-signed certificate in certificate chain");
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = server.tls().ca, .host = "elsewhere"}), "hostname mismatch");
}

TEST(TlsServer, MayShowABadCertificate) {
    redis_server wrong{{.tcp = false, .tls = true, .certificate = server_certificate::wrong_host}};
    EXPECT_EQ(tls_ping(wrong.tls_port(), {.ca = wrong.tls().ca}), "hostname mismatch");
    redis_server expired{{.tcp = false, .tls = true, .certificate = server_certificate::expired}};
    EXPECT_EQ(tls_ping(expired.tls_port(), {.ca = expired.tls().ca}), "certificate has expired");
}

TEST(TlsServer, MayWantACertificateOfTheClient) {
    redis_server server{{.tls = true, .tls_client_auth = true}};
    const tls_material& tls = server.tls();
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = tls.ca, .client = tls.client}), pong);
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = tls.ca}), "no reply");
    EXPECT_EQ(tls_ping(server.tls_port(), {.ca = tls.ca, .client = tls.unrelated_client}), "no reply");
}

TEST(TlsMaterial, KeysArePrivate) {
    const temp_directory directory;
    const tls_material made = make_tls_material(directory.path());
    for (const certificate_files& each : {made.server, made.wrong_host, made.client, made.unrelated_client}) {
        struct stat status {};
        ASSERT_EQ(::stat(each.key.c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777, 0600U) << each.key;
    }
}

}  // namespace
}  // namespace holdfast::testing::harness_tls_test
