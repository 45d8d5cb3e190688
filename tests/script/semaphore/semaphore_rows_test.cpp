// Rows of the semaphore's scripts that the model does not have: other kinds of lock on the key, a full server, lost
// keys, a slot that moves, and the cost.
#include "script/rw/rw_rows.hpp"
#include "support/cluster_member.hpp"

namespace holdfast::testing::semaphore_rows_test {
namespace {

using ::testing::UnorderedElementsAre;

class semaphore_rows : public script_fixture {
protected:
    const std::string leases = "hf:{stock}:leases";
    const std::string grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid"), dan = hold_id("dan");

    explicit semaphore_rows(const std::string& socket)
        : script_fixture{socket, {"hf:{stock}:leases", "hf:{stock}:grants"}} {}

    std::vector<std::string> keys() const { return {lock, queue, waiters, fence, leases, grants}; }

    redis_reply acquire(const std::string& id, int permits, const std::string& channel = "") {
        return run("semaphore/acquire", keys(),
                   {id, text(hour), "4", text(permits), text(minute), "0", channel, "0", "10000", "61000", "0"});
    }
    redis_reply wait(const std::string& id, int permits) { return acquire(id, permits, "wake:" + id); }
    redis_reply release(const std::string& id, const std::string& token) {
        return run("semaphore/release", keys(), {id, text(hour), "4", token, "0"});
    }
    redis_reply renew(const std::string& id) {
        return run("semaphore/renew", {lock, leases, grants}, {id, text(minute)});
    }
    redis_reply confirm(const std::string& id, const std::string& token) {
        return run("semaphore/confirm", {lock, leases, grants}, {id, token});
    }
    std::string takes(const std::string& id, int permits) { return acquire(id, permits).elements.at(1).text; }
    std::string out() { return must({"HGET", lock, "out"}).text; }
};

class SemaphoreRows : private own_server, public semaphore_rows {
protected:
    SemaphoreRows() : own_server{{}}, semaphore_rows{running.unix_path()} {}
};

TEST_F(SemaphoreRows, OtherKindsOfLockRefuseItsKeyAndItRefusesTheirs) {
    takes(ann, 1);
    const keyspace before = everything();
    EXPECT_THAT(run("mutex/acquire", {lock, queue, waiters, fence},
                    {bob, text(minute), "0", text(hour), "", "0", "10000", "61000"}),
                IsError("WRONGTYPE"));
    EXPECT_THAT(
        run("rw/acquire", keys(), {bob, text(hour), "arrival", "r", text(minute), "0", "", "0", "10000", "61000", "0"}),
        IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), before);
    must({"FLUSHALL"});
    run("rw/acquire", keys(), {bob, text(hour), "arrival", "r", text(minute), "0", "", "0", "10000", "61000", "0"});
    EXPECT_THAT(acquire(ann, 1), IsError("WRONGTYPE"));
    must({"FLUSHALL"});
    must({"SET", lock, "somebody", "PX", "60000"});
    EXPECT_THAT(acquire(ann, 1), IsError("WRONGTYPE"));
}

TEST_F(SemaphoreRows, AFullServerRefusesNewPermitsAndServesThoseWhoAreThere) {
    const std::string token = takes(ann, 4);
    wait(bob, 2);
    const listener ear = listens(bob);
    server_is_full();
    const keyspace before = everything();
    EXPECT_TRUE(acquire(cid, 1).elements.at(0).integer == 0) << "a try changes nothing";
    EXPECT_THAT(wait(cid, 1), IsError("OOM"));
    EXPECT_EQ(everything().size(), before.size());
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_GT(confirm(ann, token).integer, 0);
    EXPECT_EQ(code(wait(bob, 2)), 2) << "a poll";
    EXPECT_EQ(code(release(ann, token)), 1);
    EXPECT_EQ(out(), "2") << "and the waiter has them";
}

TEST_F(SemaphoreRows, GrantsThatWereLostAreCountedAgain) {
    takes(ann, 1);
    takes(bob, 2);
    must({"HDEL", grants, bob});
    EXPECT_EQ(code(acquire(cid, 3)), 1) << "nobody knows of the two any more";
    EXPECT_EQ(out(), "4");
    EXPECT_EQ(must({"ZCARD", leases}).integer, 2);
    must({"DEL", lock});
    EXPECT_EQ(code(acquire(dan, 1)), 0) << "the sum is found without the hash";
    EXPECT_EQ(code(renew(cid)), 1);
}

TEST_F(SemaphoreRows, ConfirmKnowsTheGrantByItsToken) {
    const std::string token = takes(ann, 2);
    const keyspace before = everything();
    EXPECT_GT(confirm(ann, token).integer, 0);
    EXPECT_GT(confirm(ann, "0").integer, 0);
    EXPECT_EQ(confirm(ann, "7").integer, 0);
    EXPECT_EQ(confirm(bob, "0").integer, 0);
    EXPECT_EQ(everything(), before);
}

// On a clock that stands still: a script may look at it once more when a millisecond begins.
class SemaphoreCost : private clocked_server, public semaphore_rows {
protected:
    SemaphoreCost() : semaphore_rows{clocked.unix_path()} {}
};

TEST_F(SemaphoreCost, DoesNotGrowWithTheHoldersOrTheWaiters) {  // R53
    std::int64_t calls[2] = {};
    for (const std::size_t many : {0U, 1U}) {
        must({"FLUSHALL"});
        const int holders = many == 0 ? 8 : 200;
        const std::string limit = std::to_string(holders);
        const auto take = [&](const std::string& id, const std::string& channel) {
            return run("semaphore/acquire", keys(),
                       {id, text(hour), limit, "1", text(minute), "0", channel, "0", "10000", "61000", "0"});
        };
        std::string token;
        for (int i = 0; i < holders; ++i) token = take(hold_id("h" + text(1000 + i)), "").elements.at(1).text;
        const listener ear = listens("all");
        for (int i = 0; i < 2 * holders; ++i) take(hold_id("w" + text(1000 + i)), "wake:all");
        must({"CONFIG", "RESETSTAT"});
        EXPECT_EQ(code(run("semaphore/release", keys(),
                           {hold_id("h" + text(1000 + holders - 1)), text(hour), limit, token, "0"})),
                  1);
        take(hold_id("late"), "wake:all");
        calls[many] = calls_of_scripts();
    }
    EXPECT_GT(calls[0], 10);
    EXPECT_EQ(calls[0], calls[1]);
}

// --- while a Cluster moves the slot ----------------------------------------------------------------------

cluster_member& member() {
    static cluster_member one{cluster_member::share::all_slots};
    return one;
}

class MovingSlotSemaphore : public semaphore_rows {
protected:
    MovingSlotSemaphore() : semaphore_rows{member().server().unix_path()} { must({"FLUSHALL"}); }
    ~MovingSlotSemaphore() override { slot_stays(); }

