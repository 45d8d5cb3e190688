// The queue of a read-write lock: the order in which waiters come in, and the messages that they get.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_queue_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RwQueue : public rw_rows {
protected:
    const std::string eve = hold_id("eve");
    // So that they count as alive.
    std::map<std::string, listener> ears;
    std::string old_entry;
    std::string old_ticket;

    void all_listen() {
        for (const std::string& id : {ann, bob, cid, dan, eve}) ears.emplace(id, listens(id));
    }
    std::string told(const std::string& id) { return ears.at(id).next(); }
    // Comes in from the queue, whose entry is kept for later.
    void reads_from_line(const std::string& id) {
        const std::string token = writes(ann);
        wait_to_read(id);
        old_entry = must({"HGET", waiters, id}).text;
        old_ticket = must({"ZSCORE", queue, id}).text;
        release(ann, token);
    }
    void stands_in_line_again(const std::string& id) {
        must({"ZADD", queue, old_ticket, id});
        must({"HSET", waiters, id, old_entry});
    }
    std::string grant_message(const std::string& id) { return grant_of(id).replace(0, 1, "grant " + id); }
};

TEST_F(RwQueue, ReEnteringReaderIsNeverBlockedByAWaitingWriter) {  // R21, R29: 004 deadlocks here
    for (const char* preference : {"arrival", "readers", "writers"}) {
        SCOPED_TRACE(preference);
        must({"FLUSHALL"});
        prefer = preference;
        const std::string token = reads(ann);
        wait_to_write(bob);
        const listener ear = listens(bob);
        EXPECT_THAT(read(ann), IsGranted(token));
        EXPECT_THAT(wait_to_read(ann), IsGranted(token));
        EXPECT_EQ(held(), read_by({ann}));
        EXPECT_THAT(queued_ids(), ElementsAre(bob));
    }
}

TEST_F(RwQueue, WaitingWriterKeepsNewReadersOutUnlessReadersArePreferred) {  // R29, R30, R31
    all_listen();
    for (const char* preference : {"arrival", "writers"}) {
        must({"FLUSHALL"});
        prefer = preference;
        reads(ann);
        EXPECT_THAT(wait_to_write(bob), IsQueued(ann, 0, minute));
        EXPECT_THAT(read(cid), IsRefusedFor("reserved", minute, ann)) << preference;
        EXPECT_THAT(wait_to_read(cid), IsQueued(ann, 1, minute)) << preference;
    }
    must({"FLUSHALL"});
    prefer = "readers";
    reads(ann);
    wait_to_write(bob);
    EXPECT_EQ(code(read(cid)), 1);
    EXPECT_EQ(held(), read_by({ann, cid}));
}

TEST_F(RwQueue, ComesInByPreference) {  // R30
    all_listen();
    const std::map<std::string, std::vector<std::string>> who_comes_in{
        {"arrival", {bob, cid}}, {"readers", {bob, cid, eve}}, {"writers", {dan}}};
    for (const auto& [preference, expected] : who_comes_in) {
        SCOPED_TRACE(preference);
        must({"FLUSHALL"});
        prefer = preference;
        const std::string token = writes(ann);
        wait_to_read(bob);
        wait_to_read(cid);
        wait_to_write(dan);
        wait_to_read(eve);
        release(ann, token);
        EXPECT_EQ(held(), preference == "writers" ? written_by(dan) : read_by(expected));
        for (const std::string& id : expected) EXPECT_EQ(told(id), grant_message(id));
    }
}

TEST_F(RwQueue, WriterComesInWhenNoReaderIsLeft) {  // R30
    all_listen();
    for (const char* preference : {"arrival", "readers", "writers"}) {
        SCOPED_TRACE(preference);
        must({"FLUSHALL"});
        prefer = preference;
        const std::string first = reads(ann);
        const std::string second = reads(bob);
        wait_to_write(cid);
        EXPECT_THAT(release(ann, first), IsReleased(1, 1));
        EXPECT_EQ(held(), read_by({bob}));
        EXPECT_THAT(release(bob, second), IsReleased(0, 1));
        EXPECT_EQ(held(), written_by(cid));
        EXPECT_EQ(told(cid), grant_message(cid));
    }
}

