// Notes on a real server: whom they are told, how long they stay, which locks have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/async.hpp>
#include <holdfast/holdfast.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <thread>

#include "api/operations/blocking.hpp"
#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::note_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const std::string notes = "hf:{stock}:notes";

class Note : public ::testing::Test {  // R54
protected:
    std::string note_of(const lease& held) { return server.call({"HGET", notes, held.id()}).text; }
    bool is_gone() { return server.call({"EXISTS", notes}).integer == 0; }

    redis_server server;
    client subject{server.url()};
    client other{server.url()};
    mutex mine{subject, "stock"};
    mutex theirs{other, "stock"};
};

TEST_F(Note, IsToldToWhoIsRefusedAndGoesWithTheHold) {
    lease held = mine.acquire({.note = "nightly backup"});
    EXPECT_EQ(note_of(held), "nightly backup");
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::busy);
    EXPECT_EQ(why.holder, held.id());
    EXPECT_EQ(why.note, "nightly backup");
    EXPECT_FALSE(held.release());
    EXPECT_TRUE(is_gone());
    EXPECT_TRUE(theirs.try_acquire());
}

TEST_F(Note, IsToldToWhoWaitedInVain) {
    const lease held = mine.acquire({.note = "nightly backup"});
    refusal why;
    EXPECT_FALSE(theirs.try_acquire_for(1s, {.why_not = &why}));
    EXPECT_EQ(why.code, errc::timed_out);
    EXPECT_EQ(why.note, "nightly backup");
}

TEST_F(Note, OfAWaiterComesWithTheHandOver) {
    lease held = mine.acquire();
    auto next = theirs.async_acquire({.note = "report"}, boost::asio::use_future);
    ASSERT_TRUE(eventually([&] { return server.call({"ZCARD", "hf:{stock}:queue"}).integer == 1; }));
    held.release();
    lease taken = next.get();
    EXPECT_EQ(note_of(taken), "report");
    refusal why;
    EXPECT_FALSE(mine.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.note, "report");
    taken.release();
    EXPECT_TRUE(is_gone());
}

TEST_F(Note, OfAWaiterThatGaveUpIsGone) {
    const lease held = mine.acquire();
    EXPECT_FALSE(theirs.try_acquire_for(20ms, {.note = "report"}));
    EXPECT_TRUE(eventually([&] { return is_gone(); }));
}

TEST_F(Note, IsKeptAliveByRenewals) {
    mutex brief{subject, "stock", {.lease = 600ms}};
    const lease held = brief.acquire({.note = "long work"});
    std::this_thread::sleep_for(1500ms);
    ASSERT_FALSE(held.lost().stop_requested());
    EXPECT_EQ(note_of(held), "long work");
}

TEST_F(Note, OfReadersAndWritersIsToldToo) {
    shared_mutex read{subject, "stock"};
    shared_mutex write{other, "stock"};
    lease reading = read.acquire_shared({.note = "report"});
    refusal why;
    EXPECT_FALSE(write.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.code, errc::read_held);
    EXPECT_EQ(why.note, "report");
    EXPECT_FALSE(write.try_acquire_for(1s, {.why_not = &why}));
    EXPECT_EQ(why.note, "report");
    reading.release();
    EXPECT_TRUE(is_gone());
}

TEST_F(Note, StaysThatOfTheOutermostAcquisition) {
    const owner me;
    const lease outer = mine.acquire({.owner = me, .note = "outer"});
    const lease inner = mine.acquire({.owner = me, .note = "inner"});
    EXPECT_EQ(note_of(inner), "outer");
}

TEST_F(Note, IsInTheTextOfAnErrorFitToBeShown) {
    const lease held = mine.acquire({.note = "nightly\x1b[2J backup"});
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.note, "nightly\x1b[2J backup") << "as it was given";
    EXPECT_THAT(api::describe_refusal("lock", "server", why), HasSubstr("(\"nightly_[2J backup\")"));
}

TEST_F(Note, ThatCannotBeIsRefused) {
    const auto refused = [](auto&& asks) { return condition_of(asks) == errc::bad_option; };
    EXPECT_TRUE(refused([&] { static_cast<void>(mine.acquire({.note = std::string(1025, 'x')})); }));
    EXPECT_NO_THROW(static_cast<void>(mine.acquire({.note = std::string(1024, 'x')})));
    mutex raw{subject, "raw", {.keys = keys::raw}};
    EXPECT_TRUE(refused([&] { static_cast<void>(raw.acquire({.note = "x"})); }));
    mutex kept{subject, "kept", {.keep = 1s}};
    EXPECT_TRUE(refused([&] { static_cast<void>(kept.acquire({.note = "x"})); }));
    semaphore pool{subject, "pool", 3};
    EXPECT_TRUE(refused([&] { static_cast<void>(pool.acquire(1, {.note = "x"})); }));
}

// g++ 12 copies a braced temporary inside a co_await bit by bit and destroys both.
TEST_F(Note, MayStandInBracesInsideACoAwait) {
    boost::asio::io_context loop;
    const auto acquire = [this]() -> boost::asio::awaitable<lease> {
        co_return co_await mine.async_acquire({.note = "nightly backup"}, boost::asio::use_awaitable);
    };
    auto result = boost::asio::co_spawn(loop, acquire(), boost::asio::use_future);
    loop.run();
    const lease held = result.get();
    EXPECT_EQ(note_of(held), "nightly backup");
}

TEST_F(Note, IsCopiedWhenTheOperationIsMade) {
    std::string text = "nightly backup";
    auto later = mine.async_acquire({.note = text}, boost::asio::deferred);
    text.assign(text.size(), 'x');
    const lease held = std::move(later)(boost::asio::use_future).get();
    EXPECT_EQ(note_of(held), "nightly backup");
}

TEST_F(Note, IsAtEveryLockOfSeveralThatAreTakenTogether) {
    mutex second{subject, "second"};
    const lock_all all{acquire_options{.note = "both"}, mine, second};
    EXPECT_EQ(server.call({"HVALS", notes}).elements.at(0).text, "both");
    EXPECT_EQ(server.call({"HVALS", "hf:{second}:notes"}).elements.at(0).text, "both");
}

TEST_F(Note, CostsNoCommandWhereThereIsNone) {
    mine.acquire().release();
    theirs.acquire().release();
    server.call({"CONFIG", "RESETSTAT"});
    lease held = mine.acquire();
    EXPECT_FALSE(theirs.try_acquire());
    held.release();
    EXPECT_EQ(server.command_calls("evalsha") + server.command_calls("eval"), 3);
    for (const char* const command : {"hget", "hdel", "hlen"}) EXPECT_EQ(server.command_calls(command), 0);
}

TEST(NoteOnACluster, IsInTheSlotOfItsLock) {
    redis_cluster cluster;
    client subject{cluster.url()};
    client other{cluster.url()};
    mutex mine{subject, "stock"};
    mutex theirs{other, "stock"};
    lease held = mine.acquire({.note = "nightly backup"});
    EXPECT_EQ(cluster.owner_of("hf:{stock}").call({"HGET", notes, held.id()}).text, "nightly backup");
    refusal why;
    EXPECT_FALSE(theirs.try_acquire({.why_not = &why}));
    EXPECT_EQ(why.note, "nightly backup");
    EXPECT_FALSE(theirs.try_acquire_for(1s, {.why_not = &why}));
    EXPECT_EQ(why.note, "nightly backup");
}

}  // namespace
}  // namespace holdfast::testing::note_test
