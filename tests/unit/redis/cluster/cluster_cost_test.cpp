// An event of one member costs nothing per command that waits for another member.
//
// Counted in allocations, which do not depend on the speed of the machine: a pass over a queue allocates a new one.
#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "unit/counted_allocations.hpp"
#include "unit/redis/cluster/cluster_driver.hpp"

namespace holdfast::redis::cluster_cost_test {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using life = command::state;

class ClusterCost : public testing::cluster_fixture {
protected:
    std::size_t cost_of_an_event() {
        const std::size_t before = allocations;
        router.on_timer(now);
        return allocations - before;
    }
};

TEST_F(ClusterCost, NothingWhereNothingWaits) {
    start_with_both();
    EXPECT_EQ(cost_of_an_event(), 0U);
}

TEST_F(ClusterCost, NothingForCommandsThatWaitForAMissingMember) {
    start_with_both();
    fail(two);
    std::vector<std::unique_ptr<recorded_command>> many;
    for (int i = 0; i < 1000; ++i) {
        many.push_back(std::make_unique<recorded_command>(log, "GET"));
        many.back()->set_payload(encoded({"GET", key_a}));
        router.submit(*many.back(), now);
    }
    settle();
    EXPECT_EQ(cost_of_an_event(), 0U);
    recorded_command b = get("GET", key_b);
    submit(b);
    EXPECT_EQ(b.life(), life::written);
    come_up(two);
    EXPECT_EQ(many.front()->life(), life::written) << "when it is back they go";
    EXPECT_EQ(many.back()->life(), life::written);
}

TEST_F(ClusterCost, NothingForCommandsThatRest) {
    start_with_both();
    recorded_command rests = two_keys("rests", key_b);
    submit(rests);
    say(one, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    EXPECT_EQ(cost_of_an_event(), 0U);
    pass(5ms);
    EXPECT_EQ(rests.life(), life::written);
}

}  // namespace
}  // namespace holdfast::redis::cluster_cost_test
