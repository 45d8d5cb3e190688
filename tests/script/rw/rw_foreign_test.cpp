// One key shared with another program (R33). That program follows the flow charts of 000 and 002, knows neither leases
// nor the queue, and sets the expiry of the whole key with every success.
#include <functional>

#include "script/rw/foreign_rw.hpp"
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_foreign_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RwForeign : public rw_rows {
protected:
    const std::string uuid = "5f0c2f1e-8a51-4f6c-9d6f-0d6a1b3f6a10";
    const std::string other_uuid = "c1b0b1a2-3c4d-4e5f-8a9b-0c1d2e3f4a5b";
    static constexpr std::int64_t ttl = 30'000;

    bool foreign(std::string_view chart, const std::string& owner, std::int64_t ttl_ms = ttl) {
        return must({"EVAL", std::string{chart}, "1", lock, owner, text(ttl_ms)}).integer == 1;
    }
    bool foreign_reads(std::int64_t ttl_ms = ttl) { return foreign(foreign_rw::lock_to_read, uuid, ttl_ms); }
    bool foreign_writes(std::int64_t ttl_ms = ttl) { return foreign(foreign_rw::lock_to_write, uuid, ttl_ms); }
    bool foreign_stops_reading() { return foreign(foreign_rw::unlock_from_reading, uuid); }
    bool foreign_stops_writing() { return foreign(foreign_rw::unlock_from_writing, uuid); }

    // Another program came and went, and the key's expiry is its.
    void expiry_is_cut_to(std::int64_t ms) {
        ASSERT_TRUE(foreign_reads(ms));
        ASSERT_TRUE(foreign_stops_reading());
    }
};

TEST_F(RwForeign, ExcludeEachOther) {  // R33
    struct row {
        wish ours;
        bool foreign_reads, foreign_writes;  // what it may do beside us
    };
    for (const row& each : {row{wish::read, true, false}, row{wish::write, false, false}}) {
        for (const std::string_view chart : {foreign_rw::lock_to_read, foreign_rw::lock_to_write}) {
            const bool may = chart == foreign_rw::lock_to_read ? each.foreign_reads : each.foreign_writes;
            must({"FLUSHALL"});
            ASSERT_EQ(code(acquire(ann, each.ours, {})), 1);
            EXPECT_EQ(foreign(chart, uuid), may) << "we are in";
            must({"FLUSHALL"});
            ASSERT_TRUE(foreign(chart, uuid));
            EXPECT_EQ(code(acquire(ann, each.ours, {})), may ? 1 : 0) << "it is in";
        }
    }
}

TEST_F(RwForeign, ReaderSharesTheHashWithOurs) {  // R20, R33
    reads(ann);
    ASSERT_TRUE(foreign_reads());
    ASSERT_TRUE(foreign_reads());
    reads(bob);
    EXPECT_EQ(held(),
              (fields{{"mode", "read"}, {"rcount", "4"}, {"r:" + ann, "1"}, {"r:" + bob, "1"}, {"r:" + uuid, "2"}}));
    EXPECT_THAT(upgrade(ann, grant_of(ann).substr(2)), IsRefusedFor("reading", minute, uuid));
    ASSERT_TRUE(foreign_stops_reading());
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_EQ(held(), read_by({ann, bob}));
}

