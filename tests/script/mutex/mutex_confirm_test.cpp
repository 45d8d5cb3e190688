// mutex/confirm: tells whether a hold exists, and writes something that changes nothing, for replicas to acknowledge.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_confirm_test {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Le;

class MutexConfirm : public script_rows {
protected:
    redis_reply confirm(const std::string& id) { return run("mutex/confirm", {lock}, {id}); }
    std::int64_t changes() { return std::stoll(server().info("persistence", "rdb_changes_since_last_save")); }

    void expect_no(const std::string& id) {
        const keyspace before = everything();
        const std::int64_t changed = changes();
        EXPECT_EQ(confirm(id).integer, 0);
        EXPECT_EQ(everything(), before);
        EXPECT_EQ(changes(), changed);
    }
};

TEST_F(MutexConfirm, OfAHoldThatIsThereWritesAndChangesNothing) {
    hold("me");
    must({"PEXPIRE", lock, text(minute)});
    const std::int64_t changed = changes();
    EXPECT_THAT(confirm("me").integer, AllOf(Gt(minute / 2), Le(minute)));
    EXPECT_EQ(changes(), changed + 1) << "or a WAIT behind it would say nothing";
    EXPECT_EQ(value(lock), "me");
    EXPECT_THAT(left(lock), AllOf(Gt(minute / 2), Le(minute)));
}

TEST_F(MutexConfirm, OfNobodysOrAnothersLockSaysNo) {
    expect_no("me");
    hold("next");
    expect_no("me");
}

// Who took over may have an earlier grant of the same id, or not know that its token was raised.
TEST_F(MutexConfirm, OfAnotherTokenSaysNo) {
    hold("me");
    must({"SET", fence, "41"});
    EXPECT_EQ(run("mutex/confirm", {lock, fence}, {"me", "42"}).integer, 0);
    must({"SET", fence, "42"});
    EXPECT_THAT(run("mutex/confirm", {lock, fence}, {"me", "42"}).integer, Gt(0));
    must({"DEL", fence});
    EXPECT_EQ(run("mutex/confirm", {lock, fence}, {"me", "42"}).integer, 0);
}

TEST_F(MutexConfirm, OfALockWithoutAnEndSaysNoAndLeavesIt) {
    hold("me");
    must({"PERSIST", lock});
    expect_no("me");
}

TEST_F(MutexConfirm, IsDoneByAFullServer) {
    hold("me");
    server_is_full();
    EXPECT_THAT(confirm("me").integer, Gt(0));
}

}  // namespace
}  // namespace holdfast::testing::mutex_confirm_test
