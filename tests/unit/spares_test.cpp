// What is used again must not remember its last use.
#include "engine/spares.hpp"

#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::spares_test {
namespace {

using namespace std::chrono_literals;

const instant later{5s};

void expect_as_new(const pending_work::poll_of_nodes& poll) {
    EXPECT_EQ(poll.request, nullptr);
    EXPECT_EQ(poll.answer_by, never);
    EXPECT_FALSE(poll.asked_in_vain);
    EXPECT_EQ(poll.done + poll.open + poll.holders + poll.waiters, 0U);
    EXPECT_FALSE(poll.why_not);
}

void use(pending_work::poll_of_nodes& poll, hold_completion& by) {
    poll.request = &by;
    poll.answer_by = later;
    poll.asked_in_vain = true;
    poll.done = poll.open = poll.holders = poll.waiters = 1;
    poll.why_not = refusal{errc::lost, "", {}, {}};
}

TEST(Spares, WhatIsTakenAgainIsTheSameObjectAsNew) {
    testing::counting_random random;
    const auto whole = hold::make(hold_id(1, random), hold_terms(acquire_terms{}), 1);
    testing::recorded_request wanted;
    testing::recorded_answer asked;
    spares<pending_work> kept;
    std::unique_ptr<pending_work> used = kept.take();
    pending_work* const place = used.get();
    used->whole = whole.get();
    used->acquisition.request = &wanted;
    used->heal_at = used->acquisition.asked_at = used->acquisition.reach_by = used->acquisition.gather_until = later;
    used->acquisition.limit = {waiting::not_at_all, later};
    used->acquisition.gather_for = 7ms;
    used->acquisition.said_no = refusal{errc::busy, "somebody has it", {}, {}};
    used->ticket = "1700000000000000";
    use(used->releasing, asked);
    use(used->renewing, asked);
    use(used->changing, asked);
    kept.give_back(std::move(used));

    const std::unique_ptr<pending_work> again = kept.take();
    ASSERT_EQ(again.get(), place);
    EXPECT_EQ(again->whole, nullptr);
    EXPECT_EQ(again->heal_at, never);
    EXPECT_EQ(again->ticket, "");
    EXPECT_EQ(again->acquisition.request, nullptr);
    EXPECT_EQ(again->acquisition.limit.wait, waiting::in_queue);
    EXPECT_EQ(again->acquisition.limit.deadline, never);
    EXPECT_EQ(again->acquisition.asked_at, instant{});
    EXPECT_EQ(again->acquisition.reach_by, never);
    EXPECT_EQ(again->acquisition.gather_until, never);
    EXPECT_EQ(again->acquisition.gather_for, 0ms);
    EXPECT_FALSE(again->acquisition.said_no);
    expect_as_new(again->releasing);
    expect_as_new(again->renewing);
    expect_as_new(again->changing);
}

TEST(Spares, NothingIsKeptOfWhatIsNotThere) {
    spares<pending_work> kept;
    kept.give_back(nullptr);
    EXPECT_NE(kept.take(), nullptr);
}

TEST(RareRefusal, IsNoneUntilOneIsGiven) {
    rare_refusal why;
    EXPECT_FALSE(why);
    EXPECT_FALSE(why.copy());
    why = refusal{errc::busy, "taken", 3ms, "somebody"};
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::busy);
    EXPECT_EQ((*why).holder, "somebody");
    ASSERT_TRUE(why.copy());
    EXPECT_EQ(why.copy()->detail, "taken");
    why.reset();
    EXPECT_FALSE(why);
}

}  // namespace
}  // namespace holdfast::engine::spares_test
