// The requests that can be asked while a slot moves: which keys they name, and what their answers mean.
#include "wire/requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "redis/resp/resp_reader.hpp"
#include "unit/redis/command_bytes.hpp"
#include "unit/redis/recorded_command.hpp"
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

TEST(Requests, AnswersOfOthersAreNonsense) {
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
