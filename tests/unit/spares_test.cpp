#include "engine/spares.hpp"

#include <gtest/gtest.h>

#include "engine/hold.hpp"

namespace holdfast::engine::spares_test {
namespace {

TEST(Spares, GiveOutWhatWasGivenBack) {
    spares<pending_work> some;
    auto used = some.take();
    const pending_work* const same = used.get();
    some.give_back(std::move(used));
    EXPECT_EQ(some.take().get(), same);
}

// The next hold must not see the last one's ticket, holder or trouble.
TEST(Spares, KeepNothingOfAnAcquisitionThatEnded) {
    node_requests used;
    used.acquisition.at = acquire_stage::queued;
    used.acquisition.poll_at = {};
    used.acquisition.ticket = "1700";
    used.acquisition.holder = "somebody";
    used.acquisition.trouble = std::make_unique<refusal>();
    used.acquisition.end();
    EXPECT_TRUE(used.idle());
    EXPECT_EQ(used.acquisition.poll_at, never);
    EXPECT_TRUE(used.acquisition.ticket.empty());
    EXPECT_TRUE(used.acquisition.holder.empty());
    EXPECT_FALSE(used.acquisition.trouble);
}

TEST(Spares, NothingIsKeptOfWhatIsNotThere) {
    spares<pending_work> kept;
    kept.give_back(nullptr);
    EXPECT_NE(kept.take(), nullptr);
}

}  // namespace
}  // namespace holdfast::engine::spares_test