TEST_F(RwForeign, CannotUpgradeBesideOurReaderNorWeBesideIts) {  // R22, R33
    const std::string token = reads(ann);
    ASSERT_TRUE(foreign_reads());
    EXPECT_FALSE(foreign_writes());
    EXPECT_THAT(upgrade(ann, token), IsRefusedFor("reading", 30'001, uuid));
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_EQ(code(upgrade(ann, token)), 1);
    EXPECT_FALSE(foreign_reads());
}

TEST_F(RwForeign, UnderstandsOurDowngradeAndOurRelease) {  // R24, R27, R33
    const std::string token = upgraded(ann, reads(ann));
    EXPECT_FALSE(foreign_reads());
    downgrade(ann, token);
    EXPECT_TRUE(foreign_reads());
    EXPECT_TRUE(foreign_stops_reading());
    release(ann, token);
    EXPECT_TRUE(foreign_writes());
    EXPECT_TRUE(foreign_stops_writing());
    EXPECT_EQ(everything().size(), 1U);
}

TEST_F(RwForeign, HolderIsNamedWithWhatTheKeyHasLeft) {  // R31
    ASSERT_TRUE(foreign_writes());
    pass(1000);
    const keyspace before = everything();
    // The key lives through the millisecond of its expiry; the next one is free.
    EXPECT_THAT(read(ann), IsRefusedFor("writing", ttl - 1000 + 1, uuid));
    EXPECT_EQ(everything(), before) << "looking does not make its life longer";
}

TEST_F(RwForeign, WithoutExpiryIsRespectedForEver) {
    ASSERT_TRUE(foreign_reads());
    must({"PERSIST", lock});
    reads(ann);
    EXPECT_EQ(left(lock), -1);
    EXPECT_THAT(write(bob), IsRefusedFor("reading", -1, uuid));
    EXPECT_THAT(wait_to_write(bob), IsQueued(uuid, 0, minute));
    pass(hour);
    EXPECT_THAT(write(bob), IsRefusedFor("reading", -1, uuid));
    EXPECT_EQ(held(), (fields{{"mode", "read"}, {"rcount", "1"}, {"r:" + uuid, "1"}})) << "ours is over";
}

TEST_F(RwForeign, ReaderLivesByTheKeysExpiryAsItWasBeforeWeMadeItLonger) {  // R33
    ASSERT_TRUE(foreign_reads());
    reads(ann, hour);
    EXPECT_EQ(left(lock), hour);
    for (std::int64_t gone = 0; gone < ttl; gone += 10'000) {
        renew(ann, hour);
        EXPECT_EQ(held().count("r:" + uuid), 1U);
        pass(10'000);
    }
    renew(ann, hour);
    EXPECT_EQ(held().count("r:" + uuid), 1U) << "its very last millisecond";
    pass(1);
    renew(ann, hour);
    EXPECT_EQ(held(), read_by({ann}));
}

TEST_F(RwForeign, RenewalIsRespectedAndRestored) {  // R33
    reads(ann, hour);
    ASSERT_TRUE(foreign_reads());
    for (int i = 0; i < 20; ++i) {
        renew(ann, hour);
        EXPECT_EQ(left(lock), hour) << "restored";
        pass(ttl / 3);
        ASSERT_TRUE(foreign(foreign_rw::renew_reading, uuid)) << i;
        EXPECT_EQ(left(lock), ttl) << "cut";
    }
    renew(ann, hour);
    pass(ttl + 1);
    renew(ann, hour);
    EXPECT_EQ(held(), read_by({ann})) << "and it does not live on by our renewals";
}

TEST_F(RwForeign, RenewalShortlyAfterOursIsNotTakenForOurs) {  // R33: the same lease, renewed at nearly the same times
    reads(ann, ttl);
    ASSERT_TRUE(foreign_reads());
    for (int i = 0; i < 20; ++i) {
        pass(ttl / 3 - 3);
        renew(ann, ttl);
        pass(3);
        ASSERT_TRUE(foreign(foreign_rw::renew_reading, uuid)) << i;
    }
    EXPECT_EQ(held().count("r:" + uuid), 1U);
}

TEST_F(RwForeign, CutOfTheKeysExpiryIsRestoredByAnyScriptOfOurs) {  // R33
    const std::string token = reads(ann);
    const std::vector<std::function<void()>> scripts{
        [&] { renew(ann); },  [&] { read(ann); },         [&] { write(bob); },       [&] { renew(bob); },
        [&] { cancel(bob); }, [&] { release(bob, "7"); }, [&] { upgrade(bob, "7"); }};
    for (const auto& any : scripts) {
        expiry_is_cut_to(1000);
        EXPECT_EQ(left(lock), 1000);
        any();
        EXPECT_EQ(left(lock), minute);
        EXPECT_EQ(held(), read_by({ann}));
    }
    EXPECT_EQ(grant_of(ann), "r " + token);
}

// --- holds that were missing in the hash

// Whoever's script finds the hash gone puts our holds back: nobody of ours comes in beside them. But nobody knows who
// was in the hash meanwhile, so they are lost.
TEST_F(RwForeign, KeyThatIsGoneIsPutBackForLostHoldsUntilTheirLeasesEnd) {  // R33
    const std::string token = writes(ann);
    const std::vector<std::function<void()>> scripts{
        [&] { renew(ann); }, [&] { write(ann); }, [&] { downgrade(ann, token); }, [&] { cancel(ann); },
        [&] { read(bob); },  [&] { renew(bob); }, [&] { cancel(bob); },           [&] { release(bob, "7"); }};
    for (const auto& any : scripts) {
        must({"PEXPIRE", lock, "1"});
        pass(2);
        any();
        EXPECT_EQ(held(), written_by(ann));
        EXPECT_EQ(grant_of(ann), "w " + token + " lost");
        EXPECT_EQ(left(lock), left(leases));
    }
    pass(left(leases));
    EXPECT_EQ(code(write(bob)), 1);
    EXPECT_EQ(hash(grants).size(), 1U);
}

TEST_F(RwForeign, WriterThatCameAndWentIsToldToOurReader) {  // R33
    const std::vector<std::function<void(const std::string&)>> finders{
        [&](const std::string&) {},               // nobody before ann herself
        [&](const std::string&) { read(bob); },   // another reader, who is let in beside her
        [&](const std::string&) { write(bob); },  // one who is not let in
        [&](const std::string& token) { renew(ann), release(bob, token); },
        [&](const std::string& token) { read(ann), downgrade(ann, token); },
    };
    for (const bool renews : {true, false}) {
        for (std::size_t finder = 0; finder < finders.size(); ++finder) {
            SCOPED_TRACE(std::to_string(finder) + (renews ? ": renewal" : ": release"));
            must({"FLUSHALL"});
            const std::string token = reads(ann);
            ASSERT_TRUE(foreign_reads(5000));
            pass(5001);
            ASSERT_TRUE(foreign_writes(5000));
            ASSERT_TRUE(foreign_stops_writing());
            finders[finder](token);
            for (int i = 0; renews && i < 2; ++i) EXPECT_THAT(renew(ann), IsVerdict(0));
            EXPECT_THAT(release(ann, token), IsVerdict(0));
            EXPECT_EQ(deadline(ann), 0);
            EXPECT_FALSE(held().contains("r:" + ann));
            EXPECT_FALSE(hash(grants).contains(ann));
        }
    }
}

TEST_F(RwForeign, LostHoldIsEndedByItsOwnReleaseOnly) {  // a late copy of the release of an earlier grant
    const std::string token = reads(ann);
    must({"DEL", lock});
    EXPECT_THAT(release(ann, "7"), IsVerdict(0));
    EXPECT_THAT(write(bob), IsRefusedFor("reading", minute, ann));
    EXPECT_THAT(release(ann, "0"), IsVerdict(0)) << "giving up ends whatever there is";
    EXPECT_EQ(code(write(bob)), 1);
}

TEST_F(RwForeign, LostReadHoldIsNotUpgraded) {  // R26, R33
    const std::string token = reads(ann);
    const std::string other = reads(bob);
    const listener ear = listens(ann);
    const std::string ticket = ticket_of(wait_to_upgrade(ann, token));
    must({"DEL", lock});
    renew(bob);  // finds it out
    EXPECT_THAT(release(bob, other), IsVerdict(0)) << "now ann is the only reader";
    EXPECT_EQ(held(), read_by({ann}));
    EXPECT_THAT(queued_ids(), IsEmpty());
    EXPECT_THAT(wait_to(wish::upgrade, ann, {.ticket = ticket}, token), IsVerdict(-1));
    EXPECT_THAT(upgrade(ann, token), IsVerdict(-1));
    EXPECT_THAT(cancel(ann), IsVerdict(0));
    EXPECT_EQ(grant_of(ann), "r " + token + " lost");
}

TEST_F(RwForeign, WriterWhoIsAlreadyInEndsOurHoldAndItIsTold) {  // R33
    for (const wish ours : {wish::read, wish::write}) {
        must({"FLUSHALL"});
        const std::string token = acquire(ann, ours, {}).elements[1].text;
        must({"PEXPIRE", lock, "1"});
        pass(2);
        ASSERT_TRUE(foreign_writes());
        EXPECT_THAT(renew(ann), IsVerdict(0));
        EXPECT_EQ(held(), written_by(uuid));
        EXPECT_EQ(left(lock), ttl) << "our lease does not keep its key";
        EXPECT_THAT(read(ann), IsRefusedFor("writing", ttl + 1, uuid));
        EXPECT_THAT(release(ann, token), IsVerdict(0));
        EXPECT_EQ(held(), written_by(uuid));
        EXPECT_EQ(deadline(ann), 0);
        EXPECT_FALSE(hash(grants).contains(ann));
    }
}

// The other program's writer comes and goes, and ours is let in only when the reader knows that its hold is lost.
TEST_F(RwForeign, LostHoldKeepsOthersOfOursOutUntilItIsReleased) {  // R33
    const std::string token = reads(ann);
    must({"PEXPIRE", lock, "1"});
    pass(2);
    ASSERT_TRUE(foreign_writes());
    EXPECT_THAT(write(bob), IsRefusedFor("writing", minute - 2, uuid));
    ASSERT_TRUE(foreign_stops_writing());
    EXPECT_EQ(code(write(bob)), 0);
    EXPECT_EQ(held(), read_by({ann}));
    EXPECT_THAT(renew(ann), IsVerdict(0));
    EXPECT_EQ(code(write(bob)), 0) << "the answer may still be on its way";
    EXPECT_THAT(release(ann, token), IsVerdict(0));
    EXPECT_EQ(code(write(bob)), 1);
}

TEST_F(RwForeign, ReaderWhoIsAlreadyInEndsOurHoldsToo) {  // R33
    for (const wish ours : {wish::read, wish::write}) {
        must({"FLUSHALL"});
        acquire(ann, ours, {});
        must({"PEXPIRE", lock, "1"});
        pass(2);
        ASSERT_TRUE(foreign_reads());
        if (ours == wish::read) {
            EXPECT_THAT(renew(ann), IsVerdict(0));
            EXPECT_EQ(held()["rcount"], "2") << "no writer comes in before she has heard of it";
        } else {
            EXPECT_THAT(renew(ann), IsHeldByOthers(ttl + 1, uuid));
            EXPECT_EQ(held()["rcount"], "1");
        }
    }
}

// --- an expiry of another program that happens to be the one that we set

TEST_F(RwForeign, ReaderThatSetsOurExpiryByChanceIsRespectedLikeTheOthers) {  // R33
    ASSERT_TRUE(foreign_reads(5000));
    const std::string token = reads(ann, minute);
    ASSERT_TRUE(foreign(foreign_rw::lock_to_read, other_uuid, minute));
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(uuid, 0, minute + 1)) << "no longer 5000 ms";
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(other_uuid, 0, minute + 1));
    pass(minute / 2);
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(other_uuid, 0, minute / 2 + 1)) << "our renewal is not its";
}

