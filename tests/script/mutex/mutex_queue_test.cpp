// mutex/acquire of waiters: positions, tickets, and who is next when the lock becomes free.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_queue_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Le;

class MutexQueue : public script_rows {};

TEST_F(MutexQueue, TakesAFreeLockWithoutWaitingInTheQueue) {  // R01
    expect_granted(wait("me"));
    EXPECT_EQ(everything().size(), 2U);
}

TEST_F(MutexQueue, WaitsInOrderOfArrival) {  // R10, R11
    const std::string token = hold("holder");
    const redis_reply first = wait("a");
    const redis_reply second = wait("b");
    const redis_reply third = wait("c");
    EXPECT_THAT(first, IsQueued("holder", 0));
    EXPECT_THAT(second, IsQueued("holder", 1));
    EXPECT_THAT(third, IsQueued("holder", 2));
    EXPECT_LT(std::stoll(ticket_of(first)), std::stoll(ticket_of(second)));
    EXPECT_LT(std::stoll(ticket_of(second)), std::stoll(ticket_of(third)));
    EXPECT_THAT(queued_ids(), ElementsAre("a", "b", "c"));
    for (const redis_reply* reply : {&first, &second, &third}) {
        EXPECT_THAT(reply->elements[1].integer, AllOf(Gt(0), Le(minute)));
        EXPECT_EQ(fence_of(*reply), token) << "the fence as it stands (§4.2)";
    }
    expect_all_keys_expire();
}

// go-redislock's fair lock keeps its waiters in the same key, by seconds, and so in front of ours.
TEST_F(MutexQueue, WaitersOfOtherProgramsDoNotCount) {
    must({"SET", lock, "python"});
    must({"ZADD", queue, "1794994026", "lock_token:b", "1794994027", "lock_token:c"});
    EXPECT_THAT(wait("a"), IsQueued("python", 0));
    EXPECT_THAT(wait("b"), IsQueued("python", 1));
    EXPECT_THAT(wait("b"), IsQueued("python", 1)) << "also by a poll";
    listener ear = listens("b");
    release("a", "0");
    EXPECT_EQ(ear.next(), "poll b") << "it is the first now";
    EXPECT_THAT(wait("b"), IsQueued("python", 0));
    EXPECT_THAT(queued_ids(), ElementsAre("lock_token:b", "lock_token:c", "b"));
}

TEST_F(MutexQueue, TicketIsTheTimeOfArrivalOrFollowsTheLastOne) {  // §6
    hold("holder");
    const std::int64_t before = server_us();
    const std::int64_t ticket = std::stoll(ticket_of(wait("a")));
    EXPECT_GE(ticket, before);
    EXPECT_LE(ticket, server_us());
    const std::string ahead = text(before + hour * 1000);  // as after a clock that was set back
    wait("late", {.ticket = ahead});
    EXPECT_EQ(std::stoll(ticket_of(wait("b"))), std::stoll(ahead) + 1);
    EXPECT_THAT(queued_ids(), ElementsAre("a", "late", "b"));
}

TEST_F(MutexQueue, KeepsWhatTheWaiterWants) {  // R11
    hold("holder");
    const std::int64_t before = server_us();
    wait("a", {.lease = 7000, .floor = "41", .interval = 2300});
    const std::string entry = must({"HGET", waiters, "a"}).text;
    const std::string seen = entry.substr(10, entry.find(' ', 10) - 10);
    EXPECT_EQ(entry, "7000 2300 " + seen + " 41 w wake:a");
    EXPECT_GE(std::stoll(seen), before);
}

TEST_F(MutexQueue, RepeatedKeepsPlaceAndTicket) {  // §4.3
    hold("holder");
    const std::string ticket = ticket_of(wait("a"));
    wait("b");
    const std::string arrivals = everything()[queue].value;
    for (const std::string& given : {std::string{"0"}, ticket}) {
        const redis_reply again = wait("a", {.ticket = given});
        EXPECT_THAT(again, IsQueued("holder", 0));
        EXPECT_EQ(ticket_of(again), ticket);
        EXPECT_EQ(everything()[queue].value, arrivals);
    }
}

TEST_F(MutexQueue, PollIsSeen) {  // §6
    hold("holder");
    wait("a");
    last_polled("a", hour);
    const keyspace before = everything();
    wait("a");
    EXPECT_NE(everything()[waiters].value, before.at(waiters).value);
}

