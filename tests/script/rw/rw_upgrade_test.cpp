// Upgrade and downgrade: from reading to writing and back without a gap.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_upgrade_test {
namespace {

using ::testing::ElementsAre;

class RwUpgrade : public rw_rows {};

TEST_F(RwUpgrade, OfTheSoleReaderIsGrantedAtOnceWithANewTokenAndAFullLease) {  // R22, R26
    const std::string token = reads(ann);
    pass(1000);
    const std::string second = upgraded(ann, token);
    EXPECT_GT(std::stoll(second), std::stoll(token));
    EXPECT_EQ(held(), read_and_written_by(ann));
    EXPECT_EQ(grant_of(ann), "b " + second);
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    EXPECT_THAT(upgrade(ann, token), IsGranted(second)) << "asked again after a lost reply";
    expect_all_keys_expire();
}

TEST_F(RwUpgrade, OfAWriteHoldWhoseDowngradeIsStillOnItsWayTakesATokenThatTheDowngradeDoesNotName) {  // §4.3
    const std::string first = writes(ann);
    const std::string second = upgraded(ann, first);
    EXPECT_GT(std::stoll(second), std::stoll(first));
    EXPECT_THAT(downgrade(ann, first), IsHeldByOthers(minute, ann)) << "an old copy that runs late";
    EXPECT_EQ(held(), read_and_written_by(ann));
}

// A server that has lost data: the caller was downgraded, and upgraded, and downgraded again since.
TEST_F(RwUpgrade, OfAWriteHoldFromBeforeTheGrantThatItNamesTakesANewToken) {  // §4.3
    const std::string lost = std::to_string(std::stoll(writes(ann)) + 1000);
    pass(1000);
    const std::string fresh = upgraded(ann, lost);
    EXPECT_GT(std::stoll(fresh), std::stoll(lost));
    EXPECT_EQ(held(), read_and_written_by(ann));
    EXPECT_EQ(grant_of(ann), "b " + fresh);
}

TEST_F(RwUpgrade, NeverCutsALongerLease) {  // R28
    const std::string token = reads(ann, hour);
    upgraded(ann, token);
    EXPECT_EQ(deadline(ann), now_ms() + hour);
    EXPECT_EQ(left(lock), hour);
}

TEST_F(RwUpgrade, RefusedLeavesTheReadHoldAsItWas) {  // R26
    const std::string token = reads(ann);
    reads(bob);
    const keyspace before = everything();
    EXPECT_THAT(upgrade(ann, token), IsRefusedFor("reading", minute, bob));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwUpgrade, WaitsInFrontOfTheQueueAndKeepsNewReadersOut) {  // R26, R29
    for (const char* preference : {"arrival", "readers", "writers"}) {
        SCOPED_TRACE(preference);
        must({"FLUSHALL"});
        prefer = preference;
        const std::string token = reads(ann);
        const std::string other = reads(bob);
        wait_to_write(cid);
        const listener writer = listens(cid);
        listener upgrader = listens(ann);
        EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(bob, 0, minute));
        EXPECT_THAT(queued_ids(), ElementsAre(ann, cid));
        EXPECT_THAT(read(dan), IsRefusedFor("reserved", minute, bob));
        EXPECT_THAT(wait_to_read(dan), IsQueued(bob, 2, minute));
        EXPECT_THAT(release(bob, other), IsReleased(2, 1));
        EXPECT_EQ(held(), read_and_written_by(ann));
        EXPECT_EQ(upgrader.next(), "grant " + ann + " " + value(fence));
        EXPECT_EQ(grant_of(ann), "b " + value(fence));
        EXPECT_THAT(queued_ids(), ElementsAre(cid, dan));
    }
}

TEST_F(RwUpgrade, SecondOneIsToldOfTheDeadlockAndKeepsItsReadHold) {  // R31
    const std::string first = reads(ann);
    const std::string second = reads(bob);
    wait_to_upgrade(ann, first);
    const listener ear = listens(ann);
    const keyspace before = everything();
    EXPECT_THAT(wait_to_upgrade(bob, second), IsRefusedFor("deadlock", minute, ann));
    EXPECT_THAT(upgrade(bob, second), IsRefusedFor("deadlock", minute, ann));
    EXPECT_EQ(everything(), before);
    EXPECT_THAT(release(bob, second), IsReleased(0, 1));
    EXPECT_EQ(held(), read_and_written_by(ann));
}

