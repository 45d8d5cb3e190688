// Notes of a mutex: where they are stored, who is told, and what removes them.
#include <algorithm>
#include <set>

#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_note_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

// An id that says that its hold has a note.
std::string noted(const std::string& name) {
    return client_named(name) + ".1000000000000000007.0123456789abcdefghijkl";
}

class MutexNote : public script_rows {  // R54
protected:
    const std::string notes = "hf:{stock}:notes";
    const std::string ann = noted("ann"), bob = noted("bob");

    MutexNote() : script_rows{{}, {"hf:{stock}:notes"}} {}

    std::vector<std::string> keys() const { return {lock, queue, waiters, fence, lock, notes}; }
    redis_reply acquire_saying(const std::string& id, const std::string& note, const asking& terms = {}) {
        return run("mutex/acquire", keys(), arguments(id, note, terms));
    }
    redis_reply wait_saying(const std::string& id, const std::string& note, asking terms = {}) {
        terms.channel = "wake:" + id;
        return acquire_saying(id, note, terms);
    }
    std::string hold_saying(const std::string& id, const std::string& note) {
        return acquire_saying(id, note).elements.at(1).text;
    }
    // Of a caller that met a holder that has one.
    redis_reply ask_for_note(const std::string& id, const asking& terms = {}) {
        std::vector<std::string> words = arguments(id, "", terms);
        words.resize(10);
        return run("mutex/acquire", keys(), words);
    }
    redis_reply release_noted(const std::string& id, const std::string& token) {
        return run("mutex/release", keys(), {id, token, text(hour)});
    }
    redis_reply renew_noted(const std::string& id, std::int64_t lease) {
        return run("mutex/renew", {lock, notes, fence}, {id, text(lease)});
    }
    std::vector<std::string> noted_ids() {
        auto ids = texts(must({"HKEYS", notes}));
        std::ranges::sort(ids);
        return ids;
    }
    std::string note_of(const std::string& id) { return must({"HGET", notes, id}).text; }

private:
    static std::vector<std::string> arguments(const std::string& id, const std::string& note, const asking& terms) {
        return {id,
                text(terms.lease),
                terms.floor,
                text(terms.retention),
                terms.channel,
                terms.ticket,
                text(terms.interval),
                text(terms.queue_retention),
                terms.proposal,
                "0",
                "1",
                note};
    }
};

TEST_F(MutexNote, IsStoredWithTheGrantForAsLong) {
    expect_granted(acquire_saying(ann, "nightly backup"));
    EXPECT_EQ(note_of(ann), "nightly backup");
    EXPECT_THAT(left(notes), ::testing::AllOf(Gt(left(lock) - 1000), Le(minute)));
    expect_all_keys_expire();
}

TEST_F(MutexNote, OfAnyBytesIsKeptAsItIs) {
    std::string all;
    for (int i = 0; i < 1024; ++i) all += static_cast<char>(i % 256);
    hold_saying(ann, all);
    EXPECT_EQ(note_of(ann), all);
    EXPECT_EQ(ask_for_note("other").elements.at(5).text, all);
}

TEST_F(MutexNote, IsToldToWhoIsRefusedAndAsksForIt) {
    hold_saying(ann, "nightly backup");
    const redis_reply reply = ask_for_note("other");
    ASSERT_THAT(reply.elements, SizeIs(6));
    EXPECT_EQ(reply.elements[0].integer, 0);
    EXPECT_EQ(reply.elements[2].text, ann);
    EXPECT_EQ(reply.elements[3].text, "held");
    EXPECT_EQ(reply.elements[5].text, "nightly backup");
    EXPECT_THAT(acquire("other"), IsRefused(0, Gt(0), ann)) << "who does not ask is answered as ever";
}

TEST_F(MutexNote, IsToldToAWaiterThatAsksForIt) {
    hold_saying(ann, "nightly backup");
    const std::string ticket = ticket_of(wait("other"));
    const redis_reply reply = ask_for_note("other", {.channel = "wake:other", .ticket = ticket});
    ASSERT_THAT(reply.elements, SizeIs(10));
    EXPECT_EQ(reply.elements[0].integer, 2);
    EXPECT_EQ(reply.elements[3].text, ticket);
    EXPECT_EQ(reply.elements[9].text, "nightly backup");
}

TEST_F(MutexNote, GoesWithTheRelease) {
    const std::string token = hold_saying(ann, "nightly backup");
    EXPECT_EQ(code(release_noted(ann, token)), 1);
    EXPECT_EQ(everything().count(notes), 0U);
}

TEST_F(MutexNote, GoesWithALateReleaseOfALeaseThatEnded) {
    const std::string token = hold_saying(ann, "nightly backup");
    lease_ends();
    EXPECT_EQ(code(release_noted(ann, token)), 0);
    EXPECT_EQ(everything().count(notes), 0U);
}

TEST_F(MutexNote, StaysWhereAReleaseMeansAnotherGrant) {
    const std::string first = hold_saying(ann, "nightly backup");
    lease_ends();
    hold_saying(ann, "nightly backup");
    EXPECT_EQ(code(release_noted(ann, first)), -1);
    EXPECT_EQ(note_of(ann), "nightly backup");
}

TEST_F(MutexNote, OfAWaiterComesWithTheHandOver) {
    const std::string token = hold_saying(ann, "nightly backup");
    const listener ear = listens(bob);
    wait_saying(bob, "report");
    EXPECT_EQ(code(release_noted(ann, token)), 1);
    EXPECT_EQ(value(lock), bob);
    EXPECT_THAT(noted_ids(), ElementsAre(bob));
    EXPECT_EQ(ask_for_note("other").elements.at(5).text, "report");
    EXPECT_GT(left(notes), left(lock)) << "until the new holder renews";
}

