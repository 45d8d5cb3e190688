// What the engine takes the clocks of three servers for, and the tickets that it makes by the middle one.
#include "unit/engine/quorum/quorum_engine_fixture.hpp"

#include <deque>

namespace holdfast::engine::engine_clocks_test {
namespace {

using namespace testing;
using std::chrono::microseconds;

class EngineClocks : public quorum_engine_fixture {
protected:
    using quorum_engine_fixture::quorum_engine_fixture;

    /// Somebody begins to wait; by that ticket.
    std::string next_ticket() {
        acquire_terms another = terms();
        another.keys = keys_for("lock" + std::to_string(waiters.size()));
        subject.acquire(waiters.emplace_back(), another, now);
        std::string made;
        for (std::size_t i = 0; i < servers.size(); ++i) made = ask(i).arguments.at(5);
        return made;
    }
    void grant_and_tell(std::size_t server, microseconds shown) {
        answer(server, {"1", proposal, std::to_string(shown.count())});
    }
    void queue_and_tell(std::size_t server, const std::string& by, microseconds shown) {
        answer(server, {"2", "900", "other", by, "0", "41", "900", std::to_string(shown.count())});
    }
    static std::string text(microseconds ticket) { return std::to_string(ticket.count()); }

    std::deque<recorded_request> waiters;
};

// A server whose clock is an hour ahead gives such a token; it is written to the others, and theirs are above it from
// then on. Their clocks are not. R42
TEST_F(EngineClocks, AreNotLearntFromTokens) {
    begin();
    for (std::size_t i = 0; i < 2; ++i) grant(i, text(clock + 1h));
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(next_ticket(), text(clock + 1us));
}

// The clock was read between question and answer; when, nobody knows.
TEST_F(EngineClocks, StayWhatTheyWereIfAnAnswerAllowsIt) {
    begin();
    now += 100ms;
    for (std::size_t i = 0; i < 3; ++i) grant_and_tell(i, clock + 50ms);
    EXPECT_EQ(next_ticket(), text(clock + 100ms));
}

TEST_F(EngineClocks, ArePutForwardAsFarAsAnswersProve) {
    begin();
    now += 100ms;
    for (std::size_t i = 0; i < 3; ++i) grant_and_tell(i, clock + 3s);
    EXPECT_EQ(next_ticket(), text(clock + 3s));
}

TEST_F(EngineClocks, ArePutBackAsFarAsAnswersProve) {
    begin();
    now += 100ms;
    for (std::size_t i = 0; i < 3; ++i) grant_and_tell(i, clock - 3s);
    EXPECT_EQ(next_ticket(), text(clock + 100ms - 3s));
}

TEST_F(EngineClocks, OfWhichOneIsWrongDoNotMoveTheTickets) {
    begin();
    grant_and_tell(0, clock + 1h);
    EXPECT_EQ(next_ticket(), text(clock + 1us));
}

// By its old ticket one who waits would be behind everybody who comes within the next hour.
TEST_F(EngineClocks, ThatWereSetBackMoveThoseWhoWait) {
    begin();
    for (std::size_t i = 0; i < 3; ++i) queue(i);
    later(1s);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(ask(i).arguments.at(5), ticket) << "a poll";
        queue_and_tell(i, ticket, clock - 1h);
    }
    const std::string moved = text(clock - 1h - 1s);
    EXPECT_EQ(ask(0).arguments.at(5), moved);
    EXPECT_EQ(ask(1).arguments.at(5), moved);
}

class EngineWithoutClocks : public EngineClocks {
protected:
    EngineWithoutClocks() : EngineClocks(clocks{}) {}
};

// One server's clock alone may be the wrong one.
TEST_F(EngineWithoutClocks, MakesATicketWhenAMajorityHasTold) {
    begin();
    EXPECT_EQ(ticket, "0");
    EXPECT_EQ(proposal, "1") << "no server takes it, and each tells its clock";
    queue_and_tell(0, text(clock + 1h + 1us), clock + 1h);
    EXPECT_TRUE(is_silent(0));
    queue_and_tell(1, text(clock), clock + 1h);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(ask(i).arguments.at(5), text(clock + 1h));
}

class EngineWithTwoClocks : public EngineClocks {
protected:
    EngineWithTwoClocks() : EngineClocks({clock, clock + 1h, std::nullopt}) {}
};

TEST_F(EngineWithTwoClocks, MovesThoseWhoWaitWhenTheThirdIsKnown) {
    begin();
    EXPECT_EQ(ticket, text(clock + 1h));
    for (std::size_t i = 0; i < 3; ++i) queue(i);
    servers[2].take_link_down(now);
    servers[2].bring_link_up({.clock = clock}, now);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(ask(i).arguments.at(5), text(clock)) << "server " << i;
    EXPECT_EQ(ask(2).arguments.at(5), ticket) << "as soon as its link is up";
    queue(2);
    EXPECT_EQ(ask(2).arguments.at(5), text(clock));
}

}  // namespace
}  // namespace holdfast::engine::engine_clocks_test
