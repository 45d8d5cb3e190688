// Kept read-write locks: marked holders are told when somebody else wants the lock, and a marked writer gets tokens in
// blocks.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_kept_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

MATCHER_P2(IsKeptBy, holder, why, "is {0, left, holder, why, kept}") {
    return arg.elements.size() == 5 && arg.elements[0].integer == 0 && arg.elements[2].text == holder &&
           arg.elements[3].text == why && arg.elements[4].text == "kept";
}
MATCHER_P3(IsBlock, token, ceiling, waiters, "is {1, token, '', '', ceiling, waiters}") {
    return arg.elements.size() == 6 && arg.elements[0].integer == 1 && arg.elements[1].text == token &&
           arg.elements[2].text.empty() && arg.elements[3].text.empty() && arg.elements[4].text == ceiling &&
           arg.elements[5].integer == waiters;
}
MATCHER_P4(HoldsBlock, shape, token, ceiling, waiters, "is {1, shape, token, '', ceiling, waiters}") {
    return arg.elements.size() == 6 && arg.elements[0].integer == 1 && arg.elements[1].text == shape &&
           arg.elements[2].text == token && arg.elements[3].text.empty() && arg.elements[4].text == ceiling &&
           arg.elements[5].integer == waiters;
}

class RwKept : public rw_rows {
protected:
    const std::string keeper = marked_id("keeper"), other = marked_id("other");
    listener ear = keeper_listens("keeper"), other_ear = keeper_listens("other");

    // A token is known, so blocks begin in the past.
    void some_token_is_known() { must({"SET", fence, "5", "PX", text(hour)}); }
    std::string now() const { return text(clock_us()); }
    std::string ago(std::int64_t us) const { return text(clock_us() - us); }

    redis_reply renew_block(const std::string& id, const std::string& asked = "0") {
        return run("rw/renew", keys(), {id, text(hour), prefer, text(minute), "0", asked});
    }
    redis_reply confirm(const std::string& id, const std::string& token, const std::string& ceiling) {
        return run("rw/confirm", {lock, leases, grants, fence}, {id, token, ceiling});
    }
    redis_reply heal(wish wants, const std::string& id) {
        return run("rw/acquire", keys(),
                   {id, text(hour), prefer, std::string(1, static_cast<char>(wants)), text(minute), "0", "", "0", "0",
                    "0", "0", "0", "0", "0"});
    }
    std::int64_t published(auto does) {
        must({"CONFIG", "RESETSTAT"});
        does();
        const std::string stats = must({"INFO", "commandstats"}).text;
        const auto at = stats.find("cmdstat_publish:calls=");
        return at == std::string::npos ? 0 : std::stoll(stats.substr(at + 22));
    }
    void expect_wanted(listener& whose, const std::string& name, const std::string& id) {
        EXPECT_EQ(whose.next(), "wanted " + id);
        expect_keeper_hears_nothing(whose, name);
    }
};

// --- tokens --------------------------------------------------------------------------------------------------

TEST_F(RwKept, AMarkedWriterGetsABlockAndAReaderOneToken) {  // R50, R52
    some_token_is_known();
    EXPECT_THAT(write(keeper), IsBlock(ago(100), now(), 0));
    EXPECT_EQ(grant_of(keeper), "w " + ago(100));
    EXPECT_EQ(value(fence), now());
    EXPECT_THAT(write(keeper), IsBlock(ago(100), now(), 0)) << "again";
    release(keeper, ago(100));
    EXPECT_THAT(read(other), IsBlock(text(clock_us() + 1), text(clock_us() + 1), 0));
    EXPECT_EQ(grant_of(other), "r " + text(clock_us() + 1));
    expect_all_keys_expire();
}

TEST_F(RwKept, AnUpgradeIsABlockAboveEveryEarlierToken) {  // R52
    const std::string token = reads(keeper);
    pass(1);
    EXPECT_THAT(upgrade(keeper, token), IsBlock(ago(100), now(), 0));
    pass(1);
    EXPECT_THAT(downgrade(keeper, text(clock_us() - 1100)), IsReleased(0, 1));
    EXPECT_EQ(grant_of(keeper), "r " + text(clock_us() - 1100)) << "a downgrade raises nothing";
    EXPECT_EQ(value(fence), text(clock_us() - 1000)) << "nothing lowers the fence";
    EXPECT_GT(std::stoll(reads(bob)), clock_us() - 1000);
}

