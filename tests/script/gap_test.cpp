// The gap: a lock whose key other programs poll for becomes free for a moment again and again, however many of our
// clients wait.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::gap_test {
namespace {

using ::testing::ElementsAre;

// One bench for both kinds of lock: what they are asked for is the same here.
enum class kind_of_lock { mutex, read_write };

class Gap : private clocked_server, public script_fixture, public ::testing::WithParamInterface<kind_of_lock> {
protected:
    const std::string gap = "hf:{stock}:gap", leases = "hf:{stock}:leases", grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid");
    static constexpr std::int64_t yield_after = 50;
    static constexpr std::int64_t longest_turn = 8 * yield_after;

    Gap() : script_fixture{clocked.unix_path(), {"hf:{stock}:gap", "hf:{stock}:leases", "hf:{stock}:grants"}} {}

    bool is_mutex() const { return GetParam() == kind_of_lock::mutex; }
    std::vector<std::string> keys() const {
        if (is_mutex()) return {lock, queue, waiters, fence, gap};
        return {lock, queue, waiters, fence, leases, grants, gap};
    }
    redis_reply acquire(const std::string& id, const std::string& channel, const std::string& ticket = "0") {
        if (is_mutex()) {
            return run("mutex/acquire", keys(),
                       {id, text(minute), "0", text(hour), channel, ticket, "10000", "61000", "0"});
        }
        return run("rw/acquire", keys(),
                   {id, text(hour), "arrival", "w", text(minute), "0", channel, ticket, "10000", "61000", "0", "0"});
    }
    redis_reply wait(const std::string& id, const std::string& ticket = "0") {
        return acquire(id, "wake:" + id, ticket);
    }
    redis_reply release(const std::string& id, const std::string& token, std::int64_t yields_after = yield_after) {
        if (is_mutex()) return run("mutex/release", keys(), {id, token, text(hour), "0", text(yields_after)});
        return run("rw/release", keys(), {id, text(hour), "arrival", token, "", text(minute), "0", text(yields_after)});
    }
    std::string hold(const std::string& id) {
        const redis_reply reply = acquire(id, "");
        EXPECT_EQ(code(reply), 1);
        return reply.elements.at(1).text;
    }
    void foreign_holds(std::int64_t ms) {
        if (is_mutex()) {
            must({"SET", lock, "stranger", "PX", text(ms)});
        } else {
            must({"HSET", lock, "mode", "write", "writer", "stranger", "wcount", "1"});
            must({"PEXPIRE", lock, text(ms)});
        }
    }
    bool is_free() { return must({"EXISTS", lock}).integer == 0; }
    std::string holder() { return is_mutex() ? value(lock) : must({"HGET", lock, "writer"}).text; }

    void pass(std::int64_t ms) {
        now_us += ms * 1000;
        clocked.set_time(now_us);
    }
    // To the beginning of a turn, whichever length turns have.
    void pass_to_a_turn() { pass(longest_turn - now_us / 1000 % longest_turn); }
};

TEST_P(Gap, ComesAtTheFirstReleaseAfterATurn) {
    pass_to_a_turn();
    const std::string first = hold(ann);
    wait(bob);
    const listener b = listens(bob);
    pass(longest_turn - 1);
    EXPECT_EQ(code(release(ann, first)), 1);
    EXPECT_EQ(holder(), bob) << "the turn is not over";
    wait(cid);
    listener c = listens(cid);
    pass(1);
    const redis_reply released = release(bob, value(fence));
    EXPECT_EQ(code(released), 1);
    EXPECT_EQ(released.elements[1].integer, 1) << "it still waits";
    EXPECT_TRUE(is_free());
    EXPECT_EQ(c.next(), "poll " + cid);
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
    expect_all_keys_expire();
}

TEST_P(Gap, KeepsOursOutUntilItIsOver) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    const std::string ticket = ticket_of(wait(bob));
    const listener b = listens(bob);
    pass(longest_turn);
    release(ann, token);
    const redis_reply queued = wait(bob, ticket);
    EXPECT_EQ(code(queued), 2);
    EXPECT_EQ(queued.elements[1].integer, 9) << "a sixth of 50 ms, in whole ms";
    EXPECT_EQ(queued.elements[2].text, "");
    EXPECT_EQ(queued.elements[4].integer, 0);
    const redis_reply newcomer = wait(cid);
    EXPECT_EQ(code(newcomer), 2);
    EXPECT_EQ(newcomer.elements[4].integer, 1) << "behind the one who waited";
    EXPECT_EQ(code(acquire(hold_id("dan"), "")), 0) << "who only tries does not overtake either";
    EXPECT_TRUE(is_free());
    pass(9);
    EXPECT_EQ(code(wait(bob, ticket)), 1);
    EXPECT_THAT(queued_ids(), ElementsAre(cid));
}

