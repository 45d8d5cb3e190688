// A script that fails half-way is not rolled back (§4.9). So everything that can fail must fail before the first write,
// and a script that only keeps or gives back must not fail at all: keys of another type, a full server, missing rights,
// keys that were evicted one by one.
#include <functional>

#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_bad_state_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// --- keys of the wrong type ------------------------------------------------------------------------------

class RwWrongType : public rw_rows {
protected:
    // Something of another type under one of the keys, in states from which a script would write; every script.
    void expect_nothing_changes_if(const std::string& key) {
        for (const bool over : {false, true}) {
            SCOPED_TRACE(over ? "leases are over" : "leases run");
            must({"FLUSHALL"});
            const std::string token = reads(ann, 1000);
            reads(bob, 500);
            wait_to_upgrade(ann, token);
            wait_to_read(cid);
            if (over) pass(500);
            must({"DEL", key});
            if (key == fence) {
                must({"HSET", key, "field", "text"});
            } else {
                must({"SET", key, "text"});
            }
            const keyspace before = everything();
            for (const std::string& id : {ann, bob, cid, dan}) {
                for (const wish wants : {wish::read, wish::write, wish::upgrade}) {
                    EXPECT_THAT(acquire(id, wants, {}, token), IsError("WRONGTYPE"));
                    EXPECT_THAT(wait_to(wants, id, {}, token), IsError("WRONGTYPE"));
                    EXPECT_THAT(wait_to(wants, id, {.ticket = "5"}, token), IsError("WRONGTYPE"));
                }
                for (const char* what : {"", "r", "w"}) EXPECT_THAT(leave(id, "0", what), IsError("WRONGTYPE"));
                EXPECT_THAT(renew(id), IsError("WRONGTYPE"));
                EXPECT_THAT(cancel(id), IsError("WRONGTYPE"));
                EXPECT_EQ(everything(), before) << id;
            }
        }
    }
};

TEST_F(RwWrongType, OfAnyKeyIsAnErrorAndNothingElse) {
    for (const std::string& key : keys()) {
        SCOPED_TRACE(key);
        expect_nothing_changes_if(key);
    }
}

// --- a full server ---------------------------------------------------------------------------------------

class RwFullServer : public rw_rows {};

TEST_F(RwFullServer, RefusesAnAcquireAndChangesNothing) {
    reads(ann);
    server_is_full();
    const keyspace before = everything();
    EXPECT_THAT(read(bob), IsError("OOM"));
    EXPECT_THAT(wait_to_read(bob), IsError("OOM"));
    EXPECT_THAT(wait_to_write(bob), IsError("OOM"));
    EXPECT_EQ(everything(), before);
    EXPECT_THAT(write(bob), IsRefusedFor("reading", minute, ann)) << "it still tells who holds";
}

