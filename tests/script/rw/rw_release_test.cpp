// rw/release while nobody waits: what is left, and what the answer says.
#include <functional>

#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_release_test {
namespace {

class RwRelease : public rw_rows {};

TEST_F(RwRelease, OfTheLastReaderDeletesTheKeys) {  // R23
    const std::string token = reads(ann);
    EXPECT_THAT(release(ann, token), IsReleased(0, 0));
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
    EXPECT_EQ(value(fence), token);
}

TEST_F(RwRelease, OfOneReaderLeavesTheOthersAndSaysHowMany) {  // R23, R31
    const std::string token = reads(ann);
    reads(bob);
    reads(cid);
    EXPECT_THAT(release(ann, token), IsReleased(0, 2));
    EXPECT_EQ(held(), read_by({bob, cid}));
    EXPECT_EQ(deadline(ann), 0);
    EXPECT_EQ(hash(grants).count(ann), 0U);
}

TEST_F(RwRelease, OfTheWriterDeletesTheKeys) {  // R24
    EXPECT_THAT(release(ann, writes(ann)), IsReleased(0, 0));
    EXPECT_EQ(everything().size(), 1U);
}

TEST_F(RwRelease, OfOneWhoReadsAndWritesEndsBoth) {  // R24
    EXPECT_THAT(release(ann, upgraded(ann, reads(ann))), IsReleased(0, 0));
    EXPECT_EQ(everything().size(), 1U);
}

TEST_F(RwRelease, TwiceIsToldAndChangesNothing) {  // R05, R31
    const std::string token = reads(ann);
    release(ann, token);
    const keyspace before = everything();
    EXPECT_THAT(release(ann, token), IsVerdict(0)) << "not held at all";
    EXPECT_EQ(everything(), before);
    const std::string other = reads(bob);
    const keyspace with_bob = everything();
    EXPECT_THAT(release(ann, token), IsHeldByOthers(minute, bob)) << "not held by you";
    EXPECT_THAT(release(ann, "0"), IsHeldByOthers(minute, bob));
    EXPECT_THAT(release(bob, token), IsHeldByOthers(minute, bob)) << "another grant's token";
    EXPECT_EQ(everything(), with_bob);
}

TEST_F(RwRelease, OfALeaseThatEndedLeavesTheNextHolderAlone) {  // R06
    const std::string token = writes(ann, 1000);
    pass(1000);
    writes(bob);
    const keyspace before = everything();
    EXPECT_THAT(release(ann, token), IsHeldByOthers(minute, bob));
    EXPECT_THAT(downgrade(ann, token), IsHeldByOthers(minute, bob));
    EXPECT_THAT(renew(ann), IsHeldByOthers(minute, bob));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwRelease, WithoutATokenGivesUpHoldAndPositionInTheQueue) {
    reads(ann);
    wait_to_write(bob);
    EXPECT_THAT(release(bob, "0"), IsHeldByOthers(minute, ann));
    EXPECT_TRUE(queued_ids().empty());
    EXPECT_TRUE(hash(waiters).empty());
    EXPECT_THAT(release(ann, "0"), IsReleased(0, 0));
}

// --- leases ----------------------------------------------------------------------------------------------

class RwLease : public rw_rows {
protected:
    // How many commands one call runs on the server, those inside the script included.
    std::int64_t commands_of(const std::function<void()>& call) {
        must({"CONFIG", "RESETSTAT"});
        call();
        const std::string stats = must({"INFO", "commandstats"}).text;
        std::int64_t total = 0;
        for (std::size_t at = 0; (at = stats.find("calls=", at)) != std::string::npos; ++at) {
            total += std::stoll(stats.substr(at + 6));
        }
        return total;
    }
};

TEST_F(RwLease, OfADeadReaderEndsHoweverOftenTheOthersRenew) {  // R28, R46
    reads(ann, 10'000);
    reads(bob, 10'000);
    for (int i = 0; i < 3; ++i) {
        pass(3000);
        renew(bob, 10'000);
    }
    EXPECT_EQ(held(), read_by({ann, bob})) << "its lease has a second left";
    pass(1000);
    EXPECT_THAT(renew(bob, 10'000), Holds("r", grant_of(bob).substr(2)));
    EXPECT_EQ(held(), read_by({bob}));
}

TEST_F(RwLease, OfTheWriterEndsByItself) {  // R46
    writes(ann, 1000);
    wait_to_write(bob);
    pass(999);
    EXPECT_THAT(write(cid), IsRefusedFor("writing", 1, ann));
    pass(1);
    EXPECT_EQ(code(write(cid)), 1);
}

TEST_F(RwLease, ThatIsShorterNeverCutsALongerOne) {  // R28
    reads(ann, hour);
    reads(bob, 1000);
    EXPECT_EQ(left(lock), hour);
    EXPECT_EQ(left(leases), hour);
    EXPECT_EQ(left(grants), hour);
    renew(ann, 1000);
    EXPECT_EQ(deadline(ann), now_ms() + hour);
    read(ann, {.lease = 1000});
    EXPECT_EQ(deadline(ann), now_ms() + hour);
    EXPECT_EQ(left(lock), hour);
}

TEST_F(RwLease, ThatIsTheLongestIsTheKeysLife) {  // R28
    const std::string token = reads(ann, hour);
    reads(bob);
    release(ann, token);
    EXPECT_EQ(left(lock), minute);
    EXPECT_EQ(left(leases), minute);
    pass(minute + 1);
    EXPECT_EQ(everything().size(), 1U) << "the mark alone, without a script having run";
}

TEST_F(RwLease, IsRenewedForReadersAndForTheWriterAndForNobodyElse) {  // R25
    const std::string token = reads(ann);
    pass(1000);
    EXPECT_THAT(renew(ann), Holds("r", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    const std::string second = upgraded(ann, token);
    EXPECT_THAT(renew(ann), Holds("b", second));
    stop_reading(ann, second);
    pass(1000);
    EXPECT_THAT(renew(ann), Holds("w", second));
    EXPECT_EQ(left(lock), minute);
    const keyspace before = everything();
    EXPECT_THAT(renew(ann), Holds("w", second)) << "repeatable";
    EXPECT_THAT(renew(bob), IsHeldByOthers(minute, ann));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwLease, ThatIsOverIsNotRevived) {  // R25, §4.5
    reads(ann, 1000);
    reads(bob, 5000);
    pass(1000);
    EXPECT_THAT(renew(ann), IsHeldByOthers(4000, bob));
    EXPECT_EQ(held(), read_by({bob}));
    pass(4000);
    EXPECT_THAT(renew(bob), IsVerdict(0));
    EXPECT_EQ(everything().size(), 1U);
}

TEST_F(RwLease, OfTheOnlyOtherReaderEndingIsNoticedByARenewalWhichServesTheQueue) {  // R32
    const std::string token = reads(ann);
    reads(bob, 1000);
    const listener ear = listens(ann);
    wait_to_upgrade(ann, token);
    pass(1000);
    const redis_reply renewed = renew(ann);
    EXPECT_THAT(renewed, Holds("b", value(fence))) << "the renewal says what it is that is held now";
    EXPECT_EQ(held(), read_and_written_by(ann));
    EXPECT_TRUE(queued_ids().empty());
}

TEST_F(RwLease, EndsAtACostThatDoesNotGrowWithTheLiving) {  // R28
    std::int64_t commands[2][4] = {};
    for (const std::size_t many : {0U, 1U}) {
        must({"FLUSHALL"});
        for (int i = 0; i < (many == 0 ? 10 : 1000); ++i) reads(hold_id("r" + text(1000 + i)));
        const std::string me = reads(bob);
        const auto with_a_dead_one = [&](const std::function<void()>& call) {
            reads(ann, 1000);
            pass(1000);
            const std::int64_t counted = commands_of(call);
            EXPECT_EQ(deadline(ann), 0) << "it was purged";
            return counted;
        };
        commands[many][0] = with_a_dead_one([&] { renew(bob); });
        commands[many][1] = with_a_dead_one([&] { write(cid); });
        commands[many][2] = with_a_dead_one([&] { read(cid); });
        commands[many][3] = with_a_dead_one([&] { release(bob, me); });
    }
    for (const std::size_t i : {0U, 1U, 2U, 3U}) {
        EXPECT_GT(commands[0][i], 0);
        EXPECT_EQ(commands[0][i], commands[1][i]) << "call " << i;
    }
}

}  // namespace
}  // namespace holdfast::testing::rw_release_test