TEST_F(RwKept, ARenewalOfAWriterFetchesTokensAndTellsHowManyWait) {  // R50, R52
    const std::string token = writes(keeper);
    EXPECT_THAT(renew_block(keeper), HoldsBlock("w", token, now(), 0));
    pass(7);
    wait_to_write(bob);
    EXPECT_THAT(renew_block(keeper), HoldsBlock("w", token, now(), 1));
    EXPECT_EQ(value(fence), now());
    EXPECT_THAT(renew_block(keeper, text(clock_us() + 50)), HoldsBlock("w", token, now(), 1))
        << "the clock is not behind";
    must({"SET", fence, text(clock_us() + 9), "PX", text(hour)});
    EXPECT_THAT(renew_block(keeper), HoldsBlock("w", token, text(clock_us() + 9), 1));
    EXPECT_THAT(renew_block(keeper, text(clock_us() + 50)), HoldsBlock("w", token, text(clock_us() + 50), 1));
    must({"DEL", fence});
    EXPECT_THAT(renew_block(keeper, text(clock_us() + 60)), HoldsBlock("w", token, text(clock_us() + 60), 1));
    EXPECT_GE(left(fence), hour);
}

TEST_F(RwKept, ARenewalOfAReaderWritesNoFence) {  // R50
    const std::string token = reads(keeper);
    wait_to_write(bob);
    pass(7);
    EXPECT_THAT(renew_block(keeper, text(clock_us() + 50)), HoldsBlock("r", token, token, 1));
    EXPECT_EQ(value(fence), token);
    EXPECT_THAT(renew(ann), IsHeldByOthers(minute, keeper));
}

TEST_F(RwKept, ARenewalWorksOnAFullServer) {
    writes(keeper);
    pass(7);
    server_is_full();
    EXPECT_EQ(renew_block(keeper).elements.at(4).text, now());
    EXPECT_EQ(value(fence), now());
}

TEST_F(RwKept, ACeilingIsConfirmedIfTheFenceHasReachedIt) {
    const std::string token = writes(keeper);
    EXPECT_GT(confirm(keeper, token, token).integer, 0);
    EXPECT_EQ(confirm(keeper, token, text(clock_us() + 1)).integer, 0);
    renew_block(keeper);
    EXPECT_GT(confirm(keeper, "0", now()).integer, 0);
    must({"DEL", fence});
    EXPECT_EQ(confirm(keeper, token, token).integer, 0);
}

// --- who wants the lock --------------------------------------------------------------------------------------

TEST_F(RwKept, AMarkedWriterIsAskedByTheFirstWaiter) {  // R50
    writes(keeper);
    const std::string first = ticket_of(wait_to_read(bob));
    expect_wanted(ear, "keeper", keeper);
    const std::string second = ticket_of(wait_to_write(cid));
    wait_to(wish::write, cid, {.ticket = second});
    expect_keeper_hears_nothing(ear, "keeper");
    wait_to(wish::read, bob, {.ticket = first});
    expect_wanted(ear, "keeper", keeper);
}

TEST_F(RwKept, AllMarkedReadersAreAskedByAWriterAndNoOthers) {  // R50
    reads(keeper);
    reads(ann);
    reads(other);
    EXPECT_EQ(published([this] { wait_to_write(bob); }), 2);
    expect_wanted(ear, "keeper", keeper);
    expect_wanted(other_ear, "other", other);
}

TEST_F(RwKept, AClientWithTwoMarkedReadersIsToldOnce) {  // R50
    const std::string twin = marked_id("keeper", "08");
    reads(keeper);
    reads(twin);
    EXPECT_EQ(published([this] { wait_to_write(bob); }), 1);
    const std::string told = ear.next();
    EXPECT_TRUE(told == "wanted " + keeper + " " + twin || told == "wanted " + twin + " " + keeper) << told;
}

TEST_F(RwKept, ManyMarkedReadersAreAskedAFewAtATime) {  // R50
    for (int i = 0; i < 100; ++i) reads(marked_id("r" + text(100 + i)));
    std::string ticket = "0";
    EXPECT_EQ(published([&] { ticket = ticket_of(wait_to_write(bob)); }), 32);
    pass(1);
    EXPECT_EQ(published([&] { wait_to(wish::write, bob, {.ticket = ticket}); }), 32);
    EXPECT_EQ(published([this] { write(cid); }), 0) << "somebody waits already";
}

TEST_F(RwKept, ATryBesideMarkedHoldersAloneIsToldSo) {  // R50
    const std::string token = writes(keeper);
    EXPECT_THAT(read(bob), IsKeptBy(keeper, "writing"));
    EXPECT_THAT(write(bob), IsKeptBy(keeper, "writing"));
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    expect_wanted(ear, "keeper", keeper);
    EXPECT_THAT(heal(wish::read, bob), IsRefusedFor("writing", minute, keeper));
    release(keeper, token);

    reads(keeper);
    EXPECT_THAT(write(bob), IsKeptBy(keeper, "reading"));
    expect_wanted(ear, "keeper", keeper);
    reads(ann);
    EXPECT_EQ(published([this] { write(bob); }), 0) << "it would not get the lock anyway";
    EXPECT_THAT(heal(wish::write, bob), IsRefusedFor("reading", minute, keeper));
    EXPECT_EQ(must({"EXISTS", queue, waiters}).integer, 0);
}