    void slot_moves() { member().begin_move(lock); }
    void slot_stays() { member().call_off_move(lock); }
};

TEST_F(MovingSlotSemaphore, IsRenewedByTheKeysThatAHeldOneHas) {
    const std::string token = takes(ann, 1);
    slot_moves();
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_GT(confirm(ann, token).integer, 0);
    EXPECT_TRUE(release(ann, token).is_error()) << "there is no queue: it waits for the end of the move";
    slot_stays();
    EXPECT_EQ(code(release(ann, token)), 1);
}

TEST_F(MovingSlotSemaphore, PassesToTheOnlyWaiterAndOthersAreDropped) {
    const std::string token = takes(ann, 4);
    wait(bob, 4);
    wait(cid, 1);
    const listener ear = listens(cid);
    slot_moves();
    EXPECT_EQ(code(release(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(out(), "1") << "the first waiter does not listen";
    EXPECT_TRUE(queued_ids().empty());
    expect_all_keys_expire();
}

TEST_F(MovingSlotSemaphore, IsFreeIfAllWaitersAreDead) {
    const std::string token = takes(ann, 4);
    wait(bob, 4);
    wait(cid, 1);
    slot_moves();
    EXPECT_EQ(code(release(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
}

TEST_F(MovingSlotSemaphore, ServesTheOnlyWaiterThatPollsWhenALeaseIsOver) {
    takes(cid, 3);
    takes(ann, 1);
    wait(bob, 3);
    must({"ZADD", leases, "1000", cid});  // over; the keys live as long as the other's
    slot_moves();
    EXPECT_EQ(code(wait(bob, 3)), 1);
    slot_stays();
    EXPECT_EQ(out(), "4");
    EXPECT_THAT(texts(must({"ZRANGE", leases, "0", "-1"})), UnorderedElementsAre(ann, bob));
    expect_all_keys_expire();
}

TEST_F(MovingSlotSemaphore, LetsTheOnlyWaiterGiveUp) {
    takes(ann, 4);
    wait(bob, 1);
    slot_moves();
    EXPECT_EQ(code(release(bob, "0")), 0);
    slot_stays();
    EXPECT_TRUE(queued_ids().empty());
    EXPECT_EQ(out(), "4");
}

}  // namespace
}  // namespace holdfast::testing::semaphore_rows_test
