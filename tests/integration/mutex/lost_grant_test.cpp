// A grant that no replica had when its server died: somebody else is let in, and the tokens tell the two apart.
//
// That is what a failover may cost without `replicas`. The servers of this test take writes without a replica at hand,
// which docs/deployment.md advises against: here the grant is to be lost.
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <string>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/sentinel_set.hpp"

namespace holdfast::testing::lost_grant_test {
namespace {

using namespace std::chrono_literals;

class LostGrant : public ::testing::Test {
protected:
    /// The primary goes, and with it whatever is granted meanwhile.
    template <typename Grant>
    void lose_what_is_granted_by(Grant grant) {
        redis_server& former = set.primary();
        for (redis_server& each : set.servers) {
            if (&each != &former) each.pause();
        }
        // Or they would read, once awake, what was sent to them in their sleep.
        former.call({"CLIENT", "KILL", "TYPE", "replica"});
        grant();
        former.kill();
        for (redis_server& each : set.servers) {
            if (&each != &former) each.resume();
        }
        ASSERT_TRUE(set.has_replaced(former));
    }

    sentinel_set set;
    client subject{set.url()};
    client other{set.url()};
};

TEST_F(LostGrant, OfAMutexIsToldApartByItsTokenAndItsHolderIsTold) {
    mutex first{subject, "stock", {.lease = 6s}};
    lease lost_one;
    ASSERT_NO_FATAL_FAILURE(lose_what_is_granted_by([&] { lost_one = first.acquire(); }));
    mutex second{other, "stock", {.lease = 60s}};
    const lease now_held = second.try_acquire_for(an_age);
    ASSERT_TRUE(now_held);
    EXPECT_GT(now_held.token(), lost_one.token()) << "who looks at tokens refuses the former holder";
    EXPECT_TRUE(eventually([&] { return lost_one.lost().stop_requested(); }, an_age));
}

TEST_F(LostGrant, OfAWriterIsToldApartByItsTokenAndItsHolderIsTold) {
    shared_mutex first{subject, "catalog", {.lease = 6s}};
    lease lost_one;
    ASSERT_NO_FATAL_FAILURE(lose_what_is_granted_by([&] { lost_one = first.acquire(); }));
    shared_mutex second{other, "catalog", {.lease = 60s}};
    const lease now_held = second.try_acquire_for(an_age);
    ASSERT_TRUE(now_held);
    EXPECT_GT(now_held.token(), lost_one.token());
    EXPECT_TRUE(eventually([&] { return lost_one.lost().stop_requested(); }, an_age));
}

}  // namespace
}  // namespace holdfast::testing::lost_grant_test
