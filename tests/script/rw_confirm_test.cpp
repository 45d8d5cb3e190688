// rw/confirm: whether a hold is there as it was granted, and a write that changes nothing for replicas to acknowledge.
#include "script/rw_rows.hpp"

namespace holdfast::testing {
namespace {

class RwConfirm : public rw_rows {
protected:
    redis_reply confirm(const std::string& id, const std::string& token = "0") {
        return run("rw/confirm", {lock, leases, grants}, {id, token});
    }
    void expect(std::int64_t answer, const std::string& id, const std::string& token = "0") {
        const keyspace before = everything();
        EXPECT_EQ(confirm(id, token).integer, answer);
        EXPECT_EQ(everything(), before);
    }
};

TEST_F(RwConfirm, OfAHoldOfWhateverShapeSaysYesAndChangesNothing) {
    const std::string reading = reads(ann);
    expect(1, ann);
    expect(1, ann, reading);
    const std::string both = upgraded(ann, reading);
    expect(1, ann, both);
    must({"FLUSHALL"});
    expect(1, bob, writes(bob));
}

TEST_F(RwConfirm, OfAnotherGrantSaysNo) {
    const std::string reading = reads(ann);
    upgraded(ann, reading);
    expect(0, ann, reading);
    expect(0, bob);
}

TEST_F(RwConfirm, OfAHoldThatIsNotWholeSaysNo) {
    reads(ann);
    reads(bob);
    must({"ZREM", leases, ann});
    expect(0, ann);
    expect(1, bob);
    must({"HDEL", lock, "r:" + bob});
    expect(0, bob);
}

TEST_F(RwConfirm, IsDoneByAFullServer) {
    writes(ann);
    server_is_full();
    EXPECT_EQ(confirm(ann).integer, 1);
}

}  // namespace
}  // namespace holdfast::testing
