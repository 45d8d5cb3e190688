// What the page remembers of a lock, from look to look.
#include "cli/web/lock_history.hpp"

#include "cli/web/lock_feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::cli::lock_history_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr microseconds t0 = 1'700'000'000s;

lock_state named(const std::string& name, microseconds now) {
    lock_state lock(lock_ref(wire::lock_name(name), wire::key_naming::tagged, "hf:"));
    lock.server_time = now;
    lock.kind = wire::lock_kind::mutex;
    return lock;
}

// Held since `since` by that id.
lock_state held(const std::string& id, microseconds since, microseconds now, const std::string& name = "a") {
    lock_state lock = named(name, now);
    const auto token = static_cast<std::uint64_t>(since.count());
    lock.fence = token;
    lock.holders.push_back({{.id = id, .token = token, .held = now - since, .left = 30s}});
    return lock;
}

lock_state with_waiter(lock_state lock, const std::string& id, microseconds since) {
    lock.waiters.push_back({{.id = id, .waited = lock.server_time - since}});
    return lock;
}

TEST(LockHistory, HandOverEndsTheFormerHoldAndCountsTheWait) {
    lock_history history;
    history.add({with_waiter(held("x", t0, t0 + 1s), "y", t0 + 500ms)}, true);
    history.add({held("y", t0 + 1500ms, t0 + 2s)}, true);
    const lock_past& past = *history.of("hf:{a}");
    ASSERT_THAT(past.holds, SizeIs(2));
    EXPECT_EQ(past.holds[0].id, "x");
    EXPECT_EQ(past.holds[0].until, t0 + 1500ms);  // not 2 s, when it was seen
    EXPECT_FALSE(past.holds[1].until);
    EXPECT_EQ(past.holds[1].waited, microseconds(1s));
    EXPECT_EQ(past.grants, 1U);
    EXPECT_EQ(past.times.acquired[3], 1U);  // up to a second
    ASSERT_THAT(past.waits, SizeIs(1));
    EXPECT_TRUE(past.waits[0].has_acquired);
    EXPECT_EQ(past.waits[0].until - past.waits[0].since, microseconds(1s));
}

TEST(LockHistory, WaiterThatLeavesGaveUp) {
    lock_history history;
    history.add({with_waiter(held("x", t0, t0 + 1s), "y", t0 + 500ms)}, true);
    history.add({held("x", t0, t0 + 3s)}, true);
    const lock_past& past = *history.of("hf:{a}");
    ASSERT_THAT(past.waits, SizeIs(1));
    EXPECT_FALSE(past.waits[0].has_acquired);
    EXPECT_EQ(past.times.gave_up[4], 1U);  // 2.5 s
}

TEST(LockHistory, LockThatIsNotFoundAnyMoreIsReleasedOnlyIfAllWasSeen) {
    lock_history history;
    history.add({held("x", t0, t0 + 1s)}, true);
    history.add({}, false);
    EXPECT_FALSE(history.of("hf:{a}")->holds[0].until);
    history.add({named("b", t0 + 2s)}, true);
    EXPECT_EQ(history.of("hf:{a}")->holds[0].until, t0 + 2s);
    EXPECT_FALSE(history.of("hf:{a}")->holds[0].has_expired);
}

TEST(LockHistory, LeaseThatRanOutIsToldAsSuch) {
    lock_history history;
    history.add({held("x", t0, t0 + 1s)}, true);
    history.add({named("a", t0 + 40s)}, true);
    EXPECT_TRUE(history.of("hf:{a}")->holds[0].has_expired);
}

TEST(LockHistory, TokensThatWereGivenOutBetweenTwoLooksAreCounted) {
    lock_history history;
    lock_state idle = named("a", t0);
    idle.fence = 7;
    history.add({idle}, true);
    EXPECT_EQ(history.of("hf:{a}"), nullptr);  // at the first look nothing has happened
    idle.fence = 9;
    history.add({idle}, true);
    EXPECT_EQ(history.of("hf:{a}")->unseen, 1U);
}

