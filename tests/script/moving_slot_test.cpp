// The scripts on a Cluster's member whose slot moves away.
//
// Such a member runs a script only if it still has all of its keys. It also checks every call inside the script, and
// stops the script at the first call that touches a missing key, also one that the script itself has just emptied.
// Nothing is rolled back then. So a script never touches a key that it has emptied.
#include <algorithm>

#include "script/rw/rw_rows.hpp"
#include "support/cluster_member.hpp"
#include "wire/keys.hpp"

namespace holdfast::testing::moving_slot_test {
namespace {

using ::testing::ElementsAre;

cluster_member& member() {
    static cluster_member one{cluster_member::share::all_slots};
    return one;
}

class moving_slot : public script_fixture {
protected:
    const std::string leases = "hf:{stock}:leases";
    const std::string grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid");

    const std::string notes = "hf:{stock}:notes";

    moving_slot()
        : script_fixture{member().server().unix_path(),
                         {"hf:{stock}:leases", "hf:{stock}:grants", "hf:{stock}:notes"}} {
        must({"FLUSHALL"});
    }
    ~moving_slot() override { slot_stays(); }

    void slot_moves() { member().begin_move(lock); }
    void slot_stays() { member().call_off_move(lock); }

    static std::string token_of(const redis_reply& granted) { return granted.elements.at(1).text; }
};

// --- mutex -----------------------------------------------------------------------------------------------

class MovingSlotMutex : public moving_slot {
protected:
    const std::vector<std::string> keys{lock, queue, waiters, fence};

