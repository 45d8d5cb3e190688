// rw/renew_alone: the renewal that needs only the keys of the holders. It renews if hash, leases and grants agree, and
// leaves everything else to rw/renew.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_renew_alone_test {
namespace {

class RwRenewAlone : public rw_rows {
protected:
    redis_reply renew_alone(const std::string& id, const std::string& lease) {
        return run("rw/renew_alone", {lock, leases, grants}, {id, lease});
    }
    redis_reply renew_alone(const std::string& id) { return renew_alone(id, text(minute)); }

    void expect_left_alone(const std::string& id) {
        const keyspace before = everything();
        EXPECT_THAT(renew_alone(id), IsVerdict(3));
        EXPECT_EQ(everything(), before);
    }
};

// Of whatever shape: the same as rw/renew, where nobody else is concerned.
TEST_F(RwRenewAlone, DoesWhatARenewalDoes) {  // R25
    for (const char* const shape : {"r", "w", "b"}) {
        SCOPED_TRACE(shape);
        keyspace after[2];
        for (const bool alone : {false, true}) {
            must({"FLUSHALL"});
            std::string token = *shape == 'w' ? writes(ann) : reads(ann);
            if (*shape == 'b') token = upgraded(ann, token);
            pass(1000);
            EXPECT_THAT(alone ? renew_alone(ann) : renew(ann), Holds(shape, token));
            EXPECT_EQ(deadline(ann), now_ms() + minute);
            after[alone] = everything();
            for (auto& each : after[alone]) {  // only the time of the day is another
                auto& state = each.second;
                state.expires_at -= now_ms();
                const auto put_zero_for = [&state](const std::string& moment) {
                    if (const auto at = state.value.find(moment); at != std::string::npos) {
                        state.value.replace(at, moment.size(), "0");
                    }
                };
                put_zero_for(token);
                put_zero_for(text(now_ms() + minute));
            }
        }
        EXPECT_EQ(after[0], after[1]);
    }
}

TEST_F(RwRenewAlone, KeepsTheKeysAsLongAsTheLongestLease) {  // R25
    reads(ann, 10 * minute);
    const std::string token = reads(bob, 2000);
    pass(1000);
    EXPECT_THAT(renew_alone(bob), Holds("r", token));
    EXPECT_EQ(deadline(bob), now_ms() + minute);
    EXPECT_EQ(left(lock), 10 * minute - 1000);
    EXPECT_EQ(left(leases), 10 * minute - 1000);
    EXPECT_EQ(left(grants), 10 * minute - 1000);
}

TEST_F(RwRenewAlone, NeverShortens) {  // R25
    const std::string token = reads(ann);
    EXPECT_THAT(renew_alone(ann, "1000"), Holds("r", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    EXPECT_EQ(left(lock), minute);
}

TEST_F(RwRenewAlone, IsDoneByAFullServer) {  // R25
    const std::string token = writes(ann);
    server_is_full();
    pass(1000);
    EXPECT_THAT(renew_alone(ann), Holds("w", token));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
}

TEST_F(RwRenewAlone, NeitherRevivesNorRemovesAnybody) {  // R25, §4.5
    reads(ann, 1000);
    const std::string token = reads(bob);
    pass(1000);
    expect_left_alone(ann);
    EXPECT_THAT(renew_alone(bob), Holds("r", token)) << "the dead beside it are no matter";
    EXPECT_EQ(held(), read_by({ann, bob}));
    expect_left_alone(cid);
}

TEST_F(RwRenewAlone, LeavesAnotherProgramsHolderToTheFullOne) {  // R33
    reads(ann);
    must({"HSET", lock, "r:python", "1", "rcount", "2"});
    expect_left_alone(ann);
    must({"PERSIST", lock});
    expect_left_alone(ann);
    EXPECT_EQ(code(renew(ann)), 1) << "which remembers it";
    expect_left_alone(ann);
    must({"FLUSHALL"});
    reads(ann);
    must({"HSET", lock, "writer", "python", "wcount", "1", "mode", "write"});
    expect_left_alone(ann);
}

// One of ours is missing in the hash: their number is right.
TEST_F(RwRenewAlone, DoesNotTakeAnotherProgramsHolderForOneOfOurs) {  // R33
    for (const char* const how : {"300000", "1000"}) {
        must({"FLUSHALL"});
        reads(ann);
        reads(bob);
        must({"HDEL", lock, "r:" + bob});
        must({"HSET", lock, "r:python", "1"});
        must({"PEXPIRE", lock, how});
        expect_left_alone(ann);
        must({"PERSIST", lock});
        expect_left_alone(ann);
    }
}

TEST_F(RwRenewAlone, RestoresAnExpiryThatWasCutShort) {  // R33
    const std::string token = reads(ann);
    must({"PEXPIRE", lock, "1000"});
    EXPECT_THAT(renew_alone(ann), Holds("r", token));
    EXPECT_EQ(left(lock), minute);
}

TEST_F(RwRenewAlone, LeavesWhatDoesNotAgreeToTheFullOne) {  // R33
    const auto spoil = [&](const std::vector<std::string>& how) {
        must({"FLUSHALL"});
        writes(ann);
        must(how);
        expect_left_alone(ann);
    };
    spoil({"DEL", lock});
    spoil({"DEL", leases});
    spoil({"DEL", grants});
    spoil({"HSET", grants, ann, "nonsense"});
    spoil({"HSET", grants, ann, "r 17"});
    spoil({"HSET", grants, ann, "b 17"});
    spoil({"HSET", lock, "writer", bob});
    spoil({"HSET", lock, "r:" + bob, "1"});
    spoil({"HSET", lock, "r:" + ann, "1"});
    spoil({"ZADD", leases, text(now_ms() + minute), bob});
    must({"FLUSHALL"});
    writes(ann);
    must({"HSET", lock, "r:" + bob, "1"});
    must({"ZADD", leases, text(now_ms() + minute), bob});
    expect_left_alone(ann);
}

TEST_F(RwRenewAlone, RefusesNonsense) {
    reads(ann);
    const keyspace before = everything();
    for (const char* const lease : {"0", "-1", "1.5", "x", "", "9007199254740992"}) {
        EXPECT_THAT(renew_alone(ann, lease), IsError("ERR holdfast")) << lease;
    }
    EXPECT_EQ(everything(), before);
}

}  // namespace
}  // namespace holdfast::testing::rw_renew_alone_test