TEST(LockHistory, IsBounded) {
    lock_history history({.locks = 3, .holds = 4, .waits = 2});
    for (int i = 0; i < 10; ++i) {
        const auto now = t0 + i * 1s;
        history.add({with_waiter(held("x" + std::to_string(i), now, now), "y" + std::to_string(i), now)}, true);
    }
    EXPECT_THAT(history.of("hf:{a}")->holds, SizeIs(4));
    EXPECT_EQ(history.of("hf:{a}")->holds.back().id, "x9");
    EXPECT_THAT(history.of("hf:{a}")->waits, SizeIs(2));
    EXPECT_EQ(history.of("hf:{a}")->grants, 18U);  // each waiter had its turn between two looks
    for (int i = 0; i < 10; ++i) {
        history.add({held("x", t0 + 100s, t0 + 100s + i * 1s, "lock" + std::to_string(i))}, true);
    }
    EXPECT_EQ(history.size(), 3U);
    EXPECT_NE(history.of("hf:{lock9}"), nullptr);
    EXPECT_EQ(history.of("hf:{a}"), nullptr);
}

TEST(LockHistory, IsBoundedAlsoWhileAServerIsSilent) {
    lock_history history({.locks = 3});
    for (int i = 0; i < 20; ++i) history.add({held("x", t0, t0 + i * 1s, "lock" + std::to_string(i))}, false);
    EXPECT_LE(history.size(), 3U);
    EXPECT_LE(history.compared(), 4U);  // those in sight, and as many that are not
    // The latest of them are remembered.
    history.add({held("y", t0 + 30s, t0 + 40s, "lock19")}, false);
    EXPECT_EQ(history.of("hf:{lock19}")->grants, 1U);
}

web_look look(std::vector<lock_state> locks) {
    return {.locks = std::move(locks)};
}

TEST(LockFeed, LockOnWhichNothingHappensIsNotSentAgain) {
    lock_feed feed(json::object());
    EXPECT_TRUE(feed.add(look({held("x", t0, t0 + 1s)})));
    lock_state later = held("x", t0, t0 + 2s);
    later.holders[0].left = 29s + 3ms;  // to the millisecond it cannot be known
    EXPECT_FALSE(feed.add(look({later})));
    lock_state renewed = held("x", t0, t0 + 3s);
    const shared_text news = feed.add(look({renewed}));
    ASSERT_TRUE(news);
    EXPECT_THAT(*news, HasSubstr("\"until\":1700000033000"));
}

TEST(LockFeed, LeaseIsAsLongAsItWasEverSeen) {
    lock_feed feed(json::object());
    feed.add(look({held("x", t0, t0 + 1s)}));
    lock_state later = held("x", t0, t0 + 20s);
    later.holders[0].left = 5s;
    EXPECT_THAT(*feed.add(look({later})), HasSubstr("\"lease\":30000"));
    lock_state other = held("y", t0 + 21s, t0 + 22s);
    other.holders[0].left = 5s;
    EXPECT_THAT(*feed.add(look({other})), HasSubstr("\"lease\":5000"));
}

TEST(LockFeed, FreeLocksAreNotSentAndThoseThatWereAreGone) {
    lock_feed feed(json::object());
    feed.add(look({held("x", t0, t0 + 1s), named("b", t0 + 1s)}));
    EXPECT_THAT(*feed.everything(), ::testing::Not(HasSubstr("\"b\"")));
    EXPECT_THAT(*feed.add(look({named("a", t0 + 2s)})), HasSubstr("\"gone\":[\"hf:~7Ba~7D\"]"));
    EXPECT_FALSE(feed.details_of("hf:~7Ba~7D").is_null());  // its past is there still
    EXPECT_TRUE(feed.details_of("hf:~7Bc~7D").is_null());
}