TEST_F(RwUpgrade, FirstOnesPollKeepsItsPosition) {  // R26
    const std::string token = reads(ann);
    reads(bob);
    const listener ear = listens(ann);
    const redis_reply first = wait_to_upgrade(ann, token);
    for (const std::string& ticket : {std::string{"0"}, ticket_of(first)}) {
        const redis_reply again = wait_to(wish::upgrade, ann, {.ticket = ticket}, token);
        EXPECT_THAT(again, IsQueued(bob, 0, minute));
        EXPECT_EQ(ticket_of(again), ticket_of(first));
    }
}

TEST_F(RwUpgrade, WithASmallerTicketDisplacesTheWaiter) {  // §6, for a quorum
    const std::string first = reads(ann);
    const std::string second = reads(bob);
    const listener a = listens(ann), b = listens(bob);
    const std::string ticket = ticket_of(wait_to_upgrade(ann, first));
    EXPECT_THAT(wait_to(wish::upgrade, bob, {.ticket = "17"}, second), IsQueued(ann, 0, minute));
    EXPECT_THAT(wait_to(wish::upgrade, ann, {.ticket = ticket}, first), IsRefusedFor("deadlock", minute, bob));
    EXPECT_THAT(queued_ids(), ElementsAre(bob));
}

TEST_F(RwUpgrade,
       OfAPollThatFindsItselfAloneLeavesTheQueue) {  // a place left behind would write again after a downgrade
    const std::string token = reads(ann);
    reads(bob, 1000);
    const listener ear = listens(ann);
    const std::string ticket = ticket_of(wait_to_upgrade(ann, token));
    pass(1001);  // bob's lease is over
    const redis_reply poll = wait_to(wish::upgrade, ann, {.ticket = ticket}, token);
    EXPECT_THAT(poll, IsGranted(value(fence)));
    EXPECT_TRUE(queued_ids().empty());
    EXPECT_TRUE(hash(waiters).empty());
    EXPECT_THAT(downgrade(ann, value(fence)), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({ann}));
}

TEST_F(RwUpgrade, OfAHoldThatIsOverSaysSo) {  // R31
    const std::string token = reads(ann, 1000);
    reads(bob);
    pass(1001);
    EXPECT_THAT(upgrade(ann, token), IsVerdict(-1));
    EXPECT_THAT(upgrade(cid, "5"), IsVerdict(-1)) << "never read at all";
    EXPECT_THAT(upgrade(bob, "5"), IsVerdict(-1)) << "reads by another grant";
    EXPECT_EQ(held(), read_by({bob}));
}

TEST_F(RwUpgrade, WhoseReadLeaseEndsInTheQueueBlocksNobody) {  // R29
    const std::string token = reads(ann, 1000);
    reads(bob);
    const listener ear = listens(ann), other = listens(cid);
    wait_to_upgrade(ann, token);
    wait_to_read(cid);
    pass(1001);
    EXPECT_THAT(wait_to_upgrade(ann, token), IsVerdict(-1));
    EXPECT_EQ(held(), read_by({bob, cid})) << "whoever finds it out serves the queue";
    EXPECT_TRUE(queued_ids().empty());
}

// The hold was upgraded and downgraded before, so it is known by another token than it was; then it is to be upgraded
// again, and nobody says that the other reader's lease has ended.
TEST_F(RwUpgrade, IsToldWhenALateCopyOfAnEarlierRequestFindsItDue) {  // R32
    const std::string first = reads(ann);
    const std::string second = upgraded(ann, first);
    downgrade(ann, second);
    for (const bool upgrades : {true, false}) {
        SCOPED_TRACE(upgrades ? "upgrade" : "downgrade");
        const std::string token = grant_of(ann).substr(2);
        reads(bob, 1000);
        listener ear = listens(ann);
        wait_to_upgrade(ann, token);
        pass(1001);
        if (upgrades) {
            EXPECT_THAT(wait_to_upgrade(ann, first), IsVerdict(-1));
        } else {
            EXPECT_THAT(downgrade(ann, first), IsHeldByOthers(minute, ann));
        }
        EXPECT_EQ(grant_of(ann), "b " + value(fence));
        EXPECT_EQ(ear.next(), "grant " + ann + " " + value(fence));
        downgrade(ann, value(fence));
    }
}

