// Kept mutexes: a holder with a marked id is told when somebody else wants the lock, and gets tokens in blocks.
#include "script/script_rows.hpp"
#include "server_model/differential/real_server.hpp"

namespace holdfast::testing::mutex_kept_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;

MATCHER_P(IsKeptBy, holder, "is {0, left, holder, held, kept}") {
    return arg.elements.size() == 5 && arg.elements[0].integer == 0 && arg.elements[1].integer > 0 &&
           arg.elements[2].text == holder && arg.elements[3].text == "held" && arg.elements[4].text == "kept";
}

class MutexKept : public script_rows {
protected:
    const std::string keeper = marked_id("keeper");

    struct block {
        std::int64_t token, ceiling, waiters;
    };
    // {1, token, '', '', ceiling, waiters}; the ceiling is the mark.
    block block_of(const redis_reply& reply) {
        if (reply.elements.size() != 6 || reply.elements[0].integer != 1) throw std::runtime_error{"not held"};
        EXPECT_EQ(reply.elements[4].text, value(fence));
        EXPECT_EQ(reply.elements[2].text + reply.elements[3].text, "");
        return {std::stoll(reply.elements[1].text), std::stoll(reply.elements[4].text), reply.elements[5].integer};
    }
    block keeps() { return block_of(acquire(keeper)); }

