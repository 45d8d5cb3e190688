// A build without OpenSSL (HOLDFAST_TLS=OFF) says at once why it cannot do what the URL wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <string>

#include "integration/refusal.hpp"

namespace holdfast::testing::without_tls_test {
namespace {

TEST(WithoutTls, AUrlThatNeedsItIsRefusedAndSaysWhy) {
    for (const std::string url :
         {"rediss://:hunter2@h", "rediss+cluster://:hunter2@h", "rediss+sentinel://:hunter2@h/p",
          "redis+sentinel://:hunter2@h/p?sentinel_tls=true"}) {
        expect_refusal(errc::unsupported, "HOLDFAST_TLS=OFF", [&] { client{url}; });
    }
}

}  // namespace
}  // namespace holdfast::testing::without_tls_test
