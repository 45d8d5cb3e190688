// Waiters to whom nobody can push, or whom messages reach over a link of their own, in virtual time.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_polling_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;

/// What mutex/acquire is told (see src/wire/mutex/acquire.lua).
const std::string& channel_of(const question& asked) {
    return asked.arguments.at(4);
}
milliseconds interval_of(const question& asked) {
    return milliseconds(std::stoi(asked.arguments.at(6)));
}

const std::string someone = "hf_AAAAAAAAAAAAAAAA.1.AAAAAAAAAAAAAAAAAAAAAA";

class EnginePolling : public engine_fixture {
protected:
    explicit EnginePolling(woken_by how = woken_by::poll) { server.wake_by(how, now); }

    void wait(milliseconds lease = 30s) {
        subject.acquire(first,
                        {.keys = keys,
                         .options = {.lease = lease},
                         .owner = owner_id{7},
                         .limit = {.wait = waiting::in_queue, .deadline = now + 1h}},
                        now);
    }
    /// The holder has an hour left.
    void answer_queued(int place, int fence = 9) {
        receive(list({"2", "3600000", someone, "1000", std::to_string(place), std::to_string(fence)}));
    }
    void answer_granted(int token) { receive(list({"1", std::to_string(token)})); }
    std::string grant(int token) const { return "grant " + asked_id_ + " " + std::to_string(token); }
    question ask() {
        question asked = send_one();
        asked_id_ = asked.arguments.empty() ? "" : asked.arguments.at(0);
        return asked;
    }
    /// How long it is until the next poll, which is sent.
    milliseconds next_poll() {
        const instant before = now;
        now = std::max(now, subject.deadline());
        subject.on_timer(now);
        ask();
        return std::chrono::duration_cast<milliseconds>(now - before);
    }

    std::string asked_id_;
};

TEST_F(EnginePolling, SaysThatItListensNowhere) {
    wait();
    EXPECT_EQ(channel_of(ask()), "-");
}

TEST_F(EnginePolling, TheFirstWaiterPollsMoreAndMoreRarely) {
    wait();
    ask();
    std::vector<milliseconds> pauses;
    for (int i = 0; i < 5; ++i) {
        answer_queued(0);
        pauses.push_back(next_poll());
    }
    EXPECT_THAT(pauses, ElementsAre(50ms, 100ms, 200ms, 250ms, 250ms));
}

TEST_F(EnginePolling, OthersPollTheMoreRarelyTheMoreWaitersAreBeforeThem) {
    wait();
    ask();
    const auto longest_at = [this](int place) {
        milliseconds pause{0};
        for (int i = 0; i < 12; ++i) {
            answer_queued(place);
            pause = next_poll();
        }
        return pause;
    };
    EXPECT_EQ(longest_at(1000), 10s) << "a third of the lease, at most 10 s";
    EXPECT_EQ(longest_at(9), 2500ms);
    EXPECT_EQ(longest_at(1), 500ms);
    EXPECT_EQ(longest_at(0), 250ms);
}

// The scripts drop waiters that miss two polls.
TEST_F(EnginePolling, NeverPollsMoreRarelyThanItHasTold) {
    wait(3s);
    question asked = ask();
    for (const int place : {0, 3, 30, 300, 1, 0, 0}) {
        answer_queued(place);
        const milliseconds told = interval_of(asked);
        EXPECT_GE(told, 1s) << "a program that stalls for a moment stays alive";
        const instant before = now;
        now = std::max(now, subject.deadline());
        subject.on_timer(now);
        EXPECT_LE(now - before, told);
        asked = ask();
    }
}

TEST_F(EnginePolling, IsGrantedTheLockByItsPoll) {
    wait();
    ask();
    answer_queued(0);
    next_poll();
    const instant polled = now;
    later(20ms);
    answer_granted(42);
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->valid_until(), polled + 30s - 302ms) << "counted from that poll";
}

TEST_F(EnginePolling, BeginsAtOnceWhereTheServerStopsToPush) {
    server.wake_by(woken_by::push, now);
    wait();
    EXPECT_NE(channel_of(ask()), "-");
    answer_queued(0);
    server.wake_by(woken_by::poll, now);
    EXPECT_EQ(channel_of(ask()), "-");
}

// It was sent before that was known.
TEST_F(EnginePolling, AWaiterThatToldAChannelCorrectsItAtOnce) {
    server.wake_by(woken_by::push, now);
    wait();
    EXPECT_NE(channel_of(ask()), "-");
    server.wake_by(woken_by::poll, now);
    EXPECT_TRUE(send().empty()) << "one request at a time";
    answer_queued(0);
    subject.on_timer(now);
    EXPECT_EQ(channel_of(ask()), "-");
}

TEST_F(EnginePolling, StopsWhereTheServerPushesAgain) {
    wait();
    ask();
    answer_queued(0);
    server.wake_by(woken_by::push, now);
    EXPECT_NE(channel_of(ask()), "-");
    answer_queued(0);
    EXPECT_EQ(next_poll(), 10s);
}

class EngineHinted : public EnginePolling {
protected:
    EngineHinted() : EnginePolling(woken_by::hint) {}
};

TEST_F(EngineHinted, AMessageProvesNothingAndBringsAPoll) {
    wait();
    EXPECT_NE(channel_of(ask()), "-");
    answer_queued(0);
    push(grant(42));
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(ask().script, "mutex/acquire");
    answer_granted(42);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineHinted, AMessageMayOvertakeTheAnswerThatItFollows) {
    wait();
    ask();
    push(grant(42));  // after the script that queued it, of which the answer is still on its way
    EXPECT_TRUE(send().empty());
    answer_queued(0);
    subject.on_timer(now);
    ask();
    answer_granted(42);
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineHinted, AMessageFromAnotherServerCostsAPollAndNothingElse) {
    wait();
    ask();
    answer_queued(0);
    push(grant(9999));
    ask();
    answer_queued(0);
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(next_poll(), 10s);
}

TEST_F(EngineHinted, AGrantThatNobodyWaitsForAnyMoreIsGivenBack) {
    wait();
    ask();
    answer_queued(0);
    subject.cancel(first, errc::timed_out, now);
    ask();
    server.take_link_down(now);
    server.bring_link_up({}, now);
    EXPECT_EQ(ask().script, "mutex/release");
}

}  // namespace
}  // namespace holdfast::engine::engine_polling_test
