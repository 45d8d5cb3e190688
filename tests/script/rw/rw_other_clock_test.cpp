// Read-write locks that a Cluster moved to a member with another clock. A key's expiry moves as a duration, but the
// deadlines in the leases are times of the old member's clock. Without a correction leases would end while their
// holders believe in them.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_other_clock_test {
namespace {

class RwOtherClock : public rw_rows {
protected:
    static constexpr std::int64_t ahead = 2 * minute;

    redis_reply renew_alone(const std::string& id) {
        return run("rw/renew_alone", {lock, leases, grants}, {id, text(minute)});
    }
};

TEST_F(RwOtherClock, AheadEndsNoLeaseEarly) {  // R28
    for (const wish wants : {wish::read, wish::write}) {
        must({"FLUSHALL"});
        ASSERT_EQ(code(acquire(ann, wants, {})), 1);
        pass(1000);
        moves_to_clock_ahead_by(ahead);
        EXPECT_THAT(write(bob), IsRefusedFor(wants == wish::read ? "reading" : "writing", minute - 1000, ann));
        EXPECT_EQ(deadline(ann), now_ms() + minute - 1000);
        pass(minute - 1001);
        EXPECT_EQ(code(write(bob)), 0);
        pass(1);
        EXPECT_EQ(code(write(bob)), 1) << "nor late";
    }
}

TEST_F(RwOtherClock, AheadKeepsEveryHoldersOwnDeadline) {  // R28
    reads(ann, 1000);
    reads(bob, 5000);
    moves_to_clock_ahead_by(ahead);
    EXPECT_THAT(write(cid), IsRefusedFor("reading", 5000, bob));
    EXPECT_EQ(deadline(ann), now_ms() + 1000);
    EXPECT_EQ(deadline(bob), now_ms() + 5000);
    pass(1000);
    EXPECT_EQ(code(renew(ann)), -1);
    EXPECT_EQ(code(renew(bob)), 1);
    expect_all_keys_expire();
}

TEST_F(RwOtherClock, AheadOnceAndAgainIsFollowed) {
    const std::string token = writes(ann);
    for (int i = 0; i < 3; ++i) {
        moves_to_clock_ahead_by(ahead);
        EXPECT_THAT(renew(ann), Holds("w", token));
        EXPECT_EQ(deadline(ann), now_ms() + minute);
        EXPECT_EQ(left(lock), minute);
        EXPECT_EQ(left(leases), minute);
        EXPECT_EQ(left(grants), minute);
    }
}

TEST_F(RwOtherClock, AheadLetsARenewalAloneBe) {  // R25
    const std::string token = reads(ann);
    reads(bob);
    pass(1000);
    moves_to_clock_ahead_by(ahead);
    EXPECT_THAT(renew_alone(ann), Holds("r", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    EXPECT_EQ(deadline(bob), now_ms() + minute - 1000);
    EXPECT_EQ(left(lock), minute);
    EXPECT_EQ(left(leases), minute);
}

TEST_F(RwOtherClock, AheadRevivesNobody) {  // §4.5
    reads(ann, 1000);
    reads(bob);
    pass(1000);
    moves_to_clock_ahead_by(ahead);
    EXPECT_THAT(renew_alone(ann), IsVerdict(3));
    EXPECT_EQ(code(renew(ann)), -1);
    EXPECT_EQ(held(), read_by({bob}));
}

TEST_F(RwOtherClock, AheadIsFollowedByAFullServer) {
    const std::string token = reads(ann);
    moves_to_clock_ahead_by(ahead);
    server_is_full();
    EXPECT_THAT(renew(ann), Holds("r", token));
    moves_to_clock_ahead_by(ahead);
    EXPECT_THAT(renew_alone(ann), Holds("r", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
}

TEST_F(RwOtherClock, AheadEndsNoForeignHoldEarly) {  // R33
    must({"HSET", lock, "mode", "read", "rcount", "1", "r:python", "1"});
    must({"PEXPIRE", lock, "30000"});
    reads(ann);
    moves_to_clock_ahead_by(ahead);
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_EQ(held().size(), 4U) << "both read";
    pass(30'000);
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_EQ(held().size(), 4U);
    pass(1);
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_EQ(held(), read_by({ann})) << "nor late";
}

// Then leases last longer, by as much; none is cut short.
TEST_F(RwOtherClock, BehindCutsNothingShort) {
    const std::string token = writes(ann);
    moves_to_clock_ahead_by(-5000);
    EXPECT_THAT(renew_alone(ann), Holds("w", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute + 5000);
    EXPECT_THAT(write(bob), IsRefusedFor("writing", minute + 5000, ann));
    EXPECT_EQ(left(lock), minute + 5000);
    EXPECT_EQ(left(leases), minute + 5000);
}

// Expiries are moments then, as deadlines are, and end early with them: see docs/guarantees.md.
TEST_F(RwOtherClock, OfTheSameServerSetForwardEndsLeases) {
    writes(ann);
    pass(minute);
    EXPECT_EQ(code(write(bob)), 1);
}

}  // namespace
}  // namespace holdfast::testing::rw_other_clock_test