TEST_F(MutexQueue, DroppedWaiterIsBackInItsPlaceByItsTicket) {  // R10
    hold("holder");
    const std::string ticket = ticket_of(wait("a"));
    wait("b");
    must({"ZREM", queue, "a"});
    must({"HDEL", waiters, "a"});
    EXPECT_THAT(wait("a", {.ticket = ticket}), IsQueued("holder", 0));
    EXPECT_THAT(queued_ids(), ElementsAre("a", "b"));
}

TEST_F(MutexQueue, BehindALockThatNeverExpiresIsToldSo) {  // R07
    must({"SET", lock, "python"});
    const redis_reply reply = wait("a");
    EXPECT_THAT(reply, IsQueued("python", 0));
    EXPECT_EQ(reply.elements[1].integer, -1);
    EXPECT_EQ(fence_of(reply), "0");
}

TEST_F(MutexQueue, IsKeptAsLongAsItsMostPatientWaiterNeeds) {  // R10
    hold("holder");
    wait("patient", {.queue_retention = hour});
    wait("hasty", {.interval = 100, .queue_retention = 1600});
    // "hasty" dies, and "patient" polls next in ten seconds: its place must not be gone by then.
    EXPECT_GT(left(queue), minute);
    EXPECT_GT(left(waiters), minute);
}

TEST_F(MutexQueue, IsKeptLongerByAMorePatientWaiter) {
    hold("holder");
    wait("hasty", {.interval = 100, .queue_retention = 1600});
    wait("patient", {.queue_retention = hour});
    EXPECT_GT(left(queue), minute);
    EXPECT_GT(left(waiters), minute);
}

TEST_F(MutexQueue, FirstWaiterThatPollsTakesTheFreeLock) {  // R10, R46
    const std::string earlier = hold("holder");
    wait("a");
    wait("b");
    lease_ends();
    const redis_reply reply = wait("a");
    expect_granted(reply);
    EXPECT_GT(std::stoll(value(fence)), std::stoll(earlier));
    EXPECT_EQ(value(lock), "a");
    EXPECT_THAT(queued_ids(), ElementsAre("b"));
    EXPECT_TRUE(must({"HGET", waiters, "a"}).is_nil());
}

TEST_F(MutexQueue, NewcomerThatDoesNotWaitNeverOvertakes) {  // R10
    hold("holder");
    wait("a");
    listener ear = listens("a");
    lease_ends();
    EXPECT_THAT(acquire("newcomer"), IsRefused(0, AllOf(Gt(0), Le(minute)), "a"));
    EXPECT_EQ(ear.next(), "grant a " + value(fence));
    EXPECT_EQ(value(lock), "a");
    EXPECT_TRUE(queued_ids().empty());
}

TEST_F(MutexQueue, NewcomerThatWaitsNeverOvertakes) {  // R10
    hold("holder");
    wait("a");
    listener ear = listens("a");
    lease_ends();
    const redis_reply reply = wait("newcomer");
    EXPECT_THAT(reply, IsQueued("a", 0));
    EXPECT_EQ(fence_of(reply), value(fence)) << "the fence after the grant it brought about";
    EXPECT_EQ(ear.next(), "grant a " + value(fence));
    EXPECT_EQ(value(lock), "a");
    EXPECT_THAT(queued_ids(), ElementsAre("newcomer"));
    expect_all_keys_expire();
}

TEST_F(MutexQueue, WaiterFurtherBackThatPollsServesTheFirst) {  // R10
    hold("holder");
    wait("a");
    wait("b");
    listener ear = listens("a");
    lease_ends();
    EXPECT_THAT(wait("b"), IsQueued("a", 0));
    EXPECT_EQ(ear.next(), "grant a " + value(fence));
}

TEST_F(MutexQueue, DeadWaitersAreDroppedForANewcomer) {  // R13: nobody listens for them
    hold("holder");
    wait("dead");
    wait("gone");
    lease_ends();
    expect_granted(acquire("me"));
    EXPECT_EQ(value(lock), "me");
    EXPECT_EQ(everything().size(), 2U) << "queue and waiters are gone";
}

TEST_F(MutexQueue, HungWaitersAreDroppedForANewcomer) {  // R13: it listens, and has missed two polls
    hold("holder");
    wait("hung", {.interval = 1000});
    last_polled("hung", 2001);
    const listener ear = listens("hung");
    lease_ends();
    expect_granted(wait("me"));
    EXPECT_EQ(everything().size(), 2U);
}