TEST_F(RwUpgrade, CancelledLeavesTheReadHoldAndLetsOthersIn) {  // R26
    const std::string token = reads(ann);
    reads(bob);
    const listener upgrader = listens(ann);
    listener reader = listens(cid);
    wait_to_upgrade(ann, token);
    wait_to_read(cid);
    EXPECT_THAT(cancel(ann), Holds("r", token));
    EXPECT_EQ(held(), read_by({ann, bob, cid}));
    EXPECT_EQ(reader.next(), "grant " + cid + " " + value(fence));
    EXPECT_TRUE(queued_ids().empty());
    const keyspace before = everything();
    EXPECT_THAT(cancel(ann), Holds("r", token)) << "repeatable";
    EXPECT_THAT(cancel(dan), IsVerdict(0));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwUpgrade, CancelledTellsTheNewFirstWaiterToPoll) {  // §6: only the first knows the holders' deadlines
    const std::string token = reads(ann);
    reads(bob);
    const listener upgrader = listens(ann);
    listener writer = listens(cid);
    wait_to_write(cid);
    wait_to_upgrade(ann, token);
    cancel(ann);
    EXPECT_EQ(writer.next(), "poll " + cid);
}

TEST_F(RwUpgrade, CancelTakesNoGrantBack) {
    const std::string token = reads(ann);
    const std::string second = upgraded(ann, token);
    EXPECT_THAT(cancel(ann), Holds("b", second));
    EXPECT_EQ(held(), read_and_written_by(ann));
}

class RwDowngrade : public rw_rows {};

TEST_F(RwDowngrade, IsOneStepFromWritingToReading) {  // R27
    const std::string token = writes(ann);
    pass(1000);
    EXPECT_THAT(downgrade(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({ann}));
    EXPECT_EQ(grant_of(ann), "r " + token);
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    const keyspace before = everything();
    EXPECT_THAT(downgrade(ann, token), IsReleased(0, 1)) << "repeatable";
    EXPECT_EQ(everything(), before);
}

TEST_F(RwDowngrade, OfOneWhoDoesBothIsTheEndOfItsWriting) {  // R24
    const std::string token = upgraded(ann, reads(ann));
    EXPECT_THAT(downgrade(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({ann}));
}

TEST_F(RwDowngrade, LetsTheWaitingReadersInInTheSameScript) {  // R27, R32
    const std::string token = writes(ann);
    listener b = listens(bob), c = listens(cid);
    wait_to_read(bob);
    wait_to_read(cid);
    wait_to_write(dan);
    const listener d = listens(dan);
    EXPECT_THAT(downgrade(ann, token), IsReleased(1, 3));
    EXPECT_EQ(held(), read_by({ann, bob, cid}));
    EXPECT_EQ(b.next(), grant_of(bob).replace(0, 1, "grant " + bob));
    EXPECT_EQ(c.next(), grant_of(cid).replace(0, 1, "grant " + cid));
    EXPECT_THAT(queued_ids(), ElementsAre(dan));
}

TEST_F(RwDowngrade, ByTheTokenOfAnotherGrantChangesNothing) {  // §4.3
    const std::string first = reads(ann);
    const std::string second = upgraded(ann, first);
    const keyspace before = everything();
    EXPECT_THAT(downgrade(ann, first), IsHeldByOthers(minute, ann));
    EXPECT_THAT(release(ann, first), IsHeldByOthers(minute, ann));
    EXPECT_THAT(downgrade(bob, second), IsHeldByOthers(minute, ann));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwDowngrade, ReaderWhoWritesMayStopReading) {  // R23: in write mode only rcount goes
    const std::string token = upgraded(ann, reads(ann));
    EXPECT_THAT(stop_reading(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), written_by(ann));
    EXPECT_EQ(grant_of(ann), "w " + token);
    const keyspace before = everything();
    EXPECT_THAT(stop_reading(ann, token), IsReleased(0, 1));
    EXPECT_EQ(everything(), before);
}

}  // namespace
}  // namespace holdfast::testing::rw_upgrade_test
