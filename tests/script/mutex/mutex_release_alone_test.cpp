// mutex/release_alone: the release that needs only the lock's own key.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_release_alone_test {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;

class MutexReleaseAlone : public script_rows {
protected:
    redis_reply release_alone(const std::string& id) { return run("mutex/release_alone", {lock}, {id}); }
};

TEST_F(MutexReleaseAlone, ByTheHolderFreesTheLockAndTouchesNothingElse) {
    hold("me");
    wait("next");
    listener ear = listens("next");
    keyspace before = everything();
    const redis_reply reply = release_alone("me");
    EXPECT_EQ(code(reply), 2);
    EXPECT_EQ(reply.elements.size(), 1U);
    before.erase(lock);
    EXPECT_EQ(everything(), before);
    expect_silence(ear, "next");
}

TEST_F(MutexReleaseAlone, LeavesTheQueueToTheReleaseThatFollows) {
    const std::string token = hold("me");
    wait("next");
    listener ear = listens("next");
    release_alone("me");
    EXPECT_EQ(code(release("me", token)), 0);
    EXPECT_EQ(value(lock), "next");
    EXPECT_EQ(ear.next(), "grant next " + value(fence));
    EXPECT_GT(std::stoll(value(fence)), std::stoll(token)) << "tokens grow";
}

TEST_F(MutexReleaseAlone, RepeatedAnswersAndChangesNothing) {  // R05
    hold("me");
    release_alone("me");
    const keyspace before = everything();
    EXPECT_EQ(code(release_alone("me")), 0);
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexReleaseAlone, OfAnothersLockChangesNothing) {  // R04, R06, R07
    for (const std::string holder : {"next", "python"}) {
        must({"SET", lock, holder, "PX", text(minute)});
        const keyspace before = everything();
        EXPECT_THAT(release_alone("me"), IsRefused(-1, AllOf(Gt(0), Le(minute)), holder));
        EXPECT_EQ(everything(), before);
    }
}

TEST_F(MutexReleaseAlone, OfAKeyOfAnotherTypeIsRefused) {
    must({"HSET", lock, "a", "b"});
    const keyspace before = everything();
    EXPECT_THAT(release_alone("me"), IsError("WRONGTYPE"));
    EXPECT_EQ(everything(), before);
}

TEST_F(MutexReleaseAlone, IsDoneByAFullServer) {
    hold("me");
    server_is_full();
    EXPECT_EQ(code(release_alone("me")), 2);
    EXPECT_EQ(everything().count(lock), 0U);
}

}  // namespace
}  // namespace holdfast::testing::mutex_release_alone_test