TEST_F(RwForeign, ReaderThatEntersAgainWithOurExpiryByChanceIsRespected) {  // R33
    ASSERT_TRUE(foreign_reads(5000));
    const std::string token = reads(ann, minute);
    ASSERT_TRUE(foreign_reads(minute));
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(uuid, 0, minute + 1));
}

TEST_F(RwForeign, ReaderThatLeavesDoesNotMakeTheOthersLiveLonger) {  // R33
    ASSERT_TRUE(foreign_reads(5000));
    ASSERT_TRUE(foreign(foreign_rw::lock_to_read, other_uuid, 5000));
    ASSERT_TRUE(foreign(foreign_rw::lock_to_read, other_uuid, 5000));
    const std::string token = reads(ann, minute);
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(other_uuid, 0, 5001));
    ASSERT_TRUE(foreign(foreign_rw::unlock_from_reading, other_uuid));
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(other_uuid, 0, 5001)) << "it entered twice and left once";
}

// A name that could be taken for the end of what the grants remember of it, or for something else there.
TEST_F(RwForeign, NameOfAnyCharactersLivesNoLongerThanOthers) {  // R33
    for (const std::string& name : {std::string("new\nline"), std::string("nu\0l", 4), std::string("x\n9 r:Z"),
                                    std::string("7:1:r:other"), "x\n" + std::string(20'000, '7'), std::string()}) {
        must({"DEL", lock, queue, waiters, fence, lock + ":leases", lock + ":grants"});
        ASSERT_TRUE(foreign(foreign_rw::lock_to_read, name, 5000));
        const std::string token = reads(ann, minute);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(code(renew(ann)), 1);
        EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(name, 0, 5001)) << name.substr(0, 20);
        EXPECT_EQ(must({"HLEN", lock + ":grants"}).integer, 2);
    }
}

// --- an expiry that another program has cut

TEST_F(RwForeign, CutIsToldSoThatRenewalsComeSooner) {  // R33
    ASSERT_TRUE(foreign_reads(5000));
    const redis_reply first = read(ann);
    EXPECT_THAT(first, IsGrantedBesideACut(grant_of(ann).substr(2), 5000));
    const std::string token = grant_of(ann).substr(2);
    EXPECT_THAT(renew(ann), Holds("r", token)) << "restored, and not cut since";
    ASSERT_TRUE(foreign(foreign_rw::renew_reading, uuid, 5000));
    pass(1000);
    EXPECT_THAT(renew(ann), HoldsBesideACut("r", token, 4000));
    ASSERT_TRUE(foreign(foreign_rw::renew_reading, uuid, 5000));
    EXPECT_THAT(wait_to_write(bob), IsQueuedBesideACut(uuid, 0, 5001, 5000));
    ASSERT_TRUE(foreign(foreign_rw::renew_reading, uuid, hour));
    EXPECT_THAT(renew(ann), Holds("r", token)) << "longer than our leases";
}

TEST_F(RwForeign, WriterThatWasLostIsNotPutBackBesideReaders) {  // R33: whose count happens to be the right one
    writes(ann);
    must({"PEXPIRE", lock, "1"});
    pass(2);
    ASSERT_TRUE(foreign_reads());  // one reader in the hash, one lease: the numbers agree
    reads(bob);
    EXPECT_EQ(deadline(ann), 0) << "noticed at once";
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_EQ(code(renew(ann)), -1);
    EXPECT_EQ(held(), read_by({bob}));
}

TEST_F(RwForeign, HashOfOursWithoutALeaseIsDead) {  // R33
    must({"HSET", lock, "mode", "read", "rcount", "2", "r:" + ann, "1", "r:" + uuid, "1"});
    must({"PEXPIRE", lock, text(hour)});
    EXPECT_THAT(write(bob), IsRefusedFor("reading", hour + 1, uuid));
    EXPECT_EQ(held(), (fields{{"mode", "read"}, {"rcount", "1"}, {"r:" + uuid, "1"}}));
    must({"FLUSHALL"});
    must({"HSET", lock, "mode", "write", "writer", ann, "wcount", "1"});
    must({"PEXPIRE", lock, text(hour)});
    EXPECT_EQ(code(read(bob)), 1);
    EXPECT_EQ(held(), read_by({bob}));
}

TEST_F(RwForeign, IdsAreToldApartByTheirForm) {  // R33
    const std::string near_miss = ann.substr(0, ann.size() - 1);
    for (const std::string& id : {near_miss, ann + "x", "x" + ann, std::string{"hf_a.1.b"}, std::string{}}) {
        must({"FLUSHALL"});
        ASSERT_TRUE(foreign(foreign_rw::lock_to_write, id));
        EXPECT_EQ(code(read(ann)), 0) << "'" << id << "' is not of our form, so it is respected";
    }
}

// --- hashes of other kinds

// Redisson's: a lock is a hash of <client uuid>:<thread id> -> count; a read-write lock has a mode as well, and its
// writer's field ends in :write.
TEST_F(RwForeign, HashOfAnotherFormIsRefusedAndLeftAlone) {
    const std::string redisson = uuid + ":47";
    struct row {
        std::vector<std::string> hash;
        std::string says;
    };
    const std::string looks_so = "looks like a Redisson lock";
    for (const row& each :
         {row{{redisson, "1"}, looks_so}, row{{"mode", "read", redisson, "2"}, looks_so},
          row{{"mode", "write", redisson + ":write", "1"}, looks_so},
          row{{"mode", "read", "rcount", "0", redisson, "1"}, looks_so},
          row{{"owner", "somebody"}, "no lock of a known form"},
          row{{"mode", "read", "rcount", "1", "r:" + uuid, "1", "x", "1"}, "no lock of a known form"}}) {
        SCOPED_TRACE(each.hash[each.hash.size() - 2]);
        must({"FLUSHALL"});
        std::vector<std::string> command{"HSET", lock};
        command.insert(command.end(), each.hash.begin(), each.hash.end());
        must(command);
        must({"PEXPIRE", lock, text(ttl)});
        const keyspace before = everything();
        for (const wish wants : {wish::read, wish::write, wish::upgrade}) {
            EXPECT_THAT(acquire(ann, wants, {}, "5"), IsError("WRONGTYPE"));
            EXPECT_THAT(wait_to(wants, ann, {}, "5"), IsError("WRONGTYPE"));
            EXPECT_THAT(wait_to(wants, ann, {.ticket = "5"}, "5"), IsError("WRONGTYPE"));
        }
        EXPECT_THAT(release(ann, "5"), IsError("WRONGTYPE"));
        EXPECT_THAT(renew(ann), IsError("WRONGTYPE"));
        EXPECT_THAT(cancel(ann), IsError("WRONGTYPE"));
        EXPECT_THAT(read(ann).text, HasSubstr(each.says));
        EXPECT_EQ(everything(), before);
    }
}

// Redisson's read lock comes in beside our readers: its script takes our hash for its own.
TEST_F(RwForeign, FieldOfAnotherFormBesideOurHoldIsRefusedAndLeftAlone) {
    const std::string token = reads(ann);
    must({"HSET", lock, uuid + ":47", "1"});
    must({"PEXPIRE", lock, text(ttl)});
    const keyspace before = everything();
    EXPECT_THAT(renew(ann), IsError("WRONGTYPE"));
    EXPECT_THAT(read(bob), IsError("WRONGTYPE"));
    EXPECT_THAT(release(ann, token), IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), before);
    moves_to_clock_ahead_by(5000);
    const keyspace moved = everything();
    EXPECT_THAT(renew(ann), IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), moved);
}

