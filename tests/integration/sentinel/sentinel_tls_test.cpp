#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include "integration/refusal.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::sentinel_tls_test {
namespace {

TEST(SentinelTls, TlsToThemIsApartFromTlsToThePrimary) {
    redis_server server;
    redis_server sentinel{{.tls = true,
                           .config = {"sentinel monitor mine 127.0.0.1 " + std::to_string(server.port()) + " 1"},
                           .sentinel = true}};
    const std::string url =
        "redis+sentinel://localhost:" + std::to_string(sentinel.tls_port()) + "/mine?sentinel_tls=true";
    client subject{url + "&sentinel_ca_file=" + sentinel.tls().ca.string()};
    mutex lock{subject, "stock"};
    EXPECT_TRUE(lock.try_acquire());
    expect_client_refused(errc::certificate_untrusted, url, "localhost");
}

}  // namespace
}  // namespace holdfast::testing::sentinel_tls_test
