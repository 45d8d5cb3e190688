// Fencing tokens: every grant gets one, and the fence remembers the last one (§4.7, R45).
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_token_test {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Gt;
using ::testing::Le;
using ::testing::MatchesRegex;

class MutexToken : public script_rows {};

TEST_F(MutexToken, IsTheServersTime) {
    const std::int64_t before = server_us();
    const std::int64_t token = std::stoll(hold("me"));
    EXPECT_GE(token, before);
    EXPECT_LE(token, server_us());
}

TEST_F(MutexToken, IsWrittenInDigitsOnly) {
    EXPECT_THAT(hold("me"), MatchesRegex("[1-9][0-9]+"));
    EXPECT_THAT(value(fence), MatchesRegex("[1-9][0-9]+"));
    EXPECT_THAT(ticket_of(wait("a")), MatchesRegex("[1-9][0-9]+"));
    EXPECT_THAT(ticket_of(wait("a")), MatchesRegex("[1-9][0-9]+")) << "as the server gives a score back";
}

// As after a clock that was set back by an hour.
TEST_F(MutexToken, FollowsTheMarkWhenThatIsAhead) {  // R45
    const std::string ahead = text(server_us() + hour * 1000);
    must({"SET", fence, ahead, "PX", text(minute)});
    EXPECT_EQ(std::stoll(hold("me")), std::stoll(ahead) + 1);
    // The mark is needed until the clock has caught up with it, and for the retention after that.
    EXPECT_THAT(left(fence), AllOf(Gt(2 * hour - minute), Le(2 * hour + 1)));
}

TEST_F(MutexToken, ExceedsTheFloorOfTheClient) {  // data lost, and a clock behind
    const std::string floor = text(server_us() + hour * 1000);
    EXPECT_THAT(acquire("me", {.floor = floor}), IsGranted(text(std::stoll(floor) + 1)));
    EXPECT_GT(left(fence), 2 * hour - minute);
}

TEST_F(MutexToken, ExceedsTheFloorOfAWaiter) {
    const std::string first = hold("holder");
    const std::string floor = text(server_us() + hour * 1000);
    wait("a", {.floor = floor});
    const listener ear = listens("a");
    release("holder", first);
    EXPECT_EQ(std::stoll(value(fence)), std::stoll(floor) + 1);
}

TEST_F(MutexToken, MarkIsKeptForTheRetention) {
    acquire("me", {.retention = 2 * hour});
    EXPECT_THAT(left(fence), AllOf(Gt(hour), Le(2 * hour)));
}

TEST_F(MutexToken, MarkOutlivesTheLock) {  // §4.6, §4.7
    const std::string token = hold("me");
    release("me", token);
    EXPECT_EQ(value(fence), token);
    EXPECT_EQ(everything().size(), 1U);
    expect_all_keys_expire();
}

TEST_F(MutexToken, GrowsWithEveryGrantHoweverFast) {
    std::int64_t last = 0;
    for (int i = 0; i < 200; ++i) {
        const std::string id = text(i);
        const std::string token = hold(id);
        ASSERT_GT(std::stoll(token), last);
        last = std::stoll(token);
        release(id, token);
    }
}

TEST_F(MutexToken, IgnoresAMarkThatIsNoToken) {
    for (const std::string mark : {"", "abc", "inf", "nan", "-5", "1.7e+15", "0x7fffffffffffff", "0", "007",
                                   "9007199254740993", "99999999999999999999999999"}) {
        SCOPED_TRACE("mark '" + mark + "'");
        must({"FLUSHALL"});
        must({"SET", fence, mark});
        const std::int64_t before = server_us();
        const redis_reply reply = acquire("me");
        ASSERT_EQ(code(reply), 1);
        EXPECT_THAT(std::stoll(reply.elements[1].text), AllOf(Ge(before), Le(server_us())));
        expect_granted(acquire("me"));
        expect_all_keys_expire();
    }
}

TEST_F(MutexToken, AnswersNeverShowAMarkThatIsNoToken) {
    hold("holder");
    must({"SET", fence, "abc"});
    EXPECT_EQ(fence_of(wait("a")), "0");
    const redis_reply again = acquire("holder");
    expect_granted(again);
    EXPECT_THAT(value(fence), MatchesRegex("[1-9][0-9]+"));
}

TEST_F(MutexToken, RefusesAFloorThatIsNoToken) {  // §4.9: before anything is written
    for (const std::string floor : {"", "-1", "abc", "inf", "1e3", "9007199254740993"}) {
        SCOPED_TRACE("floor '" + floor + "'");
        EXPECT_THAT(acquire("me", {.floor = floor}), IsError("ERR"));
        EXPECT_THAT(wait("me", {.floor = floor}), IsError("ERR"));
        EXPECT_TRUE(everything().empty());
    }
}

// Several servers agree on a token that is behind the clock of one of them.
TEST_F(MutexToken, BehindTheClockIsRememberedFromNowOn) {  // §4.7
    must({"SET", lock, "other"});
    wait("me");
    must({"DEL", lock});
    const std::string behind = text(server_us() - 500'000);
    EXPECT_EQ(acquire("me", {.channel = "wake:me", .retention = 400, .proposal = behind}).elements.at(1).text, behind)
        << "there is no time to live that is below zero";
}

// A token is no reading of the clock: it may be one more than the last. R42
TEST_F(MutexToken, OfWhichOneIsProposedIsToldWithTheClock) {
    const std::string ahead = text(server_us() + hour * 1000);
    const auto expect_clock = [this](const redis_reply& reply, std::size_t place, std::int64_t before) {
        ASSERT_EQ(reply.elements.size(), place + 1);
        EXPECT_THAT(std::stoll(reply.elements[place].text), AllOf(Ge(before), Le(server_us())));
    };
    const std::int64_t begin = server_us();
    expect_clock(acquire("me", {.proposal = ahead}), 2, begin);
    expect_clock(acquire("me", {.proposal = ahead}), 2, begin);
    expect_clock(wait("a", {.proposal = ahead}), 7, begin);
    expect_clock(wait("a", {.ticket = "17", .proposal = ahead}), 7, begin);
    must({"DEL", lock});
    must({"SET", fence, ahead});
    expect_clock(wait("a", {.proposal = "1"}), 2, begin);
    EXPECT_EQ(std::stoll(value(fence)), std::stoll(ahead) + 1);
}

TEST_F(MutexToken, GrowsAcrossLostData) {  // R45
    const std::string first = hold("me");
    must({"FLUSHALL"});
    EXPECT_GT(std::stoll(hold("me")), std::stoll(first));
}

}  // namespace
}  // namespace holdfast::testing::mutex_token_test
