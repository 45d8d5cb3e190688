// A primary that sentinels watch over: found by its name, followed when another one takes over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <cstdlib>
#include <string>

#include "integration/refusal.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Sentinel, ALockIsTakenOnThePrimaryThatTheSentinelsName) {
    sentinel_set set;
    client subject{set.url()};
    mutex lock{subject, "stock"};
    lease held = lock.acquire();
    EXPECT_EQ(set.primary().call({"GET", "hf:{stock}"}).text, held.id());
    EXPECT_FALSE(held.renew());
    EXPECT_FALSE(held.release());
    shared_mutex catalog{subject, "catalog"};
    EXPECT_TRUE(catalog.try_acquire_shared());
    EXPECT_EQ(subject.server(), set.url() + "/0");
}

}  // namespace
}  // namespace holdfast::testing