TEST_F(MutexNote, OfAWaiterSurvivesAHandOverByAClientThatKnowsNoNotes) {
    const std::string token = hold("old");
    const listener ear = listens(bob);
    wait_saying(bob, "report");
    EXPECT_EQ(code(release("old", token)), 1);
    EXPECT_EQ(ask_for_note("other").elements.at(5).text, "report");
}

TEST_F(MutexNote, OfAWaiterGoesWhenItGivesUp) {
    hold("holder");
    wait_saying(ann, "report");
    EXPECT_THAT(noted_ids(), ElementsAre(ann));
    EXPECT_EQ(code(release_noted(ann, "0")), -1);
    EXPECT_EQ(everything().count(notes), 0U);
}

TEST_F(MutexNote, OfAWaiterStaysWhenAnOldReleaseComesLate) {
    const std::string first = hold_saying(ann, "report");
    lease_ends();
    hold("other");
    wait_saying(ann, "report");
    EXPECT_EQ(code(release_noted(ann, first)), -1);
    EXPECT_EQ(note_of(ann), "report");
}

TEST_F(MutexNote, OfADeadHolderIsNotToldOfTheNextOne) {
    hold_saying(ann, "nightly backup");
    lease_ends();
    hold("next");
    EXPECT_THAT(ask_for_note("other"), IsRefused(0, Gt(0), "next"));
}

TEST_F(MutexNote, IsKeptWithTheLeaseByARenewal) {
    hold_saying(ann, "nightly backup");
    must({"PEXPIRE", lock, "1000"});
    must({"PEXPIRE", notes, "1000"});
    EXPECT_EQ(code(renew_noted(ann, minute)), 1);
    EXPECT_GT(left(notes), minute - 10'000);
    EXPECT_EQ(code(renew_noted(ann, 1)), 1);
    EXPECT_GT(left(notes), minute - 10'000) << "never shorter";
    EXPECT_EQ(code(renew_noted("other", 10 * minute)), -1);
    EXPECT_LE(left(notes), minute);
}

// Who asks later who holds the lock is told by which token: a leadership may last longer than the fence.
TEST_F(MutexNote, OfALongHoldKeepsItsTokenByRenewals) {
    const std::string token = hold_saying(ann, "leader");
    must({"PEXPIRE", fence, "500"});
    EXPECT_EQ(code(renew_noted(ann, minute)), 1);
    EXPECT_GT(left(fence), minute - 10'000);
    EXPECT_EQ(value(fence), token);
    EXPECT_EQ(code(renew_noted(ann, 1)), 1);
    EXPECT_GT(left(fence), minute - 10'000) << "never shorter";
    must({"PEXPIRE", fence, "500"});
    EXPECT_EQ(code(renew_noted("other", minute)), -1);
    EXPECT_LE(left(fence), 500);
    must({"DEL", fence});
    EXPECT_EQ(code(renew_noted(ann, minute)), 1) << "evicted";
}

TEST_F(MutexNote, ComesBackWithTheNextPollOfItsWaiterOrHolder) {  // evicted, or lost in a failover
    hold_saying(ann, "nightly backup");
    const std::string ticket = ticket_of(wait_saying(bob, "report"));
    must({"DEL", notes});
    EXPECT_EQ(code(ask_for_note("other")), 0) << "an answer without it";
    wait_saying(bob, "report", {.ticket = ticket});
    acquire_saying(ann, "nightly backup");
    EXPECT_THAT(noted_ids(), ElementsAre(ann, bob));
}

TEST_F(MutexNote, OfATryThatIsRefusedIsNotStored) {
    hold("holder");
    EXPECT_EQ(code(acquire_saying(ann, "report")), 0);
    EXPECT_EQ(everything().count(notes), 0U);
}

// A queue that is never empty keeps the key: those who crashed meanwhile must not fill it.
TEST_F(MutexNote, OfTheDeadAreSweptOutByTheLiving) {
    hold("holder");
    wait("waiter");
    for (int i = 0; i < 200; ++i) must({"HSET", notes, "dead" + text(i), "was here"});
    must({"PEXPIRE", notes, "60000"});
    wait_saying(ann, "report");
    wait_saying(bob, "backup");
    EXPECT_THAT(noted_ids(), ElementsAre(ann, bob));
}

TEST_F(MutexNote, ThatTheServerDoesNotTakeCostsNoLock) {
    must({"SET", notes, "of another program"});
    expect_granted(acquire_saying(ann, "report"));
    EXPECT_EQ(value(notes), "of another program");
    EXPECT_THAT(ask_for_note("other"), IsRefused(0, Gt(0), ann));
}

TEST_F(MutexNote, IsNoObstacleToAHolderOnAFullServer) {
    hold_saying(ann, "nightly backup");
    must({"DEL", notes});
    server_is_full();
    EXPECT_EQ(code(acquire_saying(ann, "nightly backup")), 1);
    EXPECT_EQ(value(lock), ann);
}

TEST_F(MutexNote, CostsNoCallWhereThereIsNoneOrNobodyAsks) {
    must({"CONFIG", "RESETSTAT"});
    release("me", hold("me"));
    hold("me");
    acquire("other");
    EXPECT_EQ(must({"INFO", "commandstats"}).text.find("cmdstat_hget"), std::string::npos);
    EXPECT_EQ(must({"INFO", "commandstats"}).text.find("cmdstat_hset"), std::string::npos);
    const std::int64_t refused = calls_of_scripts();
    lease_ends();
    hold_saying(ann, "nightly backup");
    must({"CONFIG", "RESETSTAT"});
    acquire("other");
    EXPECT_LT(calls_of_scripts(), refused);
    EXPECT_EQ(must({"INFO", "commandstats"}).text.find("cmdstat_hget"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::testing::mutex_note_test