TEST(LockFeed, TroubleIsToldOnceAndItsEndToo) {
    lock_feed feed(json::object());
    feed.add(look({held("x", t0, t0 + 1s)}));
    EXPECT_THAT(*feed.add({.trouble = "away"}), HasSubstr("event: trouble"));
    EXPECT_FALSE(feed.add({.trouble = "away"}));
    EXPECT_THAT(*feed.everything(), HasSubstr("\"away\""));
    EXPECT_THAT(*feed.add(look({held("x", t0, t0 + 1s)})), HasSubstr("event: change"));
}

TEST(LockFeed, MostContendedRowsAreSentIfThereAreTooMany) {
    lock_feed feed(json::object());
    std::vector<lock_state> many;
    for (std::size_t i = 0; i < lock_feed::most_rows + 10; ++i) many.push_back(held("x", t0, t0, std::to_string(i)));
    many.back() = with_waiter(std::move(many.back()), "y", t0);
    const json told = json::parse(feed.add(look(std::move(many)))->substr(sizeof("event: change\ndata:")));
    EXPECT_EQ(told["set"].size(), lock_feed::most_rows);
    EXPECT_EQ(told["hidden"], 10);
    EXPECT_EQ(told["set"][0]["waiters"], 1);
}

TEST(LockFeed, LongTextsAreCutAndRowsThatAreTooLongTogetherHidden) {
    lock_feed feed(json::object());
    std::vector<lock_state> many;
    const std::string long_text(1000, '\x01');  // six characters each in JSON
    for (int i = 0; i < 2000; ++i) {
        many.push_back(held("x", t0, t0, std::to_string(i) + long_text));
        many.back().holders[0].note = long_text;
    }
    many.back() = with_waiter(std::move(many.back()), "y", t0);
    many.back().holders[0].client = wire::client_facts{};
    many.back().holders[0].client->user = std::string(10'000'000, 'u');
    feed.add(look(std::move(many)));
    const std::string event = *feed.everything();
    EXPECT_LT(event.size(), lock_feed::most_bytes + 1000);
    const json told = json::parse(event.substr(sizeof("event: state\ndata:")));
    EXPECT_GT(told["locks"].size(), 200U);
    EXPECT_EQ(told["locks"].size() + told["hidden"].get<std::size_t>(), 2000U);
    std::size_t with_waiters = 0;
    for (const json& row : told["locks"]) with_waiters += row["waiters"].get<std::size_t>();
    EXPECT_EQ(with_waiters, 1U);  // the most contended ones are told first
}

TEST(LockFeed, TextIsCutBetweenCharacters) {
    lock_feed feed(json::object());
    lock_state lock = held("x", t0, t0);
    for (int i = 0; i < 400; ++i) lock.holders[0].note += "\u9501";
    const json told = json::parse(feed.add(look({lock}))->substr(sizeof("event: change\ndata:")));
    const std::string note = told["set"][0]["holder"]["note"];
    EXPECT_LT(note.size(), 300U);
    EXPECT_TRUE(note.ends_with("\u9501\u2026")) << note;
    const json details = feed.details_of("hf:~7Ba~7D");
    EXPECT_EQ(details["holders"][0]["note"].get<std::string>().size(), 1200U);  // its own page has all of it
}

TEST(LockFeed, AnyBytesOfANameAreOneLineOfText) {
    lock_feed feed(json::object());
    const std::string name = "a\n\ndata: x\xff\x01<script>";
    const std::string event = *feed.add(look({held("x", t0, t0, name)}));
    EXPECT_EQ(event.find("\n\n"), event.size() - 2);
    const json told = json::parse(event.substr(sizeof("event: change\ndata:")));
    EXPECT_FALSE(feed.details_of(told["set"][0]["key"]).is_null());
    EXPECT_EQ(told["set"][0]["key"], "hf:~7Ba~0A~0Adata:~20x~FF~01~3Cscript~3E~7D");
}

}  // namespace
}  // namespace holdfast::cli::lock_history_test
