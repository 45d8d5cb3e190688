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

    MutexWatch() : script_rows{{}, {"hf:{stock}:notes"}} {}

    redis_reply watch(const std::string& id, const std::string& channel, std::int64_t ms = minute) {
        return run("mutex/watch", {lock, queue, waiters, fence, notes}, {id, channel, text(ms)});
    }
    redis_reply watch(const std::string& id) { return watch(id, "wake:" + id); }
    std::string watchers() { return must({"HGET", waiters, "watch"}).text; }
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
    EXPECT_EQ(code(watch("eye")), 1);
    EXPECT_EQ(everything().count(waiters), 0U);
}

TEST_F(MutexWatch, CostsNoCallWhereNobodyWatches) {
    const listener first = listens("first"), second = listens("second");
    must({"CONFIG", "RESETSTAT"});
    release("me", hold("me"));
    const std::string token = hold("me");
    wait("first");
    wait("second");
    release("me", token);
    EXPECT_EQ(value(lock), "first");
    EXPECT_EQ(must({"INFO", "commandstats"}).text.find("cmdstat_hget:"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::testing::mutex_watch_test
