// mutex/release while others wait: the script hands the lock over to the next waiter.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_hand_over_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::Le;

class MutexHandOver : public script_rows {};

TEST_F(MutexHandOver, MakesTheFirstWaiterTheHolderAndTellsIt) {  // R10, R11, R12
    const std::string first = hold("holder");
    wait("a", {.lease = 20'000});
    wait("b");
    listener a = listens("a");
    listener b = listens("b");
    const redis_reply reply = release("holder", first);
    EXPECT_EQ(code(reply), 1);
    EXPECT_EQ(reply.elements[1].integer, 1) << "one still waits";

    EXPECT_EQ(value(lock), "a");
    EXPECT_THAT(left(lock), AllOf(Gt(0), Le(20'000))) << "the lease that the waiter asked for";
    EXPECT_GT(std::stoll(value(fence)), std::stoll(first));
    EXPECT_THAT(queued_ids(), ElementsAre("b"));
    EXPECT_TRUE(must({"HGET", waiters, "a"}).is_nil());
    EXPECT_EQ(a.next(), "grant a " + value(fence));
    expect_silence(b, "b");  // the others sleep on
    expect_silence(a, "a");  // and it is said once
    expect_all_keys_expire();
}

TEST_F(MutexHandOver, ServesEverybodyInOrder) {  // R10
    std::string token = hold("0");
    std::vector<listener> ears;
    for (const std::string id : {"1", "2", "3"}) {
        wait(id);
        ears.push_back(listens(id));
    }
    for (const std::string id : {"1", "2", "3"}) {
        release(value(lock), token);
        EXPECT_EQ(value(lock), id);
        const std::string next = value(fence);
        EXPECT_GT(std::stoll(next), std::stoll(token));
        token = next;
    }
    EXPECT_EQ(code(release("3", token)), 1);
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
}

TEST_F(MutexHandOver, PassesOverTheDead) {  // R13
    const std::string token = hold("holder");
    wait("dead");
    wait("alive");
    listener ear = listens("alive");
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "alive");
    EXPECT_EQ(ear.next(), "grant alive " + value(fence));
    EXPECT_EQ(everything().size(), 2U) << "the dead one's place and entry are gone";
}

TEST_F(MutexHandOver, PassesOverTheHungAndTellsItNothing) {  // R13
    const std::string token = hold("holder");
    wait("hung", {.interval = 1000});
    last_polled("hung", 2001);
    wait("alive");
    listener hung = listens("hung");
    const listener alive = listens("alive");
    release("holder", token);
    EXPECT_EQ(value(lock), "alive");
    expect_silence(hung, "hung");
}

TEST_F(MutexHandOver, GivesThePassedOverItsPositionBack) {  // R10
    const std::string token = hold("holder");
    const std::string ticket = ticket_of(wait("cut off"));
    wait("a");
    wait("b");
    const listener ear = listens("a");
    release("holder", token);
    EXPECT_THAT(wait("cut off", {.ticket = ticket}), IsQueued("a", 0));
    EXPECT_THAT(queued_ids(), ElementsAre("cut off", "b"));
}

TEST_F(MutexHandOver, FreesTheLockIfAllAreDead) {  // R13
    const std::string token = hold("holder");
    for (int i = 0; i < 50; ++i) wait("dead" + text(i));
    const redis_reply reply = release("holder", token);
    EXPECT_EQ(code(reply), 1);
    EXPECT_EQ(reply.elements[1].integer, 0);
    EXPECT_EQ(everything().size(), 1U) << "the mark alone";
}

TEST_F(MutexHandOver, DoesNotTakeAPatternForAListener) {  // R13: somebody watches hf:wake:*
    const std::string token = hold("holder");
    wait("dead");
    const listener tool{server().unix_path(), listener::to::pattern, "wake:*"};
    release("holder", token);
    EXPECT_EQ(everything().count(lock), 0U);
}

TEST_F(MutexHandOver, IsDoneByWhoeverFindsTheHolderGone) {  // R46: a release that came too late
    const std::string token = hold("slow");
    wait("next");
    listener ear = listens("next");
    lease_ends();
    EXPECT_EQ(code(release("slow", token)), 0);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(ear.next(), "grant next " + value(fence));
}

TEST_F(MutexHandOver, IsDoneByWhoGivesUpAndFindsTheHolderGone) {  // R13
    hold("gone");
    wait("me");
    wait("next");
    listener mine = listens("me");
    listener ear = listens("next");
    lease_ends();
    EXPECT_EQ(code(release("me", "0")), 0);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(ear.next(), "grant next " + value(fence));
    expect_silence(mine, "me");
}

TEST_F(MutexHandOver, IsDoneByWhoGivesUpAfterItWasGranted) {  // R13: the wake-up is not swallowed
    const std::string token = hold("holder");
    wait("me");
    wait("next");
    const listener mine = listens("me");
    const listener ear = listens("next");
    release("holder", token);
    ASSERT_EQ(value(lock), "me");
    EXPECT_EQ(code(release("me", "0")), 1);
    EXPECT_EQ(value(lock), "next");
}

// The next in the queue polls every ten seconds; were the new holder, with a lease of one, to die, it would find
// out nine seconds late.
TEST_F(MutexHandOver, TellsTheNextToPollIfTheNewLeaseIsShorterThanItsInterval) {  // §6
    const std::string token = hold("holder");
    wait("a", {.lease = 1000, .interval = 300});
    wait("b", {.interval = 10'000});
    wait("c", {.interval = 10'000});
    const listener a = listens("a");
    listener b = listens("b");
    listener c = listens("c");
    release("holder", token);
    EXPECT_EQ(b.next(), "poll b");
    expect_silence(c, "c");
}

TEST_F(MutexHandOver, DoesNotTellTheNextToPollIfItWillInTime) {  // R12
    const std::string token = hold("holder");
    wait("a", {.lease = 10'000});
    wait("b", {.interval = 10'000});
    const listener a = listens("a");
    listener b = listens("b");
    release("holder", token);
    expect_silence(b, "b");
}

TEST_F(MutexHandOver, TellsTheNextToPollWhenAPollTookTheLock) {  // §6
    hold("holder");
    wait("a", {.lease = 1000, .interval = 300});
    wait("b", {.interval = 10'000});
    listener b = listens("b");
    lease_ends();
    EXPECT_EQ(code(wait("a", {.lease = 1000, .interval = 300})), 1);
    EXPECT_EQ(b.next(), "poll b");
}

// Only the first in the queue looks often at a foreign holder, and only it was told of a short lease. Whoever
// comes to stand there must know.
TEST_F(MutexHandOver, TellsTheNextToPollWhenTheFirstGivesUp) {  // §6, R13
    must({"SET", lock, "python"});
    wait("a");
    wait("b");
    wait("c");
    listener b = listens("b");
    listener c = listens("c");
    release("a", "0");
    EXPECT_EQ(b.next(), "poll b");
    expect_silence(c, "c");
}

TEST_F(MutexHandOver, TellsNobodyWhenOneFurtherBackGivesUp) {  // R12
    must({"SET", lock, "python"});
    wait("a");
    wait("b");
    wait("c");
    listener a = listens("a");
    listener c = listens("c");
    release("b", "0");
    expect_silence(a, "a");
    expect_silence(c, "c");
}

TEST_F(MutexHandOver, WakesAChannelWithAnyName) {
    const std::string token = hold("holder");
    const std::string channel = "a name of\nfour words and a brace}";
    acquire("a", {.channel = channel});
    // hiredis splits its format, not its arguments, so the name arrives whole.
    listener ear{server().unix_path(), listener::to::channel, channel};
    release("holder", token);
    EXPECT_EQ(ear.next(), "grant a " + value(fence));
}

}  // namespace
}  // namespace holdfast::testing::mutex_hand_over_test
