// rw/acquire without waiting: who may read, who may write, and what a refusal says.
#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_acquire_test {
namespace {

class RwAcquire : public rw_rows {};

TEST_F(RwAcquire, FirstReaderMakesTheHash) {  // R20, R21
    EXPECT_THAT(read(ann), IsGranted(text(server_us())));
    EXPECT_EQ(held(), read_by({ann}));
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    EXPECT_EQ(grant_of(ann), "r " + value(fence));
    EXPECT_EQ(everything().size(), 4U);
    expect_all_keys_expire();
}

// A token is no reading of the clock: it may be one more than the last. R42
TEST_F(RwAcquire, TellsTheClockWhereATokenIsProposed) {
    const asking proposing{.channel = "wake", .proposal = text(server_us() + hour * 1000)};
    must({"SET", fence, text(server_us() + hour * 1000)});
    const auto clock_in = [](const redis_reply& reply, std::size_t place) {
        return reply.elements.size() == place + 1 ? reply.elements[place].text : "none";
    };
    const std::string clock = text(server_us());
    const redis_reply first = read(ann, proposing);
    EXPECT_EQ(clock_in(first, 2), clock);
    EXPECT_EQ(clock_in(read(ann, proposing), 2), clock) << "once more";
    EXPECT_EQ(clock_in(wait_to(wish::write, bob, proposing), 7), clock) << "in the queue";
    EXPECT_EQ(clock_in(wait_to(wish::upgrade, ann, proposing, first.elements.at(1).text), 2), clock) << "upgraded";
    must({"FLUSHALL"});
    EXPECT_EQ(clock_in(read(ann, proposing), 2), clock) << "as the first";
    EXPECT_EQ(clock_in(read(bob, proposing), 2), clock) << "beside others";
}

TEST_F(RwAcquire, ReadersShare) {  // R20, R21
    reads(ann);
    reads(bob);
    reads(cid);
    EXPECT_EQ(held(), read_by({ann, bob, cid}));
}

TEST_F(RwAcquire, WriterIsAlone) {  // R20, R22
    const std::string token = writes(ann);
    EXPECT_EQ(held(), written_by(ann));
    EXPECT_EQ(grant_of(ann), "w " + token);
    const keyspace before = everything();
    EXPECT_THAT(read(bob), IsRefusedFor("writing", minute, ann));  // R31
    EXPECT_THAT(write(bob), IsRefusedFor("writing", minute, ann));
    EXPECT_EQ(everything(), before);
    expect_all_keys_expire();
}

TEST_F(RwAcquire, WriterStaysOutWhileOthersRead) {  // R22, R31
    reads(ann);
    const keyspace before = everything();
    EXPECT_THAT(write(bob), IsRefusedFor("reading", minute, ann));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwAcquire, ByTheHolderRefreshesTheLeaseAndKeepsTheToken) {  // R21, R22, §4.7
    const std::string token = reads(ann);
    pass(1000);
    EXPECT_THAT(read(ann), IsGranted(token));
    EXPECT_EQ(held(), read_by({ann})) << "a count of ours is always 1";
    EXPECT_EQ(deadline(ann), now_ms() + minute);
    release(ann, token);
    const std::string second = writes(ann);
    pass(1000);
    EXPECT_THAT(write(ann), IsGranted(second));
    EXPECT_EQ(held(), written_by(ann));
    EXPECT_EQ(left(lock), minute);
}

TEST_F(RwAcquire, WriterMayReadToo) {  // R21
    const std::string token = writes(ann);
    EXPECT_THAT(read(ann), IsGranted(token));
    EXPECT_EQ(held(), read_and_written_by(ann));
    EXPECT_EQ(grant_of(ann), "b " + token);
    EXPECT_THAT(write(ann), IsGranted(token));
    EXPECT_EQ(held(), read_and_written_by(ann)) << "a late copy of the first request takes nothing away";
}

TEST_F(RwAcquire, ReaderDoesNotBecomeAWriterWithoutAskingForAnUpgrade) {  // R31
    reads(ann);
    const keyspace before = everything();
    EXPECT_THAT(write(ann), IsRefusedFor("mode", minute, ann));
    EXPECT_EQ(everything(), before);
}

TEST_F(RwAcquire, TokensGrowAcrossGrants) {  // R45
    const std::string first = reads(ann);
    const std::string second = reads(bob);
    EXPECT_GT(std::stoll(second), std::stoll(first));
    release(ann, first);
    release(bob, second);
    const std::string third = writes(ann);
    EXPECT_GT(std::stoll(third), std::stoll(second));
    EXPECT_EQ(read(cid, {.floor = "9"}).elements[0].integer, 0);
    release(ann, third);
    EXPECT_THAT(read(cid, {.floor = "4000000000000000"}), IsGranted("4000000000000001")) << "above what was seen";
}

TEST_F(RwAcquire, RequestsThatMakeNoSenseAreRefusedBeforeAnythingIsWritten) {
    reads(ann, 1000);
    wait_to_write(bob);
    pass(1001);  // ann's lease is over: every script would have something to write
    const keyspace before = everything();
    EXPECT_THAT(read(cid, {.lease = 0}), IsError("ERR"));
    EXPECT_THAT(read(cid, {.lease = -1}), IsError("ERR"));
    EXPECT_THAT(read(cid, {.lease = 9'007'199'254'740'993}), IsError("ERR"));
    EXPECT_THAT(read(cid, {.ticket = "soon"}), IsError("ERR"));
    EXPECT_THAT(read(cid, {.interval = -1}), IsError("ERR"));
    EXPECT_THAT(read(cid, {.retention = 0}), IsError("ERR"));
    EXPECT_THAT(wait_to(wish::read, cid, {.queue_retention = 0}), IsError("ERR"));
    EXPECT_THAT(acquire(cid, static_cast<wish>('x'), {}), IsError("ERR"));
    EXPECT_THAT(leave(cid, "0", "x"), IsError("ERR"));
    EXPECT_THAT(renew(cid, 0), IsError("ERR"));
    EXPECT_EQ(everything(), before);
}

}  // namespace
}  // namespace holdfast::testing::rw_acquire_test