TEST_F(RwFullServer, RefusesANewReaderWhoMayPassAWaitingWriter) {  // R30
    prefer = "readers";
    reads(ann);
    wait_to_write(bob);
    const listener ear = listens(bob);
    server_is_full();
    const keyspace before = everything();
    EXPECT_THAT(read(cid), IsError("OOM"));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwFullServer, RefusesAnUpgradeAndLeavesTheReadHold) {
    const std::string token = reads(ann);
    server_is_full();
    const keyspace before = everything();
    EXPECT_THAT(upgrade(ann, token), IsError("OOM"));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwFullServer, StillRefreshesAndRenewsAHold) {  // R25
    const std::string token = reads(ann);
    server_is_full();
    pass(1000);
    EXPECT_THAT(renew(ann), Holds("r", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    pass(1000);
    EXPECT_THAT(read(ann), IsGranted(token)) << "the poll of one who holds";
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    EXPECT_EQ(left(lock), minute);
    expect_all_keys_expire();
}

TEST_F(RwFullServer, StillReleasesAndServesTheQueue) {
    const std::string token = writes(ann);
    wait_to_read(bob);
    wait_to_read(cid);
    const listener b = listens(bob), c = listens(cid);
    server_is_full();
    EXPECT_THAT(release(ann, token), IsReleased(0, 2));
    EXPECT_EQ(held(), read_by({bob, cid}));
    expect_all_keys_expire();
}

TEST_F(RwFullServer, StillDowngrades) {  // R27
    const std::string token = writes(ann);
    server_is_full();
    EXPECT_THAT(downgrade(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({ann}));
}

TEST_F(RwFullServer, StillLetsWaitersPollAndComeIn) {
    const std::string token = reads(ann);
    reads(bob, 5000);
    const listener upgrader = listens(ann), writer = listens(cid);
    const std::string front = ticket_of(wait_to_upgrade(ann, token));
    const std::string ticket = ticket_of(wait_to_write(cid));
    server_is_full();
    for (const std::string& given : {std::string{"0"}, ticket}) {
        EXPECT_THAT(wait_to(wish::write, cid, {.ticket = given}), IsQueued(ann, 1, 5000));
    }
    EXPECT_THAT(wait_to(wish::upgrade, ann, {.ticket = front}, token), IsQueued(bob, 0, 5000));
    EXPECT_THAT(queued_ids(), ElementsAre(ann, cid));
    EXPECT_THAT(cancel(ann), Holds("r", token));
    expect_all_keys_expire();
}

TEST_F(RwFullServer, StillUpgradesAWaiterWhoIsAloneNow) {
    const std::string token = reads(ann);
    reads(bob, 5000);
    const listener upgrader = listens(ann);
    const std::string ticket = ticket_of(wait_to_upgrade(ann, token));
    server_is_full();
    pass(5000);
    EXPECT_EQ(code(wait_to(wish::upgrade, ann, {.ticket = ticket}, token)), 1);
    EXPECT_EQ(held(), read_and_written_by(ann));
}

TEST_F(RwFullServer, StillPutsBackWhatWasLostUntilItIsReleased) {  // R33
    const std::string token = reads(ann);
    server_is_full();
    must({"DEL", lock});
    EXPECT_THAT(renew(ann), IsVerdict(0));
    EXPECT_EQ(held(), read_by({ann}));
    EXPECT_EQ(left(lock), minute);
    must({"DEL", lock});
    EXPECT_THAT(release(ann, token), IsVerdict(0));
    EXPECT_EQ(everything().size(), 1U);
}

// --- missing rights --------------------------------------------------------------------------------------

class RwWithoutRights : public rw_rows {};

TEST_F(RwWithoutRights, ToPublishLetsInAndLeavesTheRestToPolls) {
    const std::string token = writes(ann);
    wait_to_read(bob);
    const listener ear = listens(bob);
    must({"ACL", "SETUSER", "rows", "-publish"});
    EXPECT_THAT(release(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({bob}));
    EXPECT_THAT(wait_to_read(bob), IsGranted(grant_of(bob).substr(2)));
}

TEST_F(RwWithoutRights, ToAskWhoListensGoesByTheLastPoll) {
    const std::string token = writes(ann);
    wait_to(wish::write, bob, {.interval = 1000});
    pass(2001);
    wait_to_read(cid);
    must({"ACL", "SETUSER", "rows", "-pubsub"});
    EXPECT_THAT(release(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), read_by({cid}));
}

// --- keys that go one by one -----------------------------------------------------------------------------

class RwEvicted : public rw_rows {};

TEST_F(RwEvicted, HashIsPutBackFromTheLeasesAndTheHoldsAreLost) {  // R33
    const std::string token = reads(ann);
    reads(bob, hour);
    must({"DEL", lock});
    EXPECT_THAT(write(cid), IsRefusedFor("reading", hour, bob));
    EXPECT_EQ(held(), read_by({ann, bob}));
    EXPECT_EQ(left(lock), hour);
    must({"DEL", lock});
    EXPECT_THAT(release(ann, token), IsVerdict(0));
    EXPECT_EQ(held(), read_by({bob}));
    EXPECT_THAT(renew(bob), IsVerdict(0));
}

TEST_F(RwEvicted, HashOfAWriterIsPutBackFromTheLeases) {  // R33
    const std::string token = upgraded(ann, reads(ann));
    must({"DEL", lock});
    EXPECT_THAT(read(bob), IsRefusedFor("writing", minute, ann));
    EXPECT_EQ(held(), read_and_written_by(ann));
    must({"DEL", lock});
    EXPECT_THAT(release(ann, token), IsVerdict(0));
    EXPECT_EQ(everything().size(), 1U);
}

TEST_F(RwEvicted, HashIsPutBackAndReleasedWithoutAGhost) {  // what is put back may be given up in the same script
    const std::string token = writes(ann);
    wait_to_read(bob);
    const listener ear = listens(bob);
    must({"DEL", lock});
    EXPECT_THAT(release(ann, token), IsVerdict(0));
    EXPECT_EQ(held(), read_by({bob}));
    EXPECT_EQ(deadline(ann), 0);
}

TEST_F(RwEvicted, WriterIsNotPutBackBesideReaders) {  // as by a restored backup that has the one key and not the other
    reads(bob);
    must({"ZADD", leases, text(now_ms() + hour), ann});
    must({"HSET", grants, ann, "w 5"});
    EXPECT_THAT(renew(ann), IsHeldByOthers(minute, bob));
    EXPECT_EQ(held(), read_by({bob}));
    EXPECT_EQ(deadline(ann), 0);
    EXPECT_EQ(hash(grants).size(), 1U);
}

TEST_F(RwEvicted, LeasesEndTheHolds) {  // ours without a lease is dead
    const std::string token = reads(ann);
    must({"DEL", leases});
    EXPECT_EQ(code(write(bob)), 1);
    EXPECT_EQ(held(), written_by(bob));
    EXPECT_THAT(renew(ann), IsHeldByOthers(minute, bob));
    EXPECT_THAT(release(ann, token), IsHeldByOthers(minute, bob));
    EXPECT_EQ(hash(grants).size(), 1U);
}

TEST_F(RwEvicted, LeaseThatEndsAtNoTimeIsNobodys) {
    for (const char* const deadline : {"1e30", "inf", "-inf"}) {
        reads(ann);
        must({"ZADD", leases, deadline, ann});
        const std::string token = writes(bob);
        EXPECT_EQ(held(), written_by(bob)) << deadline;
        EXPECT_EQ(code(release(bob, token)), 1) << deadline;
    }
}

TEST_F(RwEvicted, GrantsEndTheHoldsWithTheirLeases) {
    reads(ann);
    must({"DEL", grants});
    EXPECT_EQ(code(renew(ann)), -1);
    EXPECT_THAT(write(bob), IsRefusedFor("reading", minute, ann)) << "nobody goes in before the lease is over";
    pass(minute);
    EXPECT_EQ(code(write(bob)), 1);
    EXPECT_EQ(held(), written_by(bob));
}

TEST_F(RwEvicted, GrantThatIsNoneOfOursIsNoGrant) {
    reads(ann);
    must({"HSET", grants, ann, "x 007"});
    EXPECT_THAT(renew(ann), IsVerdict(0));
    EXPECT_THAT(held(), IsEmpty());
    EXPECT_EQ(deadline(ann), 0);
}

TEST_F(RwEvicted, QueueIsJoinedAgain) {  // R10
    writes(ann);
    const std::string ticket = ticket_of(wait_to_write(bob));
    must({"DEL", queue});
    EXPECT_THAT(wait_to(wish::write, bob, {.ticket = ticket}), IsQueued(ann, 0, minute));
    must({"DEL", waiters});
    EXPECT_THAT(wait_to(wish::write, bob, {.ticket = ticket}), IsQueued(ann, 0, minute));
    expect_all_keys_expire();
}

}  // namespace
}  // namespace holdfast::testing::rw_bad_state_test
