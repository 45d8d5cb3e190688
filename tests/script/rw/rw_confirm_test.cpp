// rw/confirm: tells whether a hold exists as it was granted, and writes something that changes nothing, for replicas to
// acknowledge.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_confirm_test {
namespace {

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::Gt;
using ::testing::Le;
using ::testing::Matcher;

class RwConfirm : public rw_rows {
protected:
    redis_reply confirm(const std::string& id, const std::string& token = "0") {
        return run("rw/confirm", {lock, leases, grants}, {id, token});
    }
    void expect_yes(const std::string& id, const std::string& token = "0") {
        expect(AllOf(Gt(minute / 2), Le(minute)), id, token);
    }
    void expect_no(const std::string& id, const std::string& token = "0") { expect(Eq(0), id, token); }

private:
    void expect(const Matcher<std::int64_t>& answer, const std::string& id, const std::string& token) {
        const keyspace before = everything();
        EXPECT_THAT(confirm(id, token).integer, answer);
        EXPECT_EQ(everything(), before);
    }
};

TEST_F(RwConfirm, OfAHoldOfWhateverShapeSaysYesAndChangesNothing) {
    const std::string reading = reads(ann);
    expect_yes(ann);
    expect_yes(ann, reading);
    const std::string both = upgraded(ann, reading);
    expect_yes(ann, both);
    must({"FLUSHALL"});
    expect_yes(bob, writes(bob));
}

// After a move the clock may be another, and its keys end when they should.
TEST_F(RwConfirm, SaysHowMuchIsLeftByTheDeadlineOrByTheKeysWhicheverIsFirst) {
    reads(ann);
    must({"PEXPIRE", leases, text(minute / 4)});
    EXPECT_THAT(confirm(ann).integer, AllOf(Gt(0), Le(minute / 4)));
    must({"ZADD", leases, text(now_ms() + minute / 8), ann});
    EXPECT_THAT(confirm(ann).integer, AllOf(Gt(0), Le(minute / 8)));
    must({"ZADD", leases, text(now_ms() - 1), ann});
    expect_no(ann);
}

TEST_F(RwConfirm, OfAnotherGrantSaysNo) {
    const std::string reading = reads(ann);
    upgraded(ann, reading);
    expect_no(ann, reading);
    expect_no(bob);
}

TEST_F(RwConfirm, OfAHoldThatIsNotWholeSaysNo) {
    reads(ann);
    reads(bob);
    must({"ZREM", leases, ann});
    expect_no(ann);
    expect_yes(bob);
    must({"HDEL", lock, "r:" + bob});
    expect_no(bob);
}

TEST_F(RwConfirm, IsDoneByAFullServer) {
    writes(ann);
    server_is_full();
    EXPECT_THAT(confirm(ann).integer, Gt(0));
}

}  // namespace
}  // namespace holdfast::testing::rw_confirm_test
