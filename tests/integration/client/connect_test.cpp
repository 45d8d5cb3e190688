// Servers that cannot be reached, do not let us in, or do not speak as expected on that port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <fstream>

#include "integration/refusal.hpp"
#include "support/redis_server.hpp"
#include "support/sockets.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::connect_test {
namespace {

using ::testing::HasSubstr;

TEST(Connect, WrongHostName) {
    expect_client_refused(errc::host_not_found, "redis://:hunter2@no-such-host.invalid:1?timeout=20s",
                          "no-such-host.invalid");
}

TEST(Connect, RefusedPort) {
    const reserved_port nobody = reserve_port();
    expect_client_refused(errc::connection_refused, "redis://:hunter2@" + at_port(nobody.port), at_port(nobody.port));
}

TEST(Connect, MissingUnixSocket) {
    const temp_directory empty;
    const std::string path = empty.path().string() + "/none.sock";
    expect_client_refused(errc::connection_refused, "unix://:hunter2@" + path, path);
}

TEST(Connect, RefusedTlsPort) {
    const reserved_port nobody = reserve_port();
    expect_client_refused(errc::connection_refused, "rediss://:hunter2@" + at_port(nobody.port), at_port(nobody.port));
}

TEST(Connect, OverEveryKindOfStream) {
    redis_server server{{.unix_socket = true, .tls = true, .requirepass = password}};
    for (const std::string& url :
         {server.url(), server.unix_url(), server.tls_url() + "?ca_file=" + server.tls().ca.string()}) {
        client subject{url};
        subject.ping();
        mutex lock{subject, "stock"};
        EXPECT_TRUE(lock.try_acquire()) << url;
        EXPECT_THAT(subject.server(), ::testing::Not(HasSubstr(password)));
    }
}

TEST(Connect, WithDatabaseAndName) {
    redis_server server;
    client subject{server.url() + "/5?client_name=teller"};
    mutex lock{subject, "stock"};
    const lease held = lock.acquire();
    EXPECT_THAT(server.call({"CLIENT", "LIST"}).text, HasSubstr("name=teller"));
    EXPECT_THAT(server.call({"INFO", "keyspace"}).text, HasSubstr("db5:keys="));
    EXPECT_EQ(server.call({"EXISTS", "hf:{stock}"}).integer, 0);
}

TEST(Connect, ADatabaseThatDoesNotExist) {
    redis_server server;
    expect_client_refused(errc::no_such_database, server.url() + "/999", at_port(server.port()));
}

TEST(Connect, WrongPassword) {
    redis_server server{{.requirepass = "right"}};
    expect_client_refused(errc::wrong_password, "redis://:hunter2@" + at_port(server.port()), at_port(server.port()));
    expect_client_refused(errc::wrong_password, "redis://nobody:hunter2@" + at_port(server.port()),
                          at_port(server.port()));
}

TEST(Connect, NoPasswordWhereOneIsNeeded) {
    redis_server server{{.requirepass = "right"}};
    expect_client_refused(errc::auth_required, "redis://" + at_port(server.port()), at_port(server.port()));
}

TEST(Connect, PasswordFromFileOrEnvironment) {
    redis_server server{{.requirepass = password}};
    const temp_directory directory;
    const std::string file = directory.path().string() + "/secret";
    std::ofstream{file} << password << "\n";
    client from_file{"redis://" + at_port(server.port()) + "?password_file=" + file};
    from_file.ping();
    ::setenv("HOLDFAST_TEST_PASSWORD", password.c_str(), 1);
    client from_environment{"redis://" + at_port(server.port()) + "?password_env=HOLDFAST_TEST_PASSWORD"};
    from_environment.ping();
}

class ConnectTls : public ::testing::Test {
protected:
    static std::string url(int port, const std::string& options) {
        return "rediss://:hunter2@localhost:" + std::to_string(port) + "?timeout=5s&" + options;
    }
    static std::string place(int port) { return "localhost:" + std::to_string(port); }
};

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
}  // namespace holdfast::testing::connect_test
