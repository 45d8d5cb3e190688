// mutex/watch: who is told of which change, and that nobody pays who is not watched.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_watch_test {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;
using ::testing::SizeIs;

class MutexWatch : public script_rows {  // R55
protected:
    const std::string notes = "hf:{stock}:notes";

    MutexWatch() : script_rows{{}, {"hf:{stock}:notes", "hf:{stock}:gap"}} {}

    redis_reply watch(const std::string& id, const std::string& channel, std::int64_t ms = minute) {
        return run("mutex/watch", {lock, queue, waiters, fence, notes}, {id, channel, text(ms)});
    }
    redis_reply watch(const std::string& id) { return watch(id, "wake:" + id); }
    std::string watchers() { return must({"HGET", waiters, "watch"}).text; }
    void someone_wrote(const std::string& watchers) {
        must({"HSET", waiters, "watch", watchers});
        must({"PEXPIRE", waiters, "60000"});
    }
};

TEST_F(MutexWatch, TellsWhoHoldsTheLock) {
    const std::string token = hold("me");
    must({"HSET", notes, "me", "nightly backup"});
    must({"PEXPIRE", notes, "60000"});
    const redis_reply reply = watch("eye");
    ASSERT_THAT(reply.elements, SizeIs(5));
    EXPECT_EQ(reply.elements[0].integer, 1);
    EXPECT_EQ(reply.elements[1].text, "me");
    EXPECT_THAT(reply.elements[2].integer, AllOf(Gt(0), Le(minute)));
    EXPECT_EQ(reply.elements[3].text, token);
    EXPECT_EQ(reply.elements[4].text, "nightly backup");
    expect_all_keys_expire();
}

TEST_F(MutexWatch, TellsThatTheLockIsFree) {
    EXPECT_EQ(watch("eye").elements.at(1).text, "0");
    const std::string token = hold("me");
    release("me", token);
    const redis_reply reply = watch("eye");
    EXPECT_EQ(code(reply), 0);
    EXPECT_EQ(reply.elements.at(1).text, token);
}

TEST_F(MutexWatch, IsToldOfAGrantAReleaseAndAHandOver) {
    listener eye = listens("eye");
    const listener next = listens("next");
    watch("eye");
    const std::string token = hold("me");
    EXPECT_EQ(eye.next(), "changed eye");
    wait("next");
    expect_silence(eye, "eye");
    watch("eye");
    release("me", token);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(eye.next(), "changed eye");
    release("next", value(fence));
    EXPECT_EQ(eye.next(), "changed eye");
    EXPECT_EQ(everything().count(lock), 0U);
}

// With several servers a grant counts when a majority has it by one token, so that is what watchers wait for.
TEST_F(MutexWatch, IsToldOfARaise) {
    listener eye = listens("eye");
    const std::string token = hold("me");
    watch("eye");
    const std::string to = text(std::stoll(token) + 5);
    EXPECT_EQ(code(run("mutex/raise", {lock, queue, waiters, fence}, {"me", token, to, text(hour)})), 1);
    EXPECT_EQ(eye.next(), "changed eye");
    EXPECT_EQ(watch("eye").elements.at(3).text, to);
}

TEST_F(MutexWatch, OfALockWhoseWatcherIsNotInTheQueueGrantsAsEver) {
    watch("eye");
    const std::string token = hold("me");
    EXPECT_THAT(acquire("other"), IsRefused(0, Gt(0), "me"));
    EXPECT_THAT(wait("first"), IsQueued("me", 0));
    release("me", token);
    EXPECT_EQ(value(lock), "") << "nobody listens for the waiter, and nobody else is in the queue";
}

TEST_F(MutexWatch, IsToldNothingAfterItStopped) {
    listener eye = listens("eye");
    watch("eye");
    watch("other");
    watch("eye", "");
    EXPECT_EQ(watchers().find(" eye "), std::string::npos);
    EXPECT_NE(watchers().find(" other "), std::string::npos);
    hold("me");
    expect_silence(eye, "eye");
    watch("other", "");
    EXPECT_EQ(everything().count(waiters), 0U);
}

TEST_F(MutexWatch, IsToldNothingAfterItsTimeIsOver) {
    listener eye = listens("eye");
    watch("eye", "wake:eye", 1);
    watch("other");
    const std::int64_t begun = server_us();
    while (server_us() < begun + 2000) continue;
    hold("me");
    expect_silence(eye, "eye");
}

TEST_F(MutexWatch, SurvivesWhatTheQueueDoes) {
    const std::string token = hold("me");
    watch("eye");
    wait("next");
    release("next", "0");
    EXPECT_NE(watchers(), "");
    EXPECT_EQ(must({"EXISTS", queue}).integer, 0);
    wait("again");
    EXPECT_NE(watchers(), "");
}

