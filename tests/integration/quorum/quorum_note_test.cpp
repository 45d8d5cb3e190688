// Notes with several servers: each has them.
#include "integration/quorum/quorum_fixture.hpp"

namespace holdfast::testing::quorum_note_test {
namespace {

class QuorumNote : public quorum_fixture {  // R54
protected:
    std::size_t with_notes() {
        return static_cast<std::size_t>(std::ranges::count_if(servers, [&](redis_server& one) {
            return one.call({"EXISTS", key + ":notes"}).integer == 1;
        }));
    }
};

HOLDFAST_ON_THREE_AND_FIVE(QuorumNote);

TEST_P(QuorumNote, IsAtEveryServerAndToldAndGoesWithTheHold) {
    mutex mine{*subject, "stock", terms()};
    mutex theirs{*other, "stock", terms()};
    lease held = mine.acquire({.note = "nightly backup"});
    EXPECT_TRUE(eventually([&] { return with_notes() == servers.size(); }));
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(to_text(why.code), to_text(errc::busy));
    EXPECT_EQ(why.note, "nightly backup");
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(eventually([&] { return with_notes() == 0; }));
}

}  // namespace
}  // namespace holdfast::testing::quorum_note_test