    redis_reply try_for(const std::string& id, const std::vector<std::string>& more = {}) {
        std::vector<std::string> arguments{id, text(minute), "0", text(hour), "", "0", "0", "0", "0", "0"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run("mutex/acquire", {lock, queue, waiters, fence}, arguments);
    }
    redis_reply raise(const std::string& id, const std::string& token, const std::string& to) {
        return run("mutex/raise", {lock, queue, waiters, fence}, {id, token, to, text(hour)});
    }
    redis_reply gives_way(const std::string& id, const std::string& token) {
        return run("mutex/acquire", {lock, queue, waiters, fence},
                   {id, text(minute), "0", text(hour), "wake:" + id, "0", "10000", "61000", "0", token});
    }
    redis_reply confirm(const std::string& token) { return run("mutex/confirm", {lock, fence}, {keeper, token}); }
};

// --- blocks of tokens --------------------------------------------------------------------------------------

TEST_F(MutexKept, AGrantIsABlockThatBeginsAHundredMicrosecondsAgo) {  // R52
    must({"SET", fence, "5", "PX", text(hour)});
    const block got = keeps();
    EXPECT_EQ(got.ceiling - got.token, 100);
    EXPECT_LE(got.ceiling, server_us());
    EXPECT_EQ(got.waiters, 0);
    expect_all_keys_expire();
}

TEST_F(MutexKept, ABlockBeginsBehindEveryTokenThatMayHaveBeenUsed) {  // R52
    const block unknown = keeps();
    EXPECT_EQ(unknown.token, unknown.ceiling) << "without a mark nobody knows which tokens were used";
    release(keeper, text(unknown.token));
    const std::int64_t ahead = server_us() + 1'000'000;
    must({"SET", fence, text(ahead), "PX", text(hour)});
    const block behind = keeps();
    EXPECT_EQ(behind.token, ahead + 1);
    EXPECT_EQ(behind.ceiling, ahead + 1);
    release(keeper, text(behind.token));
    const block above_floor = block_of(acquire(keeper, {.floor = text(ahead + 10)}));
    EXPECT_EQ(above_floor.token, ahead + 11);
}

TEST_F(MutexKept, TheNextHoldersTokenIsAboveTheBlock) {  // R52, §4.6
    const block got = keeps();
    release(keeper, text(got.token));
    EXPECT_GT(std::stoll(hold("plain")), got.ceiling);
}

TEST_F(MutexKept, AnAcceptedProposalIsTheFirstOfTheBlock) {
    must({"SET", fence, "5", "PX", text(hour)});
    const std::int64_t proposed = server_us() - 500'000;
    const redis_reply reply = acquire(keeper, {.proposal = text(proposed)});
    EXPECT_EQ(reply.elements.at(1).text, text(proposed));
    EXPECT_GT(std::stoll(reply.elements.at(4).text), proposed);
    EXPECT_EQ(reply.elements.at(4).text, value(fence));
    EXPECT_FALSE(reply.elements.at(2).text.empty()) << "the clock";
}

TEST_F(MutexKept, ARepeatedAcquireIsAnsweredWithTheLastOfTheBlock) {  // R50
    const block got = keeps();
    wait("a");
    const block again = keeps();
    EXPECT_EQ(again.token, got.ceiling);
    EXPECT_EQ(again.ceiling, got.ceiling);
    EXPECT_EQ(again.waiters, 1);
}

TEST_F(MutexKept, IsReleasedByEveryTokenOfItsBlockAndByNoOther) {  // R52
    must({"SET", fence, "5", "PX", text(hour)});
    for (const std::int64_t back : {0, 40, 100}) {
        const block got = keeps();
        EXPECT_EQ(code(release(keeper, text(got.ceiling + 1))), -1);
        EXPECT_EQ(code(release(keeper, text(got.ceiling - back))), 1);
        EXPECT_EQ(value(fence), text(got.ceiling)) << "a release raises nothing";
    }
    const std::string token = hold("plain");
    EXPECT_EQ(code(release("plain", text(std::stoll(token) - 1))), -1);
}

TEST_F(MutexKept, IsConfirmedByEveryTokenOfItsBlock) {
    must({"SET", fence, "5", "PX", text(hour)});
    const block got = keeps();
    EXPECT_GT(confirm(text(got.token)).integer, 0);
    EXPECT_GT(confirm(text(got.ceiling)).integer, 0);
    EXPECT_EQ(confirm(text(got.ceiling + 1)).integer, 0);
    must({"DEL", fence});
    EXPECT_EQ(confirm(text(got.token)).integer, 0);
}

TEST_F(MutexKept, GivesWayAndIsRaisedByItsCeilingOnly) {  // R42
    must({"SET", fence, "5", "PX", text(hour)});
    const block got = keeps();
    wait("a");
    listener a = listens("a");
    EXPECT_EQ(code(gives_way(keeper, text(got.token))), 1) << "a late copy about an earlier grant";
    EXPECT_EQ(code(raise(keeper, text(got.token), text(got.ceiling + 5))), -1);
    EXPECT_EQ(code(raise(keeper, text(got.ceiling), text(got.ceiling + 5))), 1);
    EXPECT_EQ(value(fence), text(got.ceiling + 5));
    EXPECT_EQ(code(gives_way(keeper, text(got.ceiling + 5))), 2);
    EXPECT_EQ(value(lock), "a");
}

// --- who wants the lock ------------------------------------------------------------------------------------

TEST_F(MutexKept, IsWantedWhenTheFirstWaiterComesAndAtEachOfItsPolls) {  // R50
    keeps();
    listener ear = keeper_listens("keeper");
    const std::string first = ticket_of(wait("a"));
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    const std::string second = ticket_of(wait("b"));
    wait("b", {.ticket = second});
    expect_keeper_hears_nothing(ear, "keeper");
    wait("a", {.ticket = first});
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    expect_keeper_hears_nothing(ear, "keeper");
    EXPECT_THAT(queued_ids(), ElementsAre("a", "b"));
    expect_all_keys_expire();
}

TEST_F(MutexKept, ATryIsToldSoAndAsksForIt) {  // R50
    keeps();
    listener ear = keeper_listens("keeper");
    EXPECT_THAT(try_for("me"), IsKeptBy(keeper));
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    EXPECT_THAT(queued_ids(), IsEmpty()) << "a try never waits in the queue";
}

TEST_F(MutexKept, ATryBesideWaitersAndHealingAskForNothing) {  // R50
    keeps();
    listener ear = keeper_listens("keeper");
    EXPECT_THAT(try_for("me", {"0"}), IsRefused(0, Gt(0), keeper)) << "healing";
    wait("a");
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    EXPECT_THAT(try_for("me"), IsRefused(0, Gt(0), keeper));
    expect_keeper_hears_nothing(ear, "keeper");
}

TEST_F(MutexKept, SilentWaitersAtTheFrontDoNotKeepTheOthersFromAsking) {  // R50
    keeps();
    wait("dead");
    const std::string ticket = ticket_of(wait("b"));
    last_polled("dead", 20'001);
    listener ear = keeper_listens("keeper");
    EXPECT_EQ(wait("b", {.ticket = ticket}).elements.at(4).integer, 0);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    EXPECT_THAT(queued_ids(), ElementsAre("b"));
    EXPECT_EQ(must({"HLEN", waiters}).integer, 1);

    last_polled("b", 20'001);
    EXPECT_THAT(try_for("me"), IsKeptBy(keeper));
    EXPECT_EQ(everything().count(queue), 0U);
}

TEST_F(MutexKept, TheNewFirstWaiterIsToldToPollIfASilentOneIsDropped) {  // R50
    keeps();
    wait("dead");
    wait("b");
    const std::string ticket = ticket_of(wait("c"));
    last_polled("dead", 20'001);
    listener b = listens("b"), ear = keeper_listens("keeper");
    EXPECT_EQ(wait("c", {.ticket = ticket}).elements.at(4).integer, 1);
    EXPECT_EQ(b.next(), "poll b");
    expect_keeper_hears_nothing(ear, "keeper");
}

TEST_F(MutexKept, IsToldAtAHandOverHowManyWait) {  // R50, R52
    must({"SET", fence, "5", "PX", text(hour)});
    const std::string token = hold("plain");
    wait(keeper);
    wait("a");
    wait("b");
    listener ear = listens(keeper);
    EXPECT_EQ(code(release("plain", token)), 1);
    const std::string told = ear.next();
    EXPECT_EQ(told.substr(0, told.find(' ')), "grant_block");
    const std::string mark = value(fence);
    EXPECT_TRUE(told.starts_with("grant_block " + keeper + " ")) << told;
    EXPECT_TRUE(told.ends_with(" " + mark + " 2")) << told;
    const std::int64_t first = std::stoll(told.substr(("grant_block " + keeper + " ").size()));
    EXPECT_GT(first, std::stoll(token));
    EXPECT_LE(first, std::stoll(mark));
}

TEST_F(MutexKept, IsNotAskedOnAChannelOfItsSlotByOneLeadingZero) {  // R50
    const std::string sharded = marked_id("keeper", "007");
    acquire(sharded);
    sim::listener own{socket(), 1}, common{socket(), 1};
    own.subscribe("hf:wake:{stock}:" + client_named("keeper"), sim::channel_kind::sharded);
    common.subscribe("hf:wake:" + client_named("keeper"), sim::channel_kind::plain);
    EXPECT_EQ(code(wait("a")), 2);
    const auto heard = own.heard();
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0].payload, "wanted " + sharded);
    EXPECT_TRUE(common.heard().empty());
}

TEST_F(MutexKept, ATryWorksOnAFullServer) {
    keeps();
    listener ear = keeper_listens("keeper");
    server_is_full();
    EXPECT_THAT(try_for("me"), IsKeptBy(keeper));
    EXPECT_EQ(ear.next(), "wanted " + keeper);
}

// --- what it costs others ------------------------------------------------------------------------------------

// The numbers are those of the scripts before there were marks, and one more for a poll, which looks for watchers.
TEST_F(MutexKept, HoldersWithoutTheMarkCostNoCallMore) {  // R50
    const auto calls = [this](auto does) {
        must({"CONFIG", "RESETSTAT"});
        does();
        return calls_of_scripts();
    };
    const std::string holder = client_named("plain") + ".10.0123456789abcdefghijkl";
    std::string token, ticket;
    renew("plain", minute);  // connects
    EXPECT_EQ(calls([&] { token = hold(holder); }), 6);
    EXPECT_EQ(calls([&] { try_for("me"); }), 7);
    EXPECT_EQ(calls([&] { ticket = ticket_of(wait("a")); }), 11);
    EXPECT_LE(calls([&] { wait("a", {.ticket = ticket}); }), 17) << "15 within one ms";
    const listener ear = listens("a");
    EXPECT_EQ(calls([&] { release(holder, token); }), 12);
    EXPECT_EQ(calls([&] { release("a", value(fence)); }) - 1, 4) << "less the GET of the test";
}

}  // namespace
}  // namespace holdfast::testing::mutex_kept_test