// The queue expired with its dead waiters; the hash lives on for the watchers.
TEST_F(MutexWatch, SurvivesTheRemovalOfDeadWaiters) {
    const std::string token = hold("me");
    watch("eye");
    wait("dead");
    must({"DEL", queue});
    listener eye = listens("eye");
    const listener next = listens("next");
    wait("next", {.queue_retention = 1000});
    EXPECT_GT(left(waiters), minute - 10'000);
    release("me", token);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(must({"HEXISTS", waiters, "dead"}).integer, 0);
    EXPECT_EQ(eye.next(), "changed eye");
    expect_all_keys_expire();
}

TEST_F(MutexWatch, DoesNotCountAsAWaiterBeforeOthers) {
    hold("me");
    watch("eye");
    EXPECT_THAT(wait("first"), IsQueued("me", 0));
    EXPECT_THAT(wait("second"), IsQueued("me", 1));
    EXPECT_THAT(wait("third"), IsQueued("me", 2));
    EXPECT_THAT(wait("second"), IsQueued("me", 1));
}

// Whose waiters are in the queue and have no entry.
TEST_F(MutexWatch, BesideAWaiterOfAnotherProgramIsToldAndDoesNotCount) {
    listener eye = listens("eye");
    const listener next = listens("next");
    watch("eye");
    const std::string token = hold("me");
    EXPECT_EQ(eye.next(), "changed eye");
    is_raw = true;
    must({"ZADD", queue, "1", "other-program"});
    must({"PEXPIRE", queue, "60000"});
    EXPECT_THAT(wait("next"), IsQueued("me", 0));
    release("me", token);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(eye.next(), "changed eye");
}

TEST_F(MutexWatch, IsNotForgottenEarlierBecauseOfAWaiter) {
    hold("me");
    watch("eye");
    wait("first", {.queue_retention = 1000});
    wait("second", {.queue_retention = 2000});
    EXPECT_GT(left(waiters), minute - 10'000);
}

TEST_F(MutexWatch, KeepsTheTokenOfAHoldThatOutlivesTheFence) {
    const std::string token = hold("me");
    must({"PEXPIRE", fence, "500"});
    EXPECT_EQ(watch("eye").elements.at(3).text, token);
    EXPECT_GT(left(fence), minute - 10'000);
    const std::int64_t full = must({"PEXPIRETIME", fence}).integer;
    watch("eye", "wake:eye", 1000);
    EXPECT_EQ(must({"PEXPIRETIME", fence}).integer, full) << "never shorter";
    release("me", token);
    must({"PEXPIRE", fence, "500"});
    watch("eye");
    EXPECT_LE(left(fence), 500) << "nobody holds the lock";
}

TEST_F(MutexWatch, IsWrittenDownAgainOnlyWhenHalfOfItsTimeIsOver) {
    hold("me");
    watch("other");
    watch("eye", "wake:eye", minute);
    const std::string before = watchers();
    const std::int64_t until = must({"PEXPIRETIME", waiters}).integer;
    EXPECT_EQ(code(watch("eye", "wake:eye", minute)), 1);
    EXPECT_EQ(watchers(), before);
    EXPECT_LE(must({"PEXPIRETIME", waiters}).integer, until + 2)
        << "an expiry has a millisecond, and the clock goes on";
    watch("eye", "wake:eye", 3 * minute);
    EXPECT_NE(watchers(), before);
    EXPECT_GT(left(waiters), 2 * minute);
    watch("eye", "wake:new", 3 * minute);
    EXPECT_NE(watchers().find(" wake:new"), std::string::npos);
    EXPECT_EQ(watchers().find(" wake:eye"), std::string::npos);
}

TEST_F(MutexWatch, IsWrittenDownAgainWhereItsKeyWouldExpireBeforeItsTime) {
    watch("eye");
    must({"PEXPIRE", waiters, "1000"});
    watch("eye");
    EXPECT_GT(left(waiters), minute - 10'000);
}

TEST_F(MutexWatch, OfOneClientAreToldByOneMessage) {
    listener eye = listens("eye");
    watch("first", "wake:eye");
    watch("other");
    watch("second", "wake:eye");
    hold("me");
    EXPECT_EQ(eye.next(), "changed first second");
    expect_silence(eye, "eye");
}

TEST_F(MutexWatch, ThatDoesNotFitIsTold) {
    hold("me");
    std::size_t fit = 0;
    redis_reply last;
    for (std::size_t i = 0; i < 2000; ++i) {
        const std::string number = std::to_string(100'000 + i);
        last = watch("hf_0123456789abcdef.0.0123456789abcdef" + number, "hf:wake:hf_0123456789" + number);
        if (last.elements.size() == 5) ++fit;
    }
    EXPECT_GT(fit, 500U);
    EXPECT_LT(fit, 1000U);
    ASSERT_THAT(last.elements, SizeIs(6));
    EXPECT_EQ(last.elements[5].text, "untold");
    EXPECT_LE(watchers().size(), 65'536U);
    const std::string before = watchers();
    release("me", value(fence));
    EXPECT_EQ(watch("late").elements.at(2).text, "untold");
    EXPECT_EQ(watchers(), before);
}

TEST_F(MutexWatch, WithAChannelOfAnyFormIsUnderstood) {
    const std::string odd = "hf wake 7 x:{a b}\n1 2 3 ";
    listener eye{socket(), listener::to::channel, "wake:eye"};
    watch("odd", odd);
    watch("eye");
    hold("me");
    EXPECT_EQ(eye.next(), "changed eye");
}

TEST_F(MutexWatch, ThatPollsIsNotWrittenDown) {
    watch("eye", "-");
    EXPECT_TRUE(everything().empty());
}

TEST_F(MutexWatch, OnAFullServerIsAnsweredAndNotWrittenDown) {
    hold("me");
    server_is_full();
    const redis_reply reply = watch("eye");
    ASSERT_THAT(reply.elements, SizeIs(6));
    EXPECT_EQ(reply.elements[5].text, "untold");
    EXPECT_EQ(everything().count(waiters), 0U);
}

// --- what other programs wrote

TEST_F(MutexWatch, FieldsThatMakeNoSenseHoldUpNobody) {
    const std::string channel_there = std::to_string(server_us() + minute * 1000) + " there 10 wake:there";
    std::string many;
    for (int i = 0; i < 100'000; ++i) many += channel_there;
    for (const std::string& field :
         {std::string(), std::string("rubbish"), std::string("1 x 99999999999999999999 "),
          std::string("9007199254740991 x 18446744073709551615 y"),
          std::string("9007199254740991 x 9007199254740991 y"), std::string("99999999999999999999 x 1 y"),
          std::string("9007199254740991 x 0 "), std::string("1 x -5 y"), std::string(100'000, '7'),
          std::string(100'000, ' '), many, channel_there + "1 x 99999999999999999999 "}) {
        SCOPED_TRACE(field.substr(0, 60));
        must({"FLUSHALL"});
        const listener next = listens("next");
        listener eye = listens("eye");
        someone_wrote(field);
        EXPECT_EQ(code(watch("eye")), 0);
        EXPECT_LE(watchers().size(), 65'536U);
        const std::string token = hold("me");
        EXPECT_EQ(eye.next(), "changed eye");
        someone_wrote(field);
        EXPECT_THAT(wait("next"), IsQueued("me", 0));
        EXPECT_EQ(code(release("me", token)), 1);
        EXPECT_EQ(value(lock), "next");
        EXPECT_EQ(code(release("next", value(fence))), 1);
        EXPECT_EQ(everything().count(lock), 0U);
        EXPECT_EQ(code(watch("eye", "")), 0);
        expect_all_keys_expire();
    }
}

TEST_F(MutexWatch, ReadsWhatStandsBeforeAndAfterAForeignEntry) {
    listener eye = listens("eye");
    watch("eye");
    someone_wrote(watchers() + "1 x 99999999999999999999 ");
    hold("me");
    EXPECT_EQ(eye.next(), "changed eye");
}

TEST_F(MutexWatch, OfAKeyOfAnotherTypeChangesNothing) {
    for (const std::string& key : {lock, waiters, fence}) {
        SCOPED_TRACE(key);
        must({"FLUSHALL"});
        hold("me");
        must({"DEL", key});
        must({"RPUSH", key, "of another program"});
        const keyspace before = everything();
        EXPECT_THAT(watch("eye"), IsError("WRONGTYPE"));
        EXPECT_EQ(everything(), before);
    }
    must({"FLUSHALL"});
    hold("me");
    must({"RPUSH", notes, "of another program"});
    EXPECT_EQ(watch("eye").elements.at(4).text, "") << "a note is not worth a refusal";
}

TEST_F(MutexWatch, CostsNoCallWhereNobodyWatches) {
    const listener first = listens("hf_first"), second = listens("hf_second");
    must({"CONFIG", "RESETSTAT"});
    release("me", hold("me"));
    const std::string token = hold("me");
    wait("hf_first");
    wait("hf_second");
    release("me", token);
    EXPECT_EQ(value(lock), "hf_first");
    EXPECT_EQ(must({"INFO", "commandstats"}).text.find("cmdstat_hget:"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::testing::mutex_watch_test
