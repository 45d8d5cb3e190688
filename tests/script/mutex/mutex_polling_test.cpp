// Waiters that listen nowhere and poll, alone and beside waiters that listen.
#include "script/script_rows.hpp"

namespace holdfast::testing::mutex_polling_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MutexPolling : public script_rows {
protected:
    redis_reply poll(const std::string& id, asking terms) {
        terms.channel = "-";
        return acquire(id, terms);
    }
    redis_reply poll(const std::string& id) { return poll(id, {}); }
};

TEST_F(MutexPolling, AWaiterThatPollsIsAliveThoughNobodyListens) {
    const std::string token = hold("holder");
    poll("polls");
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "polls");
    EXPECT_THAT(queued_ids(), IsEmpty());
    expect_all_keys_expire();
}

TEST_F(MutexPolling, ItsNextPollTellsItOfTheGrantAndMakesTheLeaseFull) {
    const std::string token = hold("holder");
    const std::string ticket = ticket_of(poll("polls"));
    release("holder", token);
    const std::string granted = value(fence);
    must({"PEXPIRE", lock, "10000"});
    EXPECT_THAT(poll("polls", {.ticket = ticket}), IsGranted(granted));
    EXPECT_GT(left(lock), minute - 10'000);
    EXPECT_THAT(queued_ids(), IsEmpty());
}

TEST_F(MutexPolling, AWaiterThatMissesTwoPollsIsPassedOver) {  // R13
    const std::string token = hold("holder");
    poll("silent", {.interval = 1000});
    last_polled("silent", 2001);
    poll("polls", {.interval = 1000});
    last_polled("polls", 1900);
    release("holder", token);
    EXPECT_EQ(value(lock), "polls");
}

TEST_F(MutexPolling, ThePassedOverGetsItsPositionBackByItsNextPoll) {  // R10
    const std::string token = hold("holder");
    const std::string ticket = ticket_of(poll("silent", {.interval = 1000}));
    last_polled("silent", 2001);
    wait("a");
    wait("b");
    const listener a = listens("a");
    release("holder", token);
    EXPECT_EQ(value(lock), "a");
    EXPECT_THAT(poll("silent", {.ticket = ticket}), IsQueued("a", 0));
    EXPECT_THAT(queued_ids(), ElementsAre("silent", "b"));
}

TEST_F(MutexPolling, ThoseWhoPollAndThoseWhoListenAreServedInOneOrder) {  // R10
    std::string token = hold("0");
    std::vector<listener> ears;
    for (const std::string id : {"1", "3", "5"}) ears.push_back(listens(id));
    const std::vector<std::string> order{"1", "2", "3", "4", "5", "6"};
    for (const std::string& id : order) (id == "1" || id == "3" || id == "5") ? wait(id) : poll(id);
    for (const std::string& id : order) {
        release(value(lock), token);
        EXPECT_EQ(value(lock), id);
        token = value(fence);
    }
    for (std::size_t i = 0; i < ears.size(); ++i) EXPECT_TRUE(ears[i].next().starts_with("grant "));
}

// A message to all members of a Cluster, or a right that the user lacks.
TEST_F(MutexPolling, NothingIsPublishedForIt) {
    const std::string token = hold("holder");
    poll("polls");
    poll("also polls");
    must({"CONFIG", "RESETSTAT"});
    release("holder", token);
    const std::string stats = must({"INFO", "commandstats"}).text;
    EXPECT_EQ(stats.find("cmdstat_publish"), stats.npos);
    EXPECT_EQ(stats.find("cmdstat_pubsub"), stats.npos);
}

TEST_F(MutexPolling, ItMayBeginToListenAndStop) {
    std::string token = hold("holder");
    const std::string ticket = ticket_of(poll("changes"));
    wait("changes", {.ticket = ticket});
    EXPECT_THAT(queued_ids(), ElementsAre("changes"));
    listener ear = listens("changes");
    release("holder", token);
    EXPECT_EQ(ear.next(), "grant changes " + value(fence));

    token = value(fence);
    const std::string again = ticket_of(wait("back"));
    poll("back", {.ticket = again});
    release("changes", token);
    EXPECT_EQ(value(lock), "back");
}

}  // namespace
}  // namespace holdfast::testing::mutex_polling_test