TEST_F(MutexQueue, LateWaitersAreNotDropped) {  // R13: one missed poll is no death
    hold("holder");
    wait("late", {.interval = hour});
    last_polled("late", hour + minute);
    const listener ear = listens("late");
    lease_ends();
    EXPECT_THAT(wait("me"), IsQueued("late", 0));
}

TEST_F(MutexQueue, WaiterThatHoldsHasTheLockAtItsNextPoll) {  // §6: the push was lost
    const std::string first = hold("holder");
    wait("a");
    const listener ear = listens("a");
    release("holder", first);
    must({"PEXPIRE", lock, "1000"});
    expect_granted(wait("a"));
    EXPECT_GT(left(lock), 1000) << "every answer \"you hold\" has refreshed the lease (§4.2)";
    EXPECT_TRUE(queued_ids().empty());
}

// The answer promises a full lease of the length asked for, whatever an earlier request had asked.
TEST_F(MutexQueue, WhoNoLongerWaitsGetsTheLeaseItAsksForNow) {  // §4.1
    hold("holder");
    wait("me", {.lease = 1000});
    lease_ends();
    EXPECT_EQ(code(acquire("me")), 1);
    EXPECT_GT(left(lock), 1000);
    EXPECT_TRUE(queued_ids().empty());
}

// The queue expired or was evicted, the entries not (R10): go-redislock's fair lock shortens the expiry of a queue that
// it shares.
class MutexQueueIsGone : public script_rows {
protected:
    MutexQueueIsGone() : script_rows{{}, {"hf:{stock}:gap"}} {
        token = hold("holder");
        wait("first");
        wait("second");
        // Their order is that of the last polls.
        last_polled("first", 2000);
        last_polled("second", 1000);
    }

    std::string token;
    const listener first = listens("first");
    const listener second = listens("second");
};

TEST_F(MutexQueueIsGone, AReleaseHandsOver) {
    must({"DEL", queue});
    const redis_reply released = release("holder", token);
    EXPECT_EQ(code(released), 1);
    EXPECT_EQ(released.elements.at(1).integer, 1) << "waiters left";
    EXPECT_EQ(value(lock), "first");
    EXPECT_THAT(queued_ids(), ElementsAre("second"));
    EXPECT_GT(left(queue), 0);
}

TEST_F(MutexQueueIsGone, ANewcomerDoesNotOvertake) {
    must({"DEL", queue});
    lease_ends();
    EXPECT_EQ(code(wait("newcomer")), 2);
    EXPECT_EQ(value(lock), "first");
    EXPECT_THAT(queued_ids(), ElementsAre("second", "newcomer"));
}

TEST_F(MutexQueueIsGone, TheirPollsBringTheirTickets) {
    last_polled("second", 3000);  // so it would be the first by its last poll
    const std::string one = must({"ZSCORE", queue, "first"}).text;
    const std::string two = must({"ZSCORE", queue, "second"}).text;
    must({"DEL", queue});
    wait("second", {.ticket = two});
    wait("first", {.ticket = one});
    EXPECT_EQ(must({"ZSCORE", queue, "first"}).text, one);
    EXPECT_THAT(queued_ids(), ElementsAre("first", "second"));
}

TEST_F(MutexQueueIsGone, AndAProgramThatQueuesThereMadeItAnew) {
    must({"DEL", queue});
    must({"ZADD", queue, "1794994026", "lock_token:f"});
    wait("newcomer");
    EXPECT_EQ(code(run("mutex/release", {lock, queue, waiters, fence, lock + ":gap"},
                       {"holder", token, text(hour), "0", "0"})),
              1);
    EXPECT_EQ(value(lock), "first");
    EXPECT_THAT(queued_ids(), ElementsAre("second", "newcomer"));
}

TEST_F(MutexQueueIsGone, AFullServerHandsOver) {
    must({"DEL", queue});
    server_is_full();
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "first");
}

TEST_F(MutexQueueIsGone, EntriesThatMakeNoSenseGetNoPosition) {
    must({"DEL", queue, waiters});
    must({"HSET", waiters, "odd", "rubbish"});
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_TRUE(must({"GET", lock}).is_nil());
    EXPECT_TRUE(queued_ids().empty());
}

TEST_F(MutexQueue, PlaceWithoutAnEntryIsDropped) {  // R13: the entries were evicted, the queue not
    hold("holder");
    wait("lost");
    const listener ear = listens("lost");
    must({"DEL", waiters});
    lease_ends();
    EXPECT_EQ(code(acquire("me")), 1);
    EXPECT_TRUE(queued_ids().empty());
}

}  // namespace
}  // namespace holdfast::testing::mutex_queue_test
