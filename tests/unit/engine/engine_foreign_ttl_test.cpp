// A read-write lock shared with programs that set one expiry for all holders: how often a hold is renewed beside them.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_foreign_ttl_test {
namespace {

using namespace testing;

class EngineForeignTtl : public read_write_engine_fixture {
protected:
    void acquire(std::string_view granted, lock_kind kind = lock_kind::read_write) {
        acquire_terms asked = terms(access::shared);
        asked.options.kind = kind;
        if (kind == lock_kind::mutex) asked.want = access::exclusive;
        subject.acquire(first, asked, now);
        id = send_one().arguments.at(0);
        receive(granted);
        ASSERT_NE(first.held, nullptr);
        first.held->listen(life);
    }

    /// Lets time pass until a renewal goes out, and tells how long that took.
    milliseconds until_renewal() {
        for (milliseconds waited = 1ms; waited <= 30s; waited += 1ms) {
            later(1ms);
            const std::vector<question> asked = send();
            if (asked.empty()) continue;
            EXPECT_EQ(asked.size(), 1U);
            EXPECT_TRUE(asked[0].script.ends_with("/renew")) << asked[0].script;
            return waited;
        }
        ADD_FAILURE() << "no renewal";
        return 0ms;
    }

    /// A third of that, less up to a tenth of it.
    static auto at_a_third_of(milliseconds ttl) {
        return ::testing::AllOf(::testing::Gt(ttl / 3 * 9 / 10 - 2ms), ::testing::Le(ttl / 3 + 1ms));
    }

    static std::shared_ptr<const lock_keys> raw_keys() {
        return std::make_shared<const lock_keys>(wire::make_keys(wire::lock_name("x"), wire::key_naming::raw, ""));
    }
};

TEST_F(EngineForeignTtl, NotSeenLeavesAThirdOfTheLease) {
    acquire(list({"1", "42"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(30s));
    receive(list({"1", "r", "42"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(30s));
}

TEST_F(EngineForeignTtl, ShortestSeenSetsThePaceOfRenewals) {  // R33
    acquire(list({"1", "42", "", "6000"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(6s));
    receive(list({"1", "r", "42"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(6s)) << "not cut this time, but the program may come again";
    receive(list({"1", "r", "42", "3000"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(3s));
    receive(list({"1", "r", "42", "6000"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(3s));
}

TEST_F(EngineForeignTtl, NearlyOverWhenItWasSeenDoesNotFloodTheServer) {
    acquire(list({"1", "42", "", "2"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(300ms));
}

TEST_F(EngineForeignTtl, LongerThanTheLeaseChangesNothing) {
    acquire(list({"1", "42", "", "45000"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(30s));
}

TEST_F(EngineForeignTtl, SeenWhileItWaitedSetsThePaceOfAHandOver) {  // R33
    subject.acquire(first,
                    {.keys = keys,
                     .options = {.lease = 30'000ms, .kind = lock_kind::read_write},
                     .want = access::shared,
                     .owner = owner_id{7},
                     .limit = {waiting::in_queue, never}},
                    now);
    id = send_one().arguments.at(0);
    receive(list({"2", "900", somebody, "77", "1", "50", "900", "", "3000"}));
    push("grant " + id + " 60");
    ASSERT_NE(first.held, nullptr);
    EXPECT_THAT(until_renewal(), at_a_third_of(3s));
}

// Nobody tells that another program will come: the first time, its expiry would be over before a third of our lease.
TEST_F(EngineForeignTtl, IsTakenToBeTheUsualOneWhereOtherProgramsMayShareTheKey) {  // R33
    keys = raw_keys();
    acquire(list({"1", "42"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(5s));
    receive(list({"1", "r", "42", "1500"}));
    EXPECT_THAT(until_renewal(), at_a_third_of(1500ms));
}

TEST_F(EngineForeignTtl, MattersToNoMutex) {
    keys = raw_keys();
    acquire(list({"1", "42"}), lock_kind::mutex);
    EXPECT_THAT(until_renewal(), at_a_third_of(30s));
}

TEST_F(EngineForeignTtl, RenewalThatFailedIsTriedAgainAtThatPace) {
    acquire(list({"1", "42", "", "3000"}));
    until_renewal();
    receive("-BUSY a script is running\r\n");
    EXPECT_LE(until_renewal(), 1s);
}

// A holder of another program came while ours was the only one to wait for. The script that ends ours says so.
TEST_F(EngineForeignTtl, WhoIsToldToLookLooksOftenFromThenOnIfOnlyOtherProgramsAreInItsWay) {
    acquire_terms patient = terms(access::exclusive);
    patient.limit = {waiting::in_queue, never};
    subject.acquire(first, patient, now);
    id = send_one().arguments.at(0);
    const std::string ours = "hf_0123456789abcdef.1.0123456789abcdefghijkl";
    receive(list({"2", "30000", ours, "77", "0", "50", "30000"}));
    later(9s);
    EXPECT_EQ(send().size(), 0U);
    push("poll " + id);
    EXPECT_EQ(send_one().script, "rw/acquire");
    receive(list({"2", "4000", somebody, "77", "0", "50", "4000", "", "4000"}));
    for (int i = 0; i < 3; ++i) {
        later(250ms);
        EXPECT_EQ(send_one().script, "rw/acquire") << i;
        receive(list({"2", "4000", somebody, "77", "0", "50", "4000"}));
    }
}

TEST_F(EngineForeignTtl, HoldThatWasMissingIsToldByItsRenewalAndByItsRelease) {  // R33, R44
    acquire(list({"1", "42", "", "3000"}));
    subject.renew(*first.held, answer, now);
    send();
    receive(list({"0"}));
    EXPECT_EQ(life->lost, errc::not_held);
    EXPECT_EQ(answer.code, errc::lost);
    recorded_answer released;
    subject.release(*first.held, access::shared, &released, now + 2s, now);
    EXPECT_EQ(released.code, errc::lost);
    expect_question(send_one(), "rw/release", "0");
}

}  // namespace
}  // namespace holdfast::engine::engine_foreign_ttl_test
