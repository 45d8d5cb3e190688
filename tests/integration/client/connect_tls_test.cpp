// TLS: certificates that are not to be trusted, and peers that do not speak it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/redis_server.hpp"
#include "support/sockets.hpp"

namespace holdfast::testing::connect_tls_test {
namespace {

class ConnectTls : public ::testing::Test {
protected:
    static std::string url(int port, const std::string& options) {
        return "rediss://:hunter2@localhost:" + std::to_string(port) + "?timeout=5s&" + options;
    }
    static std::string place(int port) { return "localhost:" + std::to_string(port); }
};

TEST_F(ConnectTls, RefusedPort) {
    const reserved_port nobody = reserve_port();
    expect_client_refused(errc::connection_refused, "rediss://:hunter2@" + at_port(nobody.port), at_port(nobody.port));
}

TEST_F(ConnectTls, LocksWork) {
    redis_server server{{.tls = true, .requirepass = password}};
    client subject{server.tls_url() + "?ca_file=" + server.tls().ca.string()};
    mutex lock{subject, "stock"};
    EXPECT_TRUE(lock.try_acquire());
    EXPECT_THAT(subject.server(), ::testing::Not(::testing::HasSubstr(password)));
}

TEST_F(ConnectTls, WaitersAreWokenOverASecondConnectionWhereTheServerSpeaksResp2) {
    redis_server server{{.tls = true, .requirepass = password}};
    const std::string url = server.tls_url() + "?resp=2&ca_file=" + server.tls().ca.string();
    client subject{url};
    client other{url};
    mutex lock{subject, "stock", {.lease = an_age}};
    mutex theirs{other, "stock", {.lease = an_age}};
    lease held = theirs.acquire();
    auto waiting = in_background([&] { return lock.try_acquire_for(an_age); });
    EXPECT_TRUE(eventually(
        [&] {
            return server.call({"PUBSUB", "CHANNELS", "hf:wake:*"}).elements.size() == 2;
        },
        an_age));
    held.release();
    EXPECT_TRUE(waiting.get());
}

TEST_F(ConnectTls, CertificateNotTrusted) {
    redis_server server{{.tls = true, .requirepass = password}};
    const int port = server.tls_port();
    expect_client_refused(errc::certificate_untrusted, url(port, "verify=true"), place(port));
    expect_client_refused(errc::certificate_untrusted, url(port, "ca_file=" + server.tls().unrelated_ca.string()),
                          place(port));
}

TEST_F(ConnectTls, CertificateOutOfDate) {
    redis_server server{{.tls = true, .certificate = server_certificate::expired, .requirepass = password}};
    expect_client_refused(errc::certificate_expired, url(server.tls_port(), "ca_file=" + server.tls().ca.string()),
                          place(server.tls_port()));
}

TEST_F(ConnectTls, CertificateOfTomorrow) {
    redis_server server{{.tls = true, .certificate = server_certificate::not_yet_valid, .requirepass = password}};
    expect_client_refused(errc::certificate_expired, url(server.tls_port(), "ca_file=" + server.tls().ca.string()),
                          place(server.tls_port()));
}

TEST_F(ConnectTls, TheHintForACertificateOutOfDateIsNotToTrustAnotherAuthority) {
    const std::string hint = make_error_code(errc::certificate_expired).message();
    EXPECT_THAT(hint, ::testing::HasSubstr("expired"));
    EXPECT_THAT(hint, ::testing::Not(::testing::HasSubstr("ca_file")));
}

TEST_F(ConnectTls, CertificateForAnotherHost) {
    redis_server server{{.tls = true, .certificate = server_certificate::wrong_host, .requirepass = password}};
    const std::string trusted = "ca_file=" + server.tls().ca.string();
    expect_client_refused(errc::certificate_mismatch, url(server.tls_port(), trusted), place(server.tls_port()));
    client expecting_it{url(server.tls_port(), trusted + "&server_name=wrong.example")};
    expecting_it.ping();
    client careless{url(server.tls_port(), "verify=false")};
    careless.ping();
}

TEST_F(ConnectTls, NamedByItsAddress) {
    redis_server server{{.tls = true, .requirepass = password}};
    client subject{"rediss://:hunter2@" + at_port(server.tls_port()) + "?ca_file=" + server.tls().ca.string()};
    subject.ping();
}

TEST_F(ConnectTls, ACaFileThatCannotBeUsed) {
    redis_server server{{.tls = true, .requirepass = password}};
    client subject{url(server.tls_port(), "ca_file=/no/such/file")};
    expect_refusal(errc::tls_failed, "/no/such/file", [&] { subject.ping(); });
}

TEST_F(ConnectTls, ClientCertificateRequired) {
    redis_server server{{.tls = true, .tls_client_auth = true, .requirepass = password}};
    const tls_material& tls = server.tls();
    const auto with = [&](const certificate_files& own) {
        return url(server.tls_port(),
                   "ca_file=" + tls.ca.string() + "&cert=" + own.certificate.string() + "&key=" + own.key.string());
    };
    client known{with(tls.client)};
    known.ping();
    for (int i = 0; i < 5; ++i) {  // the refusal comes after the handshake: it must not depend on who is faster
        expect_client_refused(errc::tls_failed, url(server.tls_port(), "ca_file=" + tls.ca.string()),
                              place(server.tls_port()));
        expect_client_refused(errc::tls_failed, with(tls.unrelated_client), place(server.tls_port()));
    }
}

TEST_F(ConnectTls, TlsToAPlainPort) {
    redis_server server{{.requirepass = password}};
    for (int i = 0; i < 3; ++i) {  // what the server makes of it depends on the random bytes of the handshake
        client subject{"rediss://:hunter2@" + at_port(server.port()) + "?timeout=1s&verify=false"};
        expect_refusal(errc::tls_unexpected, at_port(server.port()), [&] { subject.ping(); });
    }
}

TEST_F(ConnectTls, PlainToATlsPort) {
    redis_server server{{.tls = true, .requirepass = password}};
    for (int i = 0; i < 5; ++i) {
        expect_client_refused(errc::tls_expected, "redis://:hunter2@" + at_port(server.tls_port()),
                              at_port(server.tls_port()));
    }
}

}  // namespace
}  // namespace holdfast::testing::connect_tls_test
