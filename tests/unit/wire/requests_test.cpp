// The requests that can be asked while a slot moves: which keys they name, and what their answers mean.
#include "wire/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "redis/resp/resp_reader.hpp"
#include "unit/redis/session/command_bytes.hpp"
#include "unit/redis/session/recorded_command.hpp"
#include "wire/kind.hpp"
#include "wire/scripts.hpp"

namespace holdfast::wire::requests_test {
namespace {

using redis::testing::encoded;
using verdict = hold_answer::verdict;

template <class Request>
std::string written(const Request& request, lock_kind kind = lock_kind::mutex) {
    const lock_keys keys = make_keys(lock_name("stock"), key_naming::tagged, "hf:");
    redis::testing::event_log log;
    redis::testing::recorded_command out(log, "request");
    write(out, {.keys = keys, .kind = kind}, request);
    return redis::testing::bytes_of(out);
}

template <class Read>
auto answer(Read read, std::string_view bytes) {
    redis::resp_reader reader;
    std::ranges::copy(bytes, reader.prepare(bytes.size()).begin());
    reader.commit(bytes.size());
    redis::reply_view reply;
    EXPECT_EQ(reader.next(reply), redis::resp_status::reply);
    return read(reply);
}

TEST(Requests, ReleaseAloneNamesTheLockOnly) {
    EXPECT_EQ(written(release_alone_request{.id = "me"}),
              encoded({"EVALSHA", find("mutex/release_alone").sha1, "1", "hf:{stock}", "me"}));
}

TEST(Requests, RenewAloneNamesTheKeysOfAHeldLock) {
    EXPECT_EQ(written(renew_alone_request{.id = "me", .lease = milliseconds(30'000)}, lock_kind::read_write),
              encoded({"EVALSHA", find("rw/renew_alone").sha1, "3", "hf:{stock}", "hf:{stock}:leases",
                       "hf:{stock}:grants", "me", "30000"}));
}

TEST(Requests, ConfirmNamesTheLockAndWithATokenTheFence) {
    EXPECT_EQ(written(confirm_request{.id = "me"}),
              encoded({"EVALSHA", find("mutex/confirm").sha1, "1", "hf:{stock}", "me"}));
    EXPECT_EQ(written(confirm_request{.id = "me", .token = 7}),
              encoded({"EVALSHA", find("mutex/confirm").sha1, "2", "hf:{stock}", "hf:{stock}:fence", "me", "7"}));
}

TEST(Requests, ReleaseAloneIsAnsweredThatTheQueueIsStillToBeServed) {
    EXPECT_EQ(answer(read_release_alone, "*1\r\n:2\r\n")->what, verdict::alone);
    EXPECT_EQ(answer(read_release_alone, "*1\r\n:0\r\n")->what, verdict::not_held);
    const auto other = answer(read_release_alone, "*3\r\n:-1\r\n:70\r\n$6\r\npython\r\n");
    EXPECT_EQ(other->what, verdict::held_by_other);
    EXPECT_EQ(other->holder_left, milliseconds(70));
}

TEST(Requests, RenewAloneIsAnsweredWithWhatIsHeldOrNothing) {
    const auto renewed = answer(read_renew_alone, "*3\r\n:1\r\n$1\r\nb\r\n$2\r\n17\r\n");
    EXPECT_EQ(renewed->what, verdict::done);
    EXPECT_EQ(renewed->held, shape::both);
    EXPECT_EQ(renewed->token, 17U);
    EXPECT_EQ(answer(read_renew_alone, "*1\r\n:3\r\n")->what, verdict::unclear);
}

// What is an answer to one request is nonsense as one to another.
TEST(Requests, AnswersTellWhatWasLeftOfAnExpiryThatAnotherProgramCut) {  // R33
    EXPECT_EQ(answer(read_acquire, "*4\r\n:1\r\n$2\r\n42\r\n$0\r\n\r\n:700\r\n")->cut_to, milliseconds(700));
    EXPECT_EQ(answer(read_acquire, "*4\r\n:1\r\n$2\r\n42\r\n$0\r\n\r\n:700\r\n")->clock, std::nullopt);
    EXPECT_EQ(answer(read_acquire, "*3\r\n:1\r\n$2\r\n42\r\n$3\r\n700\r\n")->cut_to, std::nullopt);
    EXPECT_EQ(answer(read_acquire, "*2\r\n:1\r\n$2\r\n42\r\n")->cut_to, std::nullopt);
    const std::string queued = "$2\r\nhe\r\n$1\r\n5\r\n:0\r\n$1\r\n7\r\n:60\r\n";
    EXPECT_EQ(answer(read_acquire, "*9\r\n:2\r\n:60\r\n" + queued + "$1\r\n9\r\n:700\r\n")->cut_to, milliseconds(700));
    EXPECT_EQ(answer(read_acquire, "*7\r\n:2\r\n:60\r\n" + queued)->cut_to, std::nullopt);
    EXPECT_EQ(answer(read_hold, "*4\r\n:1\r\n$1\r\nr\r\n$2\r\n42\r\n:0\r\n")->cut_to, milliseconds(0));
    EXPECT_EQ(answer(read_hold, "*3\r\n:1\r\n$1\r\nr\r\n$2\r\n42\r\n")->cut_to, std::nullopt);
}

TEST(Requests, RenewBlockNamesLockQueueAndFence) {  // R52
    EXPECT_EQ(written(renew_block_request{.id = "me", .lease = milliseconds(30'000), .ceiling = 9}),
              encoded({"EVALSHA", find("mutex/renew_block").sha1, "3", "hf:{stock}", "hf:{stock}:queue",
                       "hf:{stock}:fence", "me", "30000", "9", "0"}));
}

// The fence of a mutex holds the ceiling of a marked grant, so that is what tells one grant of an id from another.
TEST(Requests, AMarkedGrantOfAMutexIsNamedByItsCeiling) {  // R52
    EXPECT_TRUE(written(raise_request{.id = "me", .token = 5, .to = 9, .ceiling = 7})
                    .ends_with(encoded({"me", "7", "9", "0"}).substr(4)));
    EXPECT_TRUE(written(confirm_request{.id = "me", .ceiling = 7}).ends_with(encoded({"me", "7"}).substr(4)));
    EXPECT_TRUE(
        written(acquire_request{
                    .id = "me", .lease = milliseconds(1), .channel = {}, .ticket = {}, .gives_way = 5, .ceiling = 7})
            .ends_with(encoded({"7"}).substr(4)));
}

TEST(Requests, HealingIsATryThatAsksNothingBack) {  // R50
    const acquire_request tries{.id = "me", .lease = milliseconds(1), .channel = {}, .ticket = {}};
    acquire_request heals = tries;
    heals.asks_back = false;
    for (const lock_kind kind : {lock_kind::mutex, lock_kind::read_write}) {
        EXPECT_TRUE(written(heals, kind).ends_with(encoded({"0", "0"}).substr(4)));
        EXPECT_EQ(std::ranges::count(written(heals, kind), '$'), std::ranges::count(written(tries, kind), '$') + 1);
    }
}

TEST(Requests, ConfirmOfAReadWriteLockNamesTheFenceForACeiling) {  // R52
    EXPECT_EQ(written(confirm_request{.id = "me", .token = 5, .ceiling = 7}, lock_kind::read_write),
              encoded({"EVALSHA", find("rw/confirm").sha1, "4", "hf:{stock}", "hf:{stock}:leases", "hf:{stock}:grants",
                       "hf:{stock}:fence", "me", "5", "7"}));
}

TEST(Requests, AnswersAboutMarkedIdsTellTheCeilingAndHowManyWait) {  // R50, R52
    const auto held = answer(read_acquire, "*6\r\n:1\r\n$2\r\n42\r\n$0\r\n\r\n$0\r\n\r\n$2\r\n50\r\n:3\r\n");
    EXPECT_EQ(held->token, 42U);
    EXPECT_EQ(held->ceiling, 50U);
    EXPECT_EQ(held->waiters, 3U);
    EXPECT_EQ(held->clock, std::nullopt);
    EXPECT_EQ(held->cut_to, std::nullopt);
    EXPECT_EQ(answer(read_acquire, "*2\r\n:1\r\n$2\r\n42\r\n")->ceiling, 0U);
    const auto renewed = answer(read_hold, "*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$2\r\n50\r\n:0\r\n");
    EXPECT_EQ(renewed->what, verdict::done);
    EXPECT_EQ(renewed->ceiling, 50U);
    EXPECT_EQ(renewed->waiters, 0U);
    const auto reads = answer(read_hold, "*6\r\n:1\r\n$1\r\nr\r\n$2\r\n42\r\n$0\r\n\r\n$2\r\n42\r\n:1\r\n");
    EXPECT_EQ(reads->held, shape::reading);
    EXPECT_EQ(reads->ceiling, 42U);
    EXPECT_EQ(reads->waiters, 1U);
}

TEST(Requests, ARefusalTellsThatTheLockIsOnlyKept) {  // R50
    const auto kept = answer(read_acquire, "*5\r\n:0\r\n:70\r\n$2\r\nhe\r\n$4\r\nheld\r\n$4\r\nkept\r\n");
    EXPECT_TRUE(kept->is_kept);
    EXPECT_EQ(kept->why, acquire_answer::reason::held);
    EXPECT_FALSE(answer(read_acquire, "*4\r\n:0\r\n:70\r\n$2\r\nhe\r\n$7\r\nreading\r\n")->is_kept);
}

TEST(Requests, AnswersOfOthersAreNonsense) {
    // A ceiling below the token, or none.
    EXPECT_FALSE(answer(read_acquire, "*6\r\n:1\r\n$2\r\n42\r\n$0\r\n\r\n$0\r\n\r\n$2\r\n41\r\n:3\r\n"));
    EXPECT_FALSE(answer(read_hold, "*6\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n0\r\n:0\r\n"));
    for (const char* const bytes : {"*1\r\n:1\r\n", "*1\r\n:3\r\n", "*0\r\n", "+OK\r\n"}) {
        EXPECT_FALSE(answer(read_release_alone, bytes)) << bytes;
    }
    for (const char* const bytes : {"*1\r\n:1\r\n", "*1\r\n:0\r\n", "*1\r\n:2\r\n", "*0\r\n", ":1\r\n"}) {
        EXPECT_FALSE(answer(read_renew_alone, bytes)) << bytes;
    }
    EXPECT_FALSE(answer(read_release, "*1\r\n:2\r\n"));
    EXPECT_FALSE(answer(read_hold, "*1\r\n:3\r\n"));
}

}  // namespace
}  // namespace holdfast::wire::requests_test