// --- who waits for other programs

TEST_F(RwForeign, FirstWaiterIsToldToLookWhenOnlyOtherProgramsAreInItsWay) {
    const std::string token = reads(ann);
    const std::string other = reads(bob);
    listener ear = listens(cid);
    EXPECT_THAT(wait_to_write(cid), IsQueued(bob, 0, minute)) << "it looks every 10 s, or when it is told";
    ASSERT_TRUE(foreign_reads());
    EXPECT_THAT(release(ann, token), IsReleased(1, 2));
    EXPECT_EQ(ear.next(), "poll " + cid);
    EXPECT_THAT(release(bob, other), IsReleased(1, 1));
    EXPECT_EQ(ear.next(), "poll " + cid);
    EXPECT_THAT(wait_to_write(cid), IsQueued(uuid, 0, ttl + 1)) << "from now on it looks often";
}

TEST_F(RwForeign, FirstWaiterIsToldToLookWhenAnotherProgramTookItsPosition) {
    reads(ann, 1000);
    reads(bob);
    listener ear = listens(cid);
    wait_to_write(cid);
    ASSERT_TRUE(foreign_reads());
    pass(1000);
    renew(bob);  // finds ann's lease over
    EXPECT_EQ(ear.next(), "poll " + cid);
}

TEST_F(RwForeign, ReleaseIsFoundByAPoll) {  // it publishes nothing
    ASSERT_TRUE(foreign_writes());
    const listener ear = listens(ann);
    const std::string ticket = ticket_of(wait_to_read(ann));
    ASSERT_TRUE(foreign_stops_writing());
    EXPECT_EQ(code(wait_to(wish::read, ann, {.ticket = ticket})), 1);
    EXPECT_THAT(queued_ids(), IsEmpty());
}

TEST_F(RwForeign, ReadersOfSeveralProgramsAllCount) {  // R33
    const std::string token = reads(ann);
    ASSERT_TRUE(foreign_reads());
    ASSERT_TRUE(foreign(foreign_rw::lock_to_read, other_uuid));
    const listener ear = listens(ann);
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueuedBesideACut(uuid, 0, ttl + 1, ttl));
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_THAT(wait_to_upgrade(ann, token), IsQueued(other_uuid, 0, ttl + 1));
    ASSERT_TRUE(foreign(foreign_rw::unlock_from_reading, other_uuid));
    EXPECT_EQ(code(wait_to_upgrade(ann, token)), 1);
}

}  // namespace
}  // namespace holdfast::testing::rw_foreign_test