TEST_F(RwKept, ATryBesideWaitersIsNot) {  // R50
    reads(keeper);
    wait_to_write(bob);
    const listener lives = listens(bob);
    EXPECT_EQ(published([this] { EXPECT_EQ(write(cid).elements.size(), 4U); }), 0);
    EXPECT_EQ(published([this] { EXPECT_EQ(code(read(cid)), 0); }), 0);
}

TEST_F(RwKept, AnUpgradeAsksTheOtherMarkedReadersAndNotItself) {  // R50
    const std::string mine = reads(keeper);
    reads(other);
    EXPECT_THAT(upgrade(keeper, mine), IsKeptBy(other, "reading"));
    expect_wanted(other_ear, "other", other);
    wait_to_write(bob);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    expect_wanted(other_ear, "other", other);
    const std::string ticket = ticket_of(wait_to_upgrade(keeper, mine));
    expect_wanted(other_ear, "other", other);
    wait_to(wish::upgrade, keeper, {.ticket = ticket}, mine);
    expect_wanted(other_ear, "other", other);
    expect_keeper_hears_nothing(ear, "keeper");
}

// A waiter behind the upgrade was not the first, so it did not ask. Now it is the first, and would have to poll.
TEST_F(RwKept, TheEndOfAnUpgradeTellsAMarkedReaderHowManyWait) {  // R50
    const std::string token = reads(keeper);
    const std::string plain = reads(bob);
    const listener upgrader = listens(keeper), writer = listens(cid);
    wait_to_upgrade(keeper, token);
    wait_to_write(cid);
    EXPECT_THAT(cancel(keeper), HoldsBlock("r", token, token, 1));
    EXPECT_THAT(cancel(keeper), HoldsBlock("r", token, token, 1)) << "repeatable";
    EXPECT_THAT(cancel(bob), Holds("r", plain)) << "it is not marked";
}

TEST_F(RwKept, SilentWaitersBesideAMarkedWriterAreDropped) {  // R50
    writes(keeper);
    wait_to_read(ann);
    const std::string ticket = ticket_of(wait_to_read(bob));
    last_polled(ann, 20'001);
    EXPECT_EQ(ear.next(), "wanted " + keeper);
    EXPECT_EQ(wait_to(wish::read, bob, {.ticket = ticket}).elements.at(4).integer, 0);
    expect_wanted(ear, "keeper", keeper);
    EXPECT_THAT(queued_ids(), ElementsAre(bob));
}

TEST_F(RwKept, AHandOverTellsMarkedIdsTheBlockAndHowManyWait) {  // R50, R52
    some_token_is_known();
    const std::string token = writes(ann);
    wait_to(wish::read, keeper, {.channel = "wake:here"});
    wait_to(wish::read, bob, {.channel = "wake:here"});
    wait_to(wish::write, other, {.channel = "wake:here"});
    wait_to(wish::write, cid, {.channel = "wake:here"});
    listener here = listens("here");
    pass(1);
    release(ann, token);
    const std::string reader = grant_of(keeper).substr(2), plain = grant_of(bob).substr(2);
    EXPECT_THAT((std::vector{here.next(), here.next()}),
                UnorderedElementsAre("grant_block " + keeper + " " + reader + " " + reader + " 2",
                                     "grant " + bob + " " + plain));
    pass(1);
    release(keeper, reader);
    release(bob, plain);
    EXPECT_EQ(here.next(), "grant_block " + other + " " + ago(100) + " " + now() + " 1");
}

// A release by a client that does not know marks makes a marked waiter the holder, too.
TEST_F(RwKept, ARenewalCorrectsGrantsThatDoNotSayThatAMarkedIdReads) {  // R50
    reads(keeper);
    must({"HDEL", grants, "kept"});
    EXPECT_EQ(published([this] { write(bob); }), 0);
    renew_block(keeper);
    EXPECT_EQ(published([this] { write(bob); }), 1);
}

// The numbers are those of the scripts before there were marks.
TEST_F(RwKept, HoldersWithoutTheMarkCostNoCallMore) {  // R50
    const auto calls = [this](auto does) {
        must({"CONFIG", "RESETSTAT"});
        does();
        return calls_of_scripts();
    };
    std::string token, ticket;
    renew(ann);  // connects
    EXPECT_LE(calls([&] { token = reads(ann); }), 11);
    EXPECT_LE(calls([&] { write(bob); }), 15);
    EXPECT_LE(calls([&] { ticket = ticket_of(wait_to_write(cid)); }), 24);
    EXPECT_LE(calls([&] { wait_to(wish::write, cid, {.ticket = ticket}); }), 24);
    EXPECT_LE(calls([&] { renew(ann); }), 19);
    const listener there = listens(cid);
    EXPECT_LE(calls([&] { release(ann, token); }), 36);
}

}  // namespace
}  // namespace holdfast::testing::rw_kept_test
