// Renewals of very many holds: not all of them at once.
#include <deque>

#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_busy_test {
namespace {

using namespace testing;

class loss_counter final : public silent_observer {
public:
    std::size_t losses = 0;

private:
    void on_lost(const std::string&, errc) override { ++losses; }
};

class EngineBusy : public ::testing::Test {
protected:
    EngineBusy() {
        server.belong_to(subject, 0);
        for (std::size_t i = 0; i < holds; ++i) {
            recorded_request& request = requests.emplace_back();
            subject.acquire(request, {.keys = keys_for(std::to_string(i)), .options = {.lease = 10'000ms}}, now);
        }
        server.send(now);
        for (std::size_t i = 0; i < holds; ++i) server.receive(list({"1", "42"}), now);
    }

    /// Lets so much time pass, and says how many renewals went out.
    std::size_t renewals_within(milliseconds time) {
        std::size_t asked = 0;
        for (const instant end = now + time; now < end; now += 1ms) {
            subject.on_timer(now);
            asked += server.send(now).size();
        }
        return asked;
    }

    static constexpr std::size_t holds = 20;
    counting_random random;
    loss_counter observing;
    played_server server;
    engine subject{{.most_renewals = 4}, {{&server, "redis://h"}}, random, observing};
    std::deque<recorded_request> requests;
    instant now{1h};
};

TEST_F(EngineBusy, HasSoManyRenewalsUnderWayAndTheOthersGiveWay) {
    ASSERT_EQ(renewals_within(2900ms), 0U);
    EXPECT_EQ(renewals_within(500ms), 4U) << "all 20 are due by now, and no answer came";
    for (int i = 0; i < 4; ++i) server.receive(list({"1"}), now);
    EXPECT_EQ(renewals_within(700ms), 4U);
    EXPECT_EQ(observing.losses, 0U);
}

TEST_F(EngineBusy, AsksForAllOfThemAnEighthOfALeaseLaterAtTheLatest) {
    ASSERT_EQ(renewals_within(4600ms), 20U) << "a third of the lease and an eighth";
    for (std::size_t i = 0; i < holds; ++i) server.receive(list({"1"}), now);
    EXPECT_EQ(renewals_within(1300ms), 0U);
    EXPECT_EQ(observing.losses, 0U);
}

// Those of other callers do not count: they may go on for ever.
TEST_F(EngineBusy, HoldsUpNoRenewalForOtherQuestions) {
    std::deque<recorded_request> others(10);
    for (recorded_request& each : others)
        subject.acquire(each, {.keys = keys_for("x"), .options = {.lease = 10'000ms}}, now);
    EXPECT_EQ(server.send(now).size(), 10U);
    EXPECT_EQ(renewals_within(2900ms), 0U);
    EXPECT_EQ(renewals_within(500ms), 4U);
}

}  // namespace
}  // namespace holdfast::engine::engine_busy_test