TEST_P(Gap, IsLongAndFrequentWhileOtherProgramsAreSeen) {
    pass_to_a_turn();
    foreign_holds(2);
    wait(ann);
    const listener a = listens(ann);
    pass(4);
    const redis_reply granted = wait(ann);
    ASSERT_EQ(code(granted), 1) << granted.text;
    const std::string ticket = ticket_of(wait(bob));
    const listener b = listens(bob);
    pass(yield_after);
    release(ann, granted.elements[1].text);
    EXPECT_TRUE(is_free());
    EXPECT_EQ(wait(bob, ticket).elements[1].integer, yield_after);
}

TEST_P(Gap, LeavesTheLockToWhoeverComes) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    const std::string ticket = ticket_of(wait(bob));
    const listener b = listens(bob);
    pass(longest_turn);
    release(ann, token);
    foreign_holds(60'000);
    const redis_reply queued = wait(bob, ticket);
    EXPECT_EQ(code(queued), 2);
    EXPECT_EQ(queued.elements[2].text, "stranger");
    EXPECT_EQ(holder(), "stranger");
}

TEST_P(Gap, IsNotMadeWhereNobodyWaits) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    pass(longest_turn);
    release(ann, token);
    hold(bob);
    EXPECT_EQ(must({"EXISTS", gap}).integer, 0);
}

TEST_P(Gap, IsNotMadeForTheDead) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    wait(bob);  // nobody listens for it
    pass(longest_turn);
    release(ann, token);
    EXPECT_EQ(must({"EXISTS", queue}).integer, 0);
    hold(cid);
}

TEST_P(Gap, IsServedByTheNextIfTheFirstGivesUp) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    wait(bob);
    wait(cid);
    const listener b = listens(bob);
    listener c = listens(cid);
    pass(longest_turn);
    release(ann, token);
    release(bob, "0");
    EXPECT_TRUE(is_free());
    EXPECT_EQ(c.next(), "poll " + cid);
}

TEST_P(Gap, IsNotMadeForWhoDoesNotYield) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    wait(bob);
    const listener b = listens(bob);
    pass(longest_turn);
    release(ann, token, 0);
    EXPECT_EQ(holder(), bob);
}

// A clock that is set back must not make a gap that much longer.
TEST_P(Gap, EndsWhereTheClockWasSetBack) {
    for (const std::int64_t by_ms : {60'000, 500, 1}) {
        pass_to_a_turn();
        const std::string token = hold(ann);
        const std::string ticket = ticket_of(wait(bob));
        const listener b = listens(bob);
        pass(longest_turn);
        release(ann, token);
        pass(-by_ms);
        const redis_reply granted = wait(bob, ticket);
        ASSERT_EQ(code(granted), 1) << by_ms;
        release(bob, granted.elements[1].text);
    }
}

TEST_P(Gap, ThatAnotherProgramWroteIsNone) {
    const std::string token = hold(ann);
    wait(bob);
    const listener b = listens(bob);
    must({"SET", gap, "0 9007199254740991 0"});
    release(ann, token, 0);
    EXPECT_EQ(holder(), bob);
}

TEST_P(Gap, IsNoObstacleOnAFullServer) {
    pass_to_a_turn();
    const std::string token = hold(ann);
    wait(bob);
    listener b = listens(bob);
    pass(longest_turn);
    server_is_full();
    EXPECT_EQ(code(release(ann, token)), 1);
    EXPECT_TRUE(is_free());
    EXPECT_EQ(b.next(), "poll " + bob);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Gap, ::testing::Values(kind_of_lock::mutex, kind_of_lock::read_write),
                         [](const auto& one) { return one.param == kind_of_lock::mutex ? "Mutex" : "ReadWrite"; });

}  // namespace
}  // namespace holdfast::testing::gap_test
