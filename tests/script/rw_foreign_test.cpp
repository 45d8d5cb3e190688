// One key with another program (R33): it follows the flow charts of 000 and 002, knows neither leases nor the line,
// and its every success sets the expiry of the whole key.
#include <functional>

#include "script/foreign_rw.hpp"
#include "script/rw_rows.hpp"

namespace holdfast::testing {
namespace {

using ::testing::ElementsAre;
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
    EXPECT_THAT(wait_to_write(bob), IsInLine(uuid, 0, minute));
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

TEST_F(RwForeign, KeyThatIsGoneIsPutBackWhileOurLeasesLive) {  // R33
    const std::string token = writes(ann);
    const std::vector<std::function<void()>> scripts{[&] { renew(ann); },  [&] { write(ann); },
                                                     [&] { read(bob); },   [&] { renew(bob); },
                                                     [&] { cancel(bob); }, [&] { release(bob, "7"); }};
    for (const auto& any : scripts) {
        must({"PEXPIRE", lock, "1"});
        pass(2);
        any();
        EXPECT_EQ(held(), written_by(ann));
        EXPECT_EQ(grant_of(ann), "w " + token);
        EXPECT_EQ(left(lock), left(leases));
    }
}

TEST_F(RwForeign, WriterWhoIsAlreadyInEndsOurHoldAndItIsTold) {  // R33
    for (const wish ours : {wish::read, wish::write}) {
        must({"FLUSHALL"});
        acquire(ann, ours, {});
        must({"PEXPIRE", lock, "1"});
        pass(2);
        ASSERT_TRUE(foreign_writes());
        EXPECT_THAT(renew(ann), IsHeldByOthers(ttl + 1, uuid));
        EXPECT_EQ(held(), written_by(uuid));
        EXPECT_EQ(deadline(ann), 0);
        EXPECT_FALSE(hash(grants).contains(ann));
        EXPECT_THAT(read(ann), IsRefusedFor("writing", ttl + 1, uuid));
    }
}

TEST_F(RwForeign, ReaderWhoIsAlreadyInEndsOurWriteHoldAndNotOurReadHold) {  // R33
    for (const wish ours : {wish::read, wish::write}) {
        must({"FLUSHALL"});
        const std::string token = acquire(ann, ours, {}).elements[1].text;
        must({"PEXPIRE", lock, "1"});
        pass(2);
        ASSERT_TRUE(foreign_reads());
        if (ours == wish::read) {
            EXPECT_THAT(renew(ann), Holds("r", token));
            EXPECT_EQ(held()["rcount"], "2");
        } else {
            EXPECT_THAT(renew(ann), IsHeldByOthers(ttl + 1, uuid));
            EXPECT_EQ(held()["rcount"], "1");
        }
    }
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

TEST_F(RwForeign, ReleaseIsFoundByAPoll) {  // it publishes nothing
    ASSERT_TRUE(foreign_writes());
    const listener ear = listens(ann);
    const std::string ticket = ticket_of(wait_to_read(ann));
    ASSERT_TRUE(foreign_stops_writing());
    EXPECT_EQ(code(wait_to(wish::read, ann, {.ticket = ticket})), 1);
    EXPECT_THAT(line(), IsEmpty());
}

TEST_F(RwForeign, ReadersOfSeveralProgramsAllCount) {  // R33
    const std::string token = reads(ann);
    ASSERT_TRUE(foreign_reads());
    ASSERT_TRUE(foreign(foreign_rw::lock_to_read, other_uuid));
    const listener ear = listens(ann);
    EXPECT_THAT(wait_to_upgrade(ann, token), IsInLine(uuid, 0, ttl + 1));
    ASSERT_TRUE(foreign_stops_reading());
    EXPECT_THAT(wait_to_upgrade(ann, token), IsInLine(other_uuid, 0, ttl + 1));
    ASSERT_TRUE(foreign(foreign_rw::unlock_from_reading, other_uuid));
    EXPECT_EQ(code(wait_to_upgrade(ann, token)), 1);
}

}  // namespace
}  // namespace holdfast::testing
