// The scripts on a Cluster's member whose slot is moving away.
//
// Such a member runs a script only if all its keys are still there. But it looks at every call inside the script too,
// and stops the script at the first that touches a key which is not there any more: also one that the script itself has
// just emptied. Nothing is rolled back then. So no key is touched again by the script that made it vanish.
#include "script/rw_rows.hpp"
#include "support/cluster_member.hpp"

namespace holdfast::testing {
namespace {

cluster_member& member() {
    static cluster_member one{cluster_member::share::all_slots};
    return one;
}

class moving_slot : public script_bench {
protected:
    const std::string leases = "hf:{stock}:leases";
    const std::string grants = "hf:{stock}:grants";

    moving_slot() : script_bench{member().server().unix_path(), {"hf:{stock}:leases", "hf:{stock}:grants"}} {
        must({"FLUSHALL"});
    }
    ~moving_slot() override { slot_stays(); }

    void slot_moves() { member().begin_move(lock); }
    void slot_stays() { member().call_off_move(lock); }
};

class MovingSlotRw : public moving_slot {
protected:
    const std::string ann = hold_id("ann"), bob = hold_id("bob");

    redis_reply wait_to_write(const std::string& id) {
        return run("rw/acquire", keys(),
                   {id, text(hour), "arrival", "w", text(minute), "0", "wake:" + id, "0", "10000", "61000", "0"});
    }
    redis_reply renew(const std::string& id) {
        return run("rw/renew", keys(), {id, text(hour), "arrival", text(minute)});
    }

private:
    std::vector<std::string> keys() const { return {lock, queue, waiters, fence, leases, grants}; }
};

// Were its lease taken away before it is written anew, the script would end in between: a holder without a lease.
TEST_F(MovingSlotRw, RenewalOfTheOnlyHolderKeepsItsLease) {
    ASSERT_EQ(code(wait_to_write(ann)), 1);
    ASSERT_EQ(code(wait_to_write(bob)), 2);
    slot_moves();
    EXPECT_EQ(code(renew(ann)), 1);
    slot_stays();
    EXPECT_FALSE(must({"ZSCORE", leases, ann}).is_nil());
    EXPECT_EQ(code(wait_to_write(bob)), 2) << "two would believe to hold it";
}

}  // namespace
}  // namespace holdfast::testing
