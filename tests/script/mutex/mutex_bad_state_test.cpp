// A script that fails half-way is not rolled back (§4.9). So everything that can fail must fail before the first write:
// keys that another program uses, entries that another program wrote, a full server, a user without rights.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_bad_state_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Le;

// --- keys of the wrong type ------------------------------------------------------------------------------

// Puts something of another type under one of the lock's keys, in states from which a script would write, and
// calls everything.
class MutexWrongType : public script_rows {
protected:
    void expect_nothing_changes_if(const std::string& key) {
        for (const auto& [what, prepare] : states()) {
            SCOPED_TRACE(what);
            must({"FLUSHALL"});
            const std::string token = (this->*prepare)();
            must({"DEL", key});
            if (key == queue || key == waiters) {
                must({"SET", key, "text"});
            } else {
                must({"HSET", key, "field", "text"});
            }
            const keyspace before = everything();
            EXPECT_THAT(acquire("holder"), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "acquire by the holder";
            EXPECT_THAT(acquire("me"), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "acquire";
            EXPECT_THAT(wait("me"), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "wait";
            EXPECT_THAT(wait("me", {.ticket = "5"}), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "wait with a ticket";
            EXPECT_THAT(wait("a"), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "poll";
            EXPECT_THAT(release("holder", token), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "release";
            EXPECT_THAT(release("a", "0"), IsError("WRONGTYPE"));
            EXPECT_EQ(everything(), before) << "give up";
        }
    }

private:
    using preparation = std::string (MutexWrongType::*)();
    static std::vector<std::pair<const char*, preparation>> states() {
        return {{"free", &MutexWrongType::free_lock},
                {"held", &MutexWrongType::held},
                {"held, waited for", &MutexWrongType::waited_for},
                {"free, waited for", &MutexWrongType::expired}};
    }
    std::string free_lock() { return "1"; }
    std::string held() {
        const std::string token = hold("holder");
        must({"PEXPIRE", lock, "30000"});  // so that a refresh would show
        return token;
    }
    std::string waited_for() {
        const std::string token = held();
        wait("a");
        wait("b");
        return token;
    }
    std::string expired() {
        const std::string token = waited_for();
        lease_ends();
        return token;
    }
};

TEST_F(MutexWrongType, OfTheLockIsAnErrorAndNothingElse) {
    expect_nothing_changes_if(lock);
}
TEST_F(MutexWrongType, OfTheQueueIsAnErrorAndNothingElse) {
    expect_nothing_changes_if(queue);
}
TEST_F(MutexWrongType, OfTheWaitersIsAnErrorAndNothingElse) {
    expect_nothing_changes_if(waiters);
}
TEST_F(MutexWrongType, OfTheFenceIsAnErrorAndNothingElse) {
    expect_nothing_changes_if(fence);
}

// --- entries that we did not write -----------------------------------------------------------------------

class MutexBadEntry : public script_rows {
protected:
    static std::vector<std::string> bad_entries() {
        return {"", "rubbish", "1 2 3", "0 1000 1 0 w wake:bad", "-5 1000 1 0 w wake:bad", "60000 1000 1 0 w ",
                "60000 1e3 1 0 w wake:bad", "99999999999999999999 1000 9007199254740991 0 w wake:bad",
                // Alive by its last poll, with a floor above every token; wanting nothing, or what there is not.
                "60000 99999999 9007199254740991 9007199254740993 w wake:bad",
                "60000 99999999 9007199254740991 0 wake:bad", "60000 99999999 9007199254740991 0 x wake:bad",
                // A number to Lua, and none to SET: the holder's release must not end on it.
                "0060000 99999999 9007199254740991 0 w wake:bad"};
    }
};

TEST_F(MutexBadEntry, IsDroppedLikeADeadWaiter) {
    for (const std::string& entry : bad_entries()) {
        SCOPED_TRACE("entry '" + entry + "'");
        must({"FLUSHALL"});
        const std::string token = hold("holder");
        wait("bad");
        wait("good");
        must({"HSET", waiters, "bad", entry});
        const listener bad = listens("bad");
        listener good = listens("good");
        EXPECT_EQ(code(release("holder", token)), 1);
        EXPECT_EQ(value(lock), "good");
        EXPECT_EQ(good.next(), "grant good " + value(fence));
        EXPECT_EQ(everything().size(), 2U);
    }
}

TEST_F(MutexBadEntry, OfTheNextWaiterDoesNotSpoilAGrant) {
    for (const std::string& entry : bad_entries()) {
        SCOPED_TRACE("entry '" + entry + "'");
        must({"FLUSHALL"});
        const std::string token = hold("holder");
        wait("good");
        wait("bad");
        must({"HSET", waiters, "bad", entry});
        const listener good = listens("good");
        EXPECT_EQ(code(release("holder", token)), 1);
        EXPECT_EQ(value(lock), "good");
    }
}

TEST_F(MutexBadEntry, IsReplacedByThePollOfItsWaiter) {
    hold("holder");
    wait("a");
    must({"HSET", waiters, "a", "rubbish"});
    lease_ends();
    expect_granted(wait("a"));
}

// --- requests that make no sense ------------------------------------------------------------------------

class MutexBadRequest : public script_rows {};

TEST_F(MutexBadRequest, IsRefusedBeforeAnythingIsWritten) {
    hold("holder");
    wait("a");
    for (const bool is_free : {false, true}) {
        if (is_free) lease_ends();
        const keyspace before = everything();
        EXPECT_THAT(wait("me", {.lease = 0}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.lease = -1}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.lease = 9'007'199'254'740'993}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.interval = -1}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.queue_retention = 0}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.retention = 0}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.ticket = "soon"}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.ticket = ""}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.ticket = "-1"}), IsError("ERR"));
        EXPECT_EQ(everything(), before);
    }
}

// The fast path of a free lock leaves it to what follows.
TEST_F(MutexBadRequest, OfALeaseBeyondAllNumbersIsRefusedForAFreeLockToo) {
    for (const std::int64_t lease : {std::int64_t{9'007'199'254'740'993}, INT64_MAX}) {
        EXPECT_THAT(acquire("me", {.lease = lease}), IsError("ERR holdfast"));
        EXPECT_TRUE(everything().empty());
    }
}

// --- a full server ---------------------------------------------------------------------------------------

class MutexFullServer : public script_rows {};

TEST_F(MutexFullServer, RefusesAnAcquireAndChangesNothing) {
    server_is_full();
    EXPECT_THAT(acquire("me"), IsError("OOM"));
    EXPECT_THAT(wait("me"), IsError("OOM"));
    EXPECT_TRUE(everything().empty());
}

TEST_F(MutexFullServer, RefusesANewWaiterAndChangesNothing) {
    hold("holder");
    wait("a");
    server_is_full();
    const keyspace before = everything();
    EXPECT_THAT(wait("me"), IsError("OOM"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexFullServer, StillTellsWhoHolds) {  // R03
    hold("holder");
    server_is_full();
    EXPECT_THAT(acquire("me"), IsRefused(0, AllOf(Gt(0), Le(minute)), "holder"));
}

TEST_F(MutexFullServer, StillRefreshesAHold) {
    const std::string token = hold("holder");
    must({"PEXPIRE", lock, "1000"});
    server_is_full();
    EXPECT_THAT(acquire("holder"), IsGranted(token));
    EXPECT_GT(left(lock), 1000);
}

TEST_F(MutexFullServer, StillReleases) {
    const std::string token = hold("holder");
    server_is_full();
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(everything().count(lock), 0U);
}

TEST_F(MutexFullServer, StillHandsOver) {
    const std::string token = hold("holder");
    wait("a");
    wait("b");
    listener ear = listens("a");
    server_is_full();
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "a");
    EXPECT_EQ(ear.next(), "grant a " + value(fence));
    expect_all_keys_expire();
}

TEST_F(MutexFullServer, StillHandsOverWhatIsFoundFree) {
    hold("holder");
    wait("a");
    const listener ear = listens("a");
    lease_ends();
    server_is_full();
    EXPECT_EQ(code(release("holder", "1")), 0);
    EXPECT_EQ(value(lock), "a");
}

TEST_F(MutexFullServer, StillLetsAWaiterPoll) {  // it is there already: nothing is added
    hold("holder");
    const std::string ticket = ticket_of(wait("a"));
    wait("b");
    last_polled("a", hour);
    server_is_full();
    for (const std::string& given : {std::string{"0"}, ticket}) {
        const redis_reply reply = wait("a", {.ticket = given});
        EXPECT_THAT(reply, IsQueued("holder", 0));
        EXPECT_EQ(ticket_of(reply), ticket);
    }
    EXPECT_THAT(queued_ids(), ElementsAre("a", "b"));
    expect_all_keys_expire();
    lease_ends();
    expect_granted(wait("a"));
}

// --- missing rights --------------------------------------------------------------------------------------

class MutexWithoutRights : public script_rows {};

TEST_F(MutexWithoutRights, ToPublishHandsOverAndLeavesTheRestToPolls) {
    const std::string token = hold("holder");
    wait("a");
    const listener ear = listens("a");
    must({"ACL", "SETUSER", "rows", "-publish"});
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "a");
    expect_granted(wait("a"));
}

TEST_F(MutexWithoutRights, ToAskWhoListensGoesByTheLastPoll) {
    const std::string token = hold("holder");
    wait("hung", {.interval = 1000});
    last_polled("hung", 2001);
    wait("a");
    must({"ACL", "SETUSER", "rows", "-pubsub"});
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "a");
    EXPECT_TRUE(queued_ids().empty());
}

}  // namespace
}  // namespace holdfast::testing::mutex_bad_state_test