TEST_F(RwQueue, DeadWaitingWriterIsDroppedAtTheNextScript) {  // R29: its mark expires by itself
    for (const char* preference : {"arrival", "writers"}) {
        SCOPED_TRACE(preference);
        must({"FLUSHALL"});
        prefer = preference;
        reads(ann);
        wait_to_write(bob);  // and nobody listens
        EXPECT_EQ(code(read(cid)), 1);
        EXPECT_EQ(held(), read_by({ann, cid}));
        EXPECT_THAT(queued_ids(), IsEmpty());

        const listener ear = listens(dan);
        wait_to_write(dan);
        pass(20'000);
        EXPECT_THAT(read(eve), IsRefusedFor("reserved", minute - 20'000, cid));
        pass(1);  // two of its polls have not come
        EXPECT_EQ(code(read(eve)), 1);
        EXPECT_THAT(queued_ids(), IsEmpty());
    }
}

TEST_F(RwQueue, DeadWaitingWriterHoldsNobodyBackWhoStandsBehindIt) {  // R13, R29
    all_listen();
    reads(ann);
    wait_to(wish::write, bob, {.channel = "wake:nobody"});
    wait_to_read(cid);
    EXPECT_EQ(held(), read_by({ann, cid}));
    EXPECT_THAT(queued_ids(), IsEmpty());
}

TEST_F(RwQueue, ReadersOfOneProcessAreToldByOneMessage) {  // R32
    const std::string token = writes(ann);
    listener here{socket(), listener::to::channel, "wake:here"};
    listener there{socket(), listener::to::channel, "wake:there"};
    std::string expected = "grant";
    for (int i = 0; i < 40; ++i) {
        const std::string id = hold_id("r" + text(10 + i));
        wait_to(wish::read, id, {.channel = i % 4 == 0 ? "wake:there" : "wake:here"});
    }
    must({"CONFIG", "RESETSTAT"});
    EXPECT_THAT(release(ann, token), IsReleased(0, 40));
    EXPECT_THAT(must({"INFO", "commandstats"}).text, ::testing::HasSubstr("cmdstat_publish:calls=2,"));
    for (int i = 0; i < 40; ++i) {
        const std::string id = hold_id("r" + text(10 + i));
        if (i % 4 != 0) expected += grant_of(id).replace(0, 1, " " + id);
    }
    EXPECT_EQ(here.next(), expected);
    EXPECT_TRUE(there.next().starts_with("grant " + hold_id("r10") + " "));
}

TEST_F(RwQueue, CrowdComesInTogetherWithTokensThatGrow) {  // R32, R45: more than one command can carry
    const std::string token = writes(ann);
    const listener here{socket(), listener::to::channel, "wake:here"};
    const int crowd = 1100;
    for (int i = 0; i < crowd; ++i) wait_to(wish::read, hold_id("r" + text(1000 + i)), {.channel = "wake:here"});
    EXPECT_THAT(release(ann, token), IsReleased(0, crowd));
    EXPECT_EQ(held().size(), crowd + 2U);
    EXPECT_EQ(held()["rcount"], text(crowd));
    std::string last = token;
    for (int i = 0; i < crowd; ++i) {
        const std::string next = grant_of(hold_id("r" + text(1000 + i))).substr(2);
        ASSERT_EQ(next.size(), last.size());
        ASSERT_GT(next, last) << i;
        last = next;
    }
    EXPECT_EQ(value(fence), last);
    EXPECT_THAT(queued_ids(), IsEmpty());
    expect_all_keys_expire();
}

TEST_F(RwQueue, ReleaseTellsTheNextAndNobodyElse) {  // R12, R32
    all_listen();
    const std::string token = writes(ann);
    wait_to_write(bob);
    wait_to_write(cid);
    release(ann, token);
    EXPECT_EQ(told(bob), grant_message(bob));
    expect_silence(ears.at(cid), cid);
    expect_silence(ears.at(bob), bob);
}

TEST_F(RwQueue, NextWaiterIsToldToPollIfTheNewHoldersLeaseIsShorterThanItsInterval) {  // §6
    all_listen();
    const std::string token = writes(ann);
    wait_to(wish::write, bob, {.lease = 5000});
    wait_to(wish::write, cid, {.interval = 6000});
    release(ann, token);
    EXPECT_EQ(told(cid), "poll " + cid);
}

TEST_F(RwQueue, NewFirstIsToldToPollWhenTheOldOneGivesUp) {  // §6, R13
    all_listen();
    reads(ann);
    wait_to_write(bob);
    wait_to_write(cid);
    EXPECT_THAT(release(bob, "0"), IsHeldByOthers(minute, ann));
    EXPECT_EQ(told(cid), "poll " + cid);
}

TEST_F(RwQueue, NewFirstIsToldToPollWhenTheOldOneIsFoundDead) {  // §6, R13
    all_listen();
    reads(ann);
    wait_to(wish::write, bob, {.channel = "wake:nobody"});
    wait_to(wish::write, cid, {.channel = "wake:" + cid, .ticket = text(server_us() + 1)});
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
    EXPECT_EQ(told(cid), "poll " + cid);
}

TEST_F(RwQueue, UpgraderWhoGivesUpReadingLeavesTheQueueToo) {
    all_listen();
    const std::string token = reads(ann);
    reads(bob);
    wait_to_upgrade(ann, token);
    wait_to_write(cid);
    EXPECT_THAT(release(ann, token), IsReleased(1, 1));
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
    EXPECT_EQ(told(cid), "poll " + cid) << "it is the first now and does not know yet";
}

TEST_F(RwQueue, QueuedAnswerSaysWhatAPollNeeds) {  // §4.2, §6
    reads(ann, 5000);
    const std::string token = reads(bob);
    const redis_reply reply = wait_to_write(cid);
    EXPECT_THAT(reply, IsQueued(bob, 0, 5000)) << "the first of them may be gone then";
    EXPECT_EQ(reply.elements[1].integer, minute) << "all of them";
    EXPECT_EQ(ticket_of(reply), text(server_us()));
    EXPECT_EQ(fence_of(reply), token);
    EXPECT_EQ(must({"HGET", waiters, cid}).text, "60000 10000 " + text(server_us()) + " 0 w wake:" + cid);
    expect_all_keys_expire();
}

// A member of a Cluster failed, and what it had lost came back when the slot moved there again.
TEST_F(RwQueue, ReaderWhosePositionInTheQueueHasComeBackKeepsItsToken) {  // R13
    all_listen();
    reads_from_line(bob);
    const std::string was = grant_of(bob);
    stands_in_line_again(bob);
    EXPECT_EQ(code(read(cid)), 1);
    EXPECT_EQ(grant_of(bob), was);
    EXPECT_EQ(held(), read_by({bob, cid}));
    EXPECT_THAT(queued_ids(), IsEmpty());
}

TEST_F(RwQueue, ReaderWhoseGrantWasEvictedGetsANewOne) {  // R13
    all_listen();
    reads_from_line(bob);
    must({"HDEL", grants, bob});
    stands_in_line_again(bob);
    wait_to_write(cid);
    EXPECT_EQ(held(), read_by({bob}));
    EXPECT_THAT(grant_of(bob), ::testing::StartsWith("r "));
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
}

TEST_F(RwQueue, PassedOverWaiterGetsItsPositionBack) {  // R10
    all_listen();
    writes(ann, 5000);
    const std::string ticket = ticket_of(wait_to_write(bob));
    wait_to_write(cid);
    must({"ZREM", queue, bob});
    must({"HDEL", waiters, bob});
    EXPECT_THAT(wait_to(wish::write, bob, {.ticket = ticket}), IsQueued(ann, 0, 5000));
    EXPECT_THAT(queued_ids(), ElementsAre(bob, cid));
}

TEST_F(RwQueue, DeadHolderIsFoundOutByAPollWhichServesEverybody) {  // R46
    all_listen();
    writes(ann, 1000);
    wait_to_read(bob);
    const std::string ticket = ticket_of(wait_to_read(cid));
    pass(1000);
    const redis_reply poll = wait_to(wish::read, cid, {.ticket = ticket});
    EXPECT_THAT(poll, IsGranted(grant_of(cid).substr(2)));
    EXPECT_EQ(held(), read_by({bob, cid}));
    EXPECT_EQ(told(bob), grant_message(bob));
    expect_silence(ears.at(cid), cid);  // the caller has its answer
}

// They listen nowhere; the order is that of everybody.
TEST_F(RwQueue, WaitersThatPollComeInWithThoseWhoListen) {
    const listener ear = listens(cid);
    std::string token = writes(ann);
    for (const std::string& id : {bob, dan}) wait_to(wish::read, id, {.channel = "-"});
    wait_to_read(cid);
    wait_to(wish::write, eve, {.channel = "-"});
    release(ann, token);
    EXPECT_EQ(held(), read_by({bob, cid, dan}));
    EXPECT_THAT(wait_to(wish::read, bob, {.channel = "-"}), IsGranted(grant_of(bob).substr(2)));
    for (const std::string& id : {bob, cid, dan}) release(id, grant_of(id).substr(2));
    EXPECT_EQ(held(), written_by(eve));
}

TEST_F(RwQueue, AWriterThatPollsKeepsNewReadersOutUntilItMissesTwoPolls) {
    reads(ann);
    wait_to(wish::write, bob, {.channel = "-", .interval = 1000});
    EXPECT_THAT(read(cid), IsRefusedFor("reserved", minute, ann));
    pass(2001);
    EXPECT_EQ(code(read(cid)), 1);
}

}  // namespace
}  // namespace holdfast::testing::rw_queue_test
