// The read-write scripts with a running clock. The clock of the other tests stands still, which hides one thing: a
// script finds out by the hash's expiry whether another program touched it, and reads the clock and the expiry one
// after the other.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_real_clock_test {
namespace {

class RwRealClock : private own_server, public script_fixture {
protected:
    const std::vector<std::string> keys{lock, queue, waiters, fence, "hf:{stock}:leases", "hf:{stock}:grants"};

    RwRealClock() : own_server{{}}, script_fixture{running.unix_path(), {"hf:{stock}:leases", "hf:{stock}:grants"}} {}

    redis_reply read(const std::string& id) {
        return run("rw/acquire", keys, {id, text(hour), "arrival", "r", text(minute), "0", "", "0", "0", "0", "0"});
    }
    redis_reply renew(const std::string& id) {
        return run("rw/renew", keys, {id, text(hour), "arrival", text(minute)});
    }
    // Only a script that finds hash and leases at odds reads the whole hash.
    std::int64_t searches() { return running.command_calls("hgetall"); }
};

TEST_F(RwRealClock, NeverTakesItsOwnExpiryForAForeignOne) {  // R33
    const std::string ids[] = {hold_id("ann"), hold_id("bob"), hold_id("cid")};
    for (const std::string& id : ids) ASSERT_EQ(code(read(id)), 1);
    for (int i = 0; i < 3000; ++i) ASSERT_EQ(code(renew(ids[i % 3])), 1);
    EXPECT_EQ(searches(), 0);
    must({"PEXPIRE", lock, text(minute / 2)});
    ASSERT_EQ(code(renew(ids[0])), 1);
    EXPECT_GT(searches(), 0) << "and does notice one";
    EXPECT_GT(left(lock), minute / 2) << "and restores its own";
}

}  // namespace
}  // namespace holdfast::testing::rw_real_clock_test