    redis_reply wait(const std::string& id, const std::string& gives_way = "0") {
        return run("mutex/acquire", keys,
                   {id, text(minute), "0", text(hour), "wake:" + id, "0", "10000", "61000", "0", gives_way});
    }
    redis_reply wait_on(const std::string& channel, const std::string& id) {
        return run("mutex/acquire", keys, {id, text(minute), "0", text(hour), channel, "0", "10000", "61000"});
    }
    redis_reply release(const std::string& id, const std::string& token) {
        return run("mutex/release", keys, {id, token, text(hour), "0"});
    }
};

TEST_F(MovingSlotMutex, IsHandedToTheOnlyWaiter) {
    const std::string token = token_of(wait(ann));
    wait(bob);
    listener ear = listens(bob);
    slot_moves();
    const redis_reply reply = release(ann, token);
    slot_stays();
    EXPECT_EQ(code(reply), 1);
    EXPECT_EQ(reply.elements.at(1).integer, 0);
    EXPECT_EQ(value(lock), bob);
    EXPECT_EQ(ear.next(), "grant " + bob + " " + value(fence));
    expect_all_keys_expire();
}

TEST_F(MovingSlotMutex, IsHandedToTheFirstOfTwo) {
    const std::string token = token_of(wait(ann));
    wait(bob);
    wait(cid);
    const listener ear = listens(bob);
    slot_moves();
    const redis_reply reply = release(ann, token);
    slot_stays();
    EXPECT_EQ(code(reply), 1);
    EXPECT_EQ(reply.elements.at(1).integer, 1);
    EXPECT_EQ(value(lock), bob);
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
}

TEST_F(MovingSlotMutex, IsFreeIfTheOnlyWaiterIsDead) {
    const std::string token = token_of(wait(ann));
    wait(bob);
    slot_moves();
    EXPECT_EQ(code(release(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
}

TEST_F(MovingSlotMutex, KeepsTheOnlyWaiterWhoPolls) {
    wait(ann);
    wait(bob);
    slot_moves();
    EXPECT_EQ(code(wait(bob)), 2);
    slot_stays();
    EXPECT_THAT(queued_ids(), ElementsAre(bob));
    EXPECT_FALSE(must({"HGET", waiters, bob}).is_nil());
}

TEST_F(MovingSlotMutex, LetsTheOnlyWaiterGiveUp) {
    wait(ann);
    wait(bob);
    slot_moves();
    EXPECT_EQ(code(release(bob, "0")), -1);
    slot_stays();
    EXPECT_EQ(value(lock), ann);
    EXPECT_EQ(everything().size(), 2U);
}

TEST_F(MovingSlotMutex, IsGivenUpForTheFirstWaiter) {
    const std::string token = token_of(wait(ann));
    wait(bob);
    const listener ear = listens(bob);
    slot_moves();
    EXPECT_EQ(code(wait(ann, token)), 2);
    slot_stays();
    EXPECT_EQ(value(lock), bob);
    EXPECT_THAT(queued_ids(), ElementsAre(ann));
}

TEST_F(MovingSlotMutex, IsTheCallersAgainIfItGaveWayToTheDead) {
    const std::string token = token_of(wait(ann));
    wait(bob);
    slot_moves();
    EXPECT_EQ(code(wait(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(value(lock), ann);
    EXPECT_GT(std::stoll(value(fence)), std::stoll(token));
    EXPECT_EQ(everything().size(), 2U);
}

// Its channel has the tag of the lock, hence its slot; one of another slot could not be asked for here.
TEST_F(MovingSlotMutex, TellsOverAShardedChannel) {
    const std::string channel =
        wire::channel_of(wire::make_keys(wire::lock_name{"stock"}, wire::key_naming::tagged, "hf:"), "client");
    const std::string token = token_of(wait(ann));
    wait_on(channel, bob);
    sim::listener ear{socket(), 1};
    ear.subscribe(channel, sim::channel_kind::sharded);
    slot_moves();
    EXPECT_EQ(code(release(ann, token)), 1);
    slot_stays();
    const std::vector<sim::message> heard = ear.heard();
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].payload, "grant " + bob + " " + value(fence));
}

TEST_F(MovingSlotMutex, IsReleasedAloneWhereNobodyWaits) {
    const std::string token = token_of(wait(ann));
    slot_moves();
    EXPECT_THAT(release(ann, token), IsError("TRYAGAIN"));
    EXPECT_EQ(code(run("mutex/renew", {lock}, {ann, text(minute)})), 1);
    EXPECT_EQ(code(run("mutex/release_alone", {lock}, {ann})), 2);
    slot_stays();
    EXPECT_EQ(code(release(ann, token)), 0);
}

TEST_F(MovingSlotMutex, ThatIsKeptIsAskedForWhileDeadWaitersLeave) {  // R50
    const std::string keeper = marked_id("keeper");
    ASSERT_EQ(code(wait(keeper)), 1);
    listener ear = keeper_listens("keeper");
    wait(ann);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    wait(bob);
    last_polled(ann, 20'001);
    slot_moves();
    EXPECT_EQ(wait(bob).elements.at(4).integer, 0);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    slot_stays();
    last_polled(bob, 20'001);
    slot_moves();
    const redis_reply tried = run("mutex/acquire", keys, {cid, text(minute), "0", text(hour), "", "0", "0", "0"});
    slot_stays();
    EXPECT_EQ(tried.elements.at(4).text, "kept");
    EXPECT_EQ(everything().size(), 2U) << "the script empties the queue and does not touch it again";
}

// On a Cluster a message to a channel of another slot would be an error.
TEST_F(MovingSlotMutex, ThatIsKeptIsAskedForOverAShardedChannelOfItsSlot) {  // R50
    const std::string keeper = marked_id("keeper", "007");
    ASSERT_EQ(code(wait(keeper)), 1);
    const wire::lock_keys names = wire::make_keys(wire::lock_name{"stock"}, wire::key_naming::tagged, "hf:");
    sim::listener ear{socket(), 1};
    ear.subscribe(wire::channel_of(names, client_named("keeper")), sim::channel_kind::sharded);
    ASSERT_EQ(code(wait(bob)), 2);
    slot_moves();
    EXPECT_EQ(code(wait(bob)), 2) << "and while the slot moves";
    slot_stays();
    const std::vector<sim::message> heard = ear.heard();
    ASSERT_EQ(heard.size(), 2U);
    for (const sim::message& each : heard) EXPECT_EQ(each.payload, "wanted " + keeper);
}

TEST_F(MovingSlotMutex, ThatIsKeptIsRenewedWithoutNewTokensWhereNobodyWaits) {  // R52
    const std::string keeper = marked_id("keeper");
    ASSERT_EQ(code(wait(keeper)), 1);
    const std::string ceiling = value(fence);
    slot_moves();
    EXPECT_THAT(run("mutex/renew_block", {lock, queue, fence}, {keeper, text(minute), "0", text(hour)}),
                IsError("TRYAGAIN"));
    EXPECT_EQ(code(run("mutex/renew", {lock}, {keeper, text(minute)})), 1);
    slot_stays();
    EXPECT_EQ(value(fence), ceiling);
}

// A lock with notes has no gap. Its place among the keys has the lock's own key again: one that is never there would
// stop every script.
class MovingSlotMutexWithNotes : public MovingSlotMutex {  // R54
protected:
    const std::vector<std::string> noted_keys{lock, queue, waiters, fence, lock, notes};

    redis_reply wait_saying(const std::string& id, const std::string& note) {
        return run("mutex/acquire", noted_keys,
                   {id, text(minute), "0", text(hour), "wake:" + id, "0", "10000", "61000", "0", "0", "1", note});
    }
    redis_reply release_noted(const std::string& id, const std::string& token) {
        return run("mutex/release", noted_keys, {id, token, text(hour), "0"});
    }
    std::vector<std::string> noted_ids() {
        auto ids = texts(must({"HKEYS", notes}));
        std::ranges::sort(ids);
        return ids;
    }
};

TEST_F(MovingSlotMutexWithNotes, IsWaitedForAndPolledAndHandedOver) {
    const std::string token = token_of(wait_saying(ann, "report"));
    wait_saying(bob, "backup");
    const listener ear = listens(bob);
    slot_moves();
    EXPECT_EQ(code(wait_saying(cid, "rebuild")), 2);
    EXPECT_EQ(code(wait_saying(bob, "backup")), 2);
    EXPECT_EQ(code(wait_saying(ann, "report")), 1);
    EXPECT_EQ(code(release_noted(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(value(lock), bob);
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
    EXPECT_THAT(noted_ids(), ElementsAre(bob, cid));
}

TEST_F(MovingSlotMutexWithNotes, IsHandedOverByTheOnlyOneWhoHasANote) {
    const std::string token = token_of(wait_saying(ann, "report"));
    wait(bob);
    const listener ear = listens(bob);
    slot_moves();
    EXPECT_EQ(code(release_noted(ann, token)), 1);
    slot_stays();
    EXPECT_EQ(value(lock), bob);
    EXPECT_EQ(everything().count(notes), 0U);
}

TEST_F(MovingSlotMutexWithNotes, IsRenewedWithThemOrAlone) {
    wait_saying(ann, "report");
    slot_moves();
    EXPECT_EQ(code(run("mutex/renew", {lock, notes, fence}, {ann, text(2 * minute)})), 1);
    slot_stays();
    EXPECT_GT(left(notes), minute);
    must({"DEL", notes});
    slot_moves();
    EXPECT_THAT(run("mutex/renew", {lock, notes, fence}, {ann, text(3 * minute)}), IsError("TRYAGAIN"));
    EXPECT_EQ(code(run("mutex/renew", {lock}, {ann, text(3 * minute)})), 1);
    slot_stays();
    EXPECT_GT(left(lock), 2 * minute);
}

// What stands in the place of the gap is read as none.
TEST_F(MovingSlotMutexWithNotes, IsReleasedAndAcquiredWhereNoSlotMoves) {
    const std::string token = token_of(wait_saying(ann, "report"));
    EXPECT_EQ(code(release_noted(ann, token)), 1);
    EXPECT_EQ(code(wait_saying(bob, "backup")), 1);
    EXPECT_EQ(value(lock), bob);
}

// --- read-write lock -------------------------------------------------------------------------------------

class MovingSlotRw : public moving_slot {
protected:
    const std::vector<std::string> keys{lock, queue, waiters, fence, leases, grants};

    redis_reply wait_to(const std::string& wish, const std::string& id, const std::string& gives_way = "0") {
        return run("rw/acquire", keys,
                   {id, text(hour), "arrival", wish, text(minute), "0", "wake:" + id, "0", "10000", "61000", "0", "0",
                    gives_way});
    }
    redis_reply renew(const std::string& id) {
        return run("rw/renew", keys, {id, text(hour), "arrival", text(minute)});
    }
    redis_reply release(const std::string& id, const std::string& token, const std::string& left_over = "") {
        return run("rw/release", keys, {id, text(hour), "arrival", token, left_over, text(minute)});
    }
    std::string writer() { return must({"HGET", lock, "writer"}).text; }
};

TEST_F(MovingSlotRw, WithNotesIsWaitedForAndHandedOver) {  // R54
    std::vector<std::string> noted_keys = keys;
    noted_keys.insert(noted_keys.end(), {lock, notes});
    const auto wait_saying = [&](const std::string& id, const std::string& note) {
        return run("rw/acquire", noted_keys,
                   {id, text(hour), "arrival", "w", text(minute), "0", "wake:" + id, "0", "10000", "61000", "0", "0",
                    "0", "1", note});
    };
    const std::string token = token_of(wait_saying(ann, "report"));
    wait_saying(bob, "backup");
    const listener ear = listens(bob);
    slot_moves();
    EXPECT_EQ(code(wait_saying(cid, "rebuild")), 2);
    EXPECT_EQ(code(wait_saying(bob, "backup")), 2);
    const redis_reply released =
        run("rw/release", noted_keys, {ann, text(hour), "arrival", token, "", text(minute), "0"});
    slot_stays();
    EXPECT_THAT(released, IsReleased(1, 1));
    EXPECT_EQ(writer(), bob);
    EXPECT_EQ(must({"HLEN", notes}).integer, 2);
}

// Were its lease taken away before it is written anew, the script would end in between: a holder without a lease.
TEST_F(MovingSlotRw, RenewalOfTheOnlyHolderKeepsItsLease) {
    ASSERT_EQ(code(wait_to("w", ann)), 1);
    ASSERT_EQ(code(wait_to("w", bob)), 2);
    slot_moves();
    EXPECT_EQ(code(renew(ann)), 1);
    slot_stays();
    EXPECT_FALSE(must({"ZSCORE", leases, ann}).is_nil());
    EXPECT_EQ(code(wait_to("w", bob)), 2) << "two would believe to hold it";
}

TEST_F(MovingSlotRw, ThatIsKeptIsAskedForWhileDeadWaitersLeave) {  // R50
    const std::string keeper = marked_id("keeper");
    ASSERT_EQ(code(wait_to("w", keeper)), 1);
    listener ear = keeper_listens("keeper");
    wait_to("r", ann);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    wait_to("r", bob);
    last_polled(ann, 20'001);
    slot_moves();
    EXPECT_EQ(wait_to("r", bob).elements.at(4).integer, 0);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    const redis_reply renewed = renew(keeper);
    slot_stays();
    EXPECT_EQ(renewed.elements.at(5).integer, 1);
}

TEST_F(MovingSlotRw, IsRenewedAloneWhereNobodyWaits) {
    for (const std::string wish : {"r", "w"}) {
        must({"FLUSHALL"});
        wait_to(wish, ann);
        slot_moves();
        EXPECT_THAT(renew(ann), IsError("TRYAGAIN"));
        EXPECT_EQ(code(run("rw/renew_alone", {lock, leases, grants}, {ann, text(2 * minute)})), 1);
        slot_stays();
        EXPECT_GT(left(leases), minute);
        EXPECT_GT(left(lock), minute);
    }
}

TEST_F(MovingSlotRw, IsLeftByOneOfTwoReaders) {
    const std::string token = token_of(wait_to("r", ann));
    wait_to("r", bob);
    wait_to("w", cid);
    const listener ear = listens(cid);
    slot_moves();
    EXPECT_THAT(release(ann, token), IsReleased(1, 1));
    slot_stays();
    EXPECT_EQ(code(renew(bob)), 1);
}

TEST_F(MovingSlotRw, IsFreeIfTheOnlyWaiterIsDead) {
    const std::string token = token_of(wait_to("w", ann));
    wait_to("w", bob);
    slot_moves();
    EXPECT_THAT(release(ann, token), IsReleased(0, 0));
    slot_stays();
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
}

TEST_F(MovingSlotRw, LetsReadersInAtADowngrade) {
    const std::string token = token_of(wait_to("w", ann));
    wait_to("r", bob);
    wait_to("w", cid);
    listener ear = listens(bob);
    const listener of_writer = listens(cid);
    slot_moves();
    EXPECT_THAT(release(ann, token, "r"), IsReleased(1, 2));
    slot_stays();
    EXPECT_TRUE(ear.next().starts_with("grant " + bob));
    EXPECT_EQ(code(renew(ann)), 1);
    EXPECT_EQ(code(renew(bob)), 1);
}

// The hash, the leases and the grants are never empty on the way from the one to the others.
TEST_F(MovingSlotRw, IsHandedOverIfTheLastHolderLeaves) {
    for (const std::string wish : {"w", "r"}) {
        must({"FLUSHALL"});
        const std::string token = token_of(wait_to("w", ann));
        wait_to(wish, bob);
        wait_to(wish, cid);
        listener ears[] = {listens(bob), listens(cid)};
        slot_moves();
        EXPECT_THAT(release(ann, token), wish == "w" ? IsReleased(1, 1) : IsReleased(0, 2));
        slot_stays();
        EXPECT_TRUE(ears[0].next().starts_with("grant " + bob));
        EXPECT_EQ(code(renew(bob)), 1);
        EXPECT_EQ(code(renew(cid)), wish == "r" ? 1 : -1);
        EXPECT_TRUE(must({"HGET", grants, ann}).is_nil());
        EXPECT_TRUE(must({"ZSCORE", leases, ann}).is_nil());
        expect_all_keys_expire();
    }
}

TEST_F(MovingSlotRw, IsHandedToTheOnlyWaiter) {
    const std::string token = token_of(wait_to("r", ann));
    wait_to("w", bob);
    const listener ear = listens(bob);
    slot_moves();
    EXPECT_THAT(release(ann, token), IsReleased(0, 1));
    slot_stays();
    EXPECT_EQ(writer(), bob);
    EXPECT_EQ(code(renew(bob)), 1);
}

TEST_F(MovingSlotRw, IsGivenUpForTheFirstWaiter) {
    for (const std::string wish : {"w", "r"}) {
        must({"FLUSHALL"});
        const std::string token = token_of(wait_to("w", ann));
        wait_to(wish, bob);
        const listener ear = listens(bob);
        slot_moves();
        EXPECT_EQ(code(wait_to("w", ann, token)), 2);
        slot_stays();
        EXPECT_EQ(code(renew(bob)), 1);
        EXPECT_THAT(queued_ids(), ElementsAre(ann));
        EXPECT_FALSE(must({"HGET", waiters, ann}).is_nil());
    }
}

TEST_F(MovingSlotRw, IsTheCallersAgainIfItGaveWayToTheDead) {
    const std::string token = token_of(wait_to("w", ann));
    wait_to("w", bob);
    slot_moves();
    const redis_reply reply = wait_to("w", ann, token);
    slot_stays();
    EXPECT_EQ(code(reply), 1);
    EXPECT_GT(std::stoll(token_of(reply)), std::stoll(token));
    EXPECT_EQ(writer(), ann);
    EXPECT_EQ(code(renew(ann)), 1);
}

// The newcomer has its place before the dead lose theirs, or the queue would be empty in between.
TEST_F(MovingSlotRw, TakesANewcomerWhereAllWaitersAreDead) {
    wait_to("r", ann);
    wait_to("w", bob);
    slot_moves();
    EXPECT_EQ(code(wait_to("w", cid)), 2);
    slot_stays();
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
    EXPECT_TRUE(must({"HGET", waiters, bob}).is_nil());
    EXPECT_EQ(code(renew(ann)), 1);
}

}  // namespace
}  // namespace holdfast::testing::moving_slot_test
