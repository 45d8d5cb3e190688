#include "engine/spares.hpp"

#include <gtest/gtest.h>

#include "engine/hold.hpp"

namespace holdfast::engine::spares_test {
namespace {

// The next hold must not see the last one's ticket, deadlines or answers.
TEST(Spares, GiveOutWhatWasPendingOnceItIsClear) {
    spares<pending_work> some;
    auto used = some.take();
    const pending_work* const same = used.get();
    used->asked.asked_at = instant(std::chrono::seconds(1));
    used->asked.gather_for = milliseconds(5);
    used->asked.said_no = refusal{};
    used->ticket = "1700";
    used->heal_at = {};
    used->about(answer_to::renewal).is_used = true;
    used->about(answer_to::renewal).done = 2;
    used->about(answer_to::renewal).why_not = refusal{};
    used->clear();
    some.give_back(std::move(used));

    const auto again = some.take();
    ASSERT_EQ(again.get(), same);
    EXPECT_EQ(again->asked.asked_at, instant());
    EXPECT_EQ(again->asked.gather_for, milliseconds(0));
    EXPECT_FALSE(again->asked.said_no);
    EXPECT_TRUE(again->ticket.empty());
    EXPECT_EQ(again->heal_at, never);
    EXPECT_EQ(again->about(answer_to::renewal).done, 0U);
    EXPECT_FALSE(again->about(answer_to::renewal).why_not);
}

TEST(Spares, GiveOutANodesRequestsOnceTheyAreClear) {
    spares<node_requests> some;
    auto used = some.take();
    const node_requests* const same = used.get();
    used->acquisition.at = acquire_stage::queued;
    used->acquisition.ticket = "1700";
    used->acquisition.holder = "somebody";
    used->acquisition.trouble = refusal{};
    used->release_again_at = {};
    used->clear();
    some.give_back(std::move(used));

    const auto again = some.take();
    ASSERT_EQ(again.get(), same);
    EXPECT_TRUE(again->idle());
    EXPECT_TRUE(again->acquisition.ticket.empty());
    EXPECT_TRUE(again->acquisition.holder.empty());
    EXPECT_FALSE(again->acquisition.trouble);
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
    why = refusal{errc::busy, "taken", milliseconds(3), "somebody"};
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
