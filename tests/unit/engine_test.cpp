// The engine against a server played by the test: when it believes, and when it must not. Longer stories are the
// simulator's.
#include "unit/engine_fixture.hpp"

namespace holdfast::engine {
namespace {

using namespace testing;

class Engine : public engine_fixture {
protected:
    acquire_terms terms() const { return {.keys = keys, .owner = owner_id{7}, .lease = 1000ms}; }
    hold& acquired() {
        subject.acquire(first, terms(), now);
        send();
        receive(list({"1", "42"}));
        return *first.held;
    }
};

TEST_F(Engine, CountsValidityFromBeforeTheRequestWasWritten) {
    subject.acquire(first, terms(), now);
    send();
    const instant sent = now;
    now += 300ms;
    receive(list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->valid_until(), sent + 1000ms - 12ms) << "lease less lease/100 + 2 ms";
}

TEST_F(Engine, DoesNotReEnterAHoldThatRanOutBeforeItsTimerRang) {
    acquired();
    now += 5000ms;  // the machine slept; no timer has rung yet
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.held, nullptr);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, IsNotRevivedByALateAnswerToARenewal) {
    const hold& held = acquired();
    later(400ms);
    send();
    now += 5000ms;
    const instant before = held.valid_until();
    receive(list({"1"}));
    EXPECT_EQ(held.valid_until(), before);
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, RefusesATokenThatNoScriptOfOursGives) {
    subject.acquire(first, terms(), now);
    send();
    receive(list({"1", "9007199254740992"}));
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(first.refusal_code, errc::protocol_error);
}

TEST_F(Engine, BelievesAPushOnlyAboveTheFenceOfItsLastAnsweredPoll) {
    subject.acquire(first, terms(), now);
    const std::string id = send_one().arguments.at(0);
    receive(list({"2", "900", "other", "50", "0", "41"}));
    push("grant " + id + " 41");
    EXPECT_EQ(first.held, nullptr) << "a grant that was over before the poll";
    push("grant " + id + " 42");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

}  // namespace
}  // namespace holdfast::engine
