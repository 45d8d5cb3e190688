// Several locks together: all of them are valid when they are returned, or none is held.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <future>
#include <memory>
#include <optional>
#include <string>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/in_background.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::lock_all_test {
namespace {

using namespace std::chrono_literals;

/// `prices` comes before `stock` in the order of all locks.
class LockAll : public ::testing::Test {
protected:
    static constexpr milliseconds brief = 3s;

    std::string holder_of(const std::string& name) { return server.call({"GET", "hf:{" + name + "}"}).text; }
    bool is_free(const std::string& name) { return server.call({"EXISTS", "hf:{" + name + "}"}).integer == 0; }
    /// The id of the hold on `prices`, once somebody has it and waits for `stock`.
    std::string first_hold_on_prices() {
        EXPECT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
        return holder_of("prices");
    }

    redis_server server;
    std::shared_ptr<metrics> counted = std::make_shared<metrics>();
    client other{server.url()};
    client subject{server.url(), {.metrics = counted}};
    mutex theirs{other, "stock"};
    mutex prices{subject, "prices", {.lease = brief}};
    mutex stock{subject, "stock"};
};

// R62
TEST_F(LockAll, ALockThatIsLostWhileALaterOneIsWaitedForIsTakenAgain) {
    lease held = theirs.acquire();
    auto taking = in_background([&] { return std::make_unique<lock_all>(stock, prices); });
    const std::string first = first_hold_on_prices();
    server.call({"DEL", "hf:{prices}"});
    ASSERT_TRUE(eventually([&] { return counted->losses >= 1; }));
    held.release();
    const auto both = taking.get();
    EXPECT_NE((*both)[1].id(), first);
    EXPECT_EQ(holder_of("prices"), (*both)[1].id());
    EXPECT_EQ(holder_of("stock"), (*both)[0].id());
    EXPECT_GT(both->validity(), 0ms);
    EXPECT_FALSE(both->lost().stop_requested());
}

// R62
TEST_F(LockAll, ALockWhoseFixedLeaseEndsWhileALaterOneIsWaitedForIsTakenAgain) {
    mutex fixed{subject, "prices", {.lease = 300ms, .renew = false}};
    lease held = theirs.acquire();
    auto taking = in_background([&] { return std::make_unique<lock_all>(fixed, stock); });
    const std::string first = first_hold_on_prices();
    EXPECT_TRUE(eventually([&] { return is_free("prices"); }));
    held.release();
    const auto both = taking.get();
    EXPECT_NE((*both)[0].id(), first);
    EXPECT_GE(counted->acquired, 4U) << "both, twice";
}

// R62: what the owner held before cannot be taken again, so there is nothing to return.
TEST_F(LockAll, AHoldOfTheCallersThatIsLostMeanwhileIsAnErrorAndNothingIsKept) {
    const owner job;
    const lease outer = prices.acquire({.owner = job});
    lease held = theirs.acquire();
    auto taking = in_background([&] { return condition_of([&] { lock_all both({.owner = job}, prices, stock); }); });
    first_hold_on_prices();
    server.call({"DEL", "hf:{prices}"});
    ASSERT_TRUE(eventually([&] { return counted->losses >= 1; }));
    held.release();
    EXPECT_EQ(to_text(taking.get()), to_text(errc::lost));
    EXPECT_TRUE(eventually([&] { return is_free("stock"); }));
}

TEST_F(LockAll, TellsTheLossOfAnyOfThemAndTheShortestValidity) {
    mutex longer{subject, "stock", {.lease = 60s}};
    lock_all both{longer, prices};
    EXPECT_LE(both.validity(), both[1].validity() + 1ms);
    EXPECT_LT(both.validity(), 2 * brief);
    lock_all moved{std::move(both)};
    EXPECT_EQ(both.size(), 0U);
    EXPECT_EQ(both.validity(), 0ms);
    EXPECT_FALSE(both.lost().stop_possible());
    const std::stop_token lost = moved.lost();
    EXPECT_FALSE(lost.stop_requested());
    server.call({"DEL", "hf:{prices}"});
    EXPECT_TRUE(eventually([&] { return lost.stop_requested(); }));
    EXPECT_LE(moved.validity(), 0ms);
    EXPECT_GT(moved[0].validity(), 0ms) << "the other is still held";
}

TEST_F(LockAll, OfNoLocksHoldsNothing) {
    const lock_all none{std::vector<std::reference_wrapper<lockable>>{}};
    EXPECT_EQ(none.size(), 0U);
    EXPECT_EQ(none.validity(), 0ms);
    EXPECT_FALSE(none.lost().stop_requested());
}

}  // namespace
}  // namespace holdfast::testing::lock_all_test
