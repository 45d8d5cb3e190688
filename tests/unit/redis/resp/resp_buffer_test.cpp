// The memory of the reader: moved rarely, reused, freed.
#include "redis/resp/resp_buffer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "unit/counted_allocations.hpp"  // to see that a warm reader makes none
#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::resp_buffer_test {
namespace {

using detail::resp_buffer;
using testing::allocations;
using testing::feed;

void fill(resp_buffer& buffer, std::size_t bytes) {
    const std::span<char> room = buffer.make_room(bytes);
    ASSERT_GE(room.size(), bytes);
    std::memset(room.data(), 'x', bytes);
    buffer.append(bytes);
}

TEST(Buffer, KeepsLiveBytesWhenItMovesThem) {
    resp_buffer buffer;
    std::mt19937 random{1};
    std::string expected;
    char next = 0;
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t bytes = random() % 700;
        const std::span<char> room = buffer.make_room(bytes);
        ASSERT_GE(room.size(), bytes);
        for (std::size_t i = 0; i < bytes; ++i) expected += room[i] = ++next;
        buffer.append(bytes);
        const std::size_t used = random() % (buffer.size() + 1);
        buffer.consume(used);
        expected.erase(0, used);
        ASSERT_EQ(std::string_view(buffer.data(), buffer.size()), expected);
    }
    EXPECT_LE(buffer.capacity(), 64u << 10);
}

TEST(Buffer, GrowsByDoubling) {
    resp_buffer buffer;
    std::size_t moves = 0;
    for (const char* before = nullptr; buffer.size() < 10'000'000; before = buffer.data()) {
        fill(buffer, 16'384);
        if (buffer.data() != before) ++moves;
    }
    EXPECT_LE(moves, 12u);
}

// A long pipeline with one reply per read: moving the rest each time would be quadratic.
TEST(Buffer, MovesNoMoreThanItFrees) {
    resp_buffer buffer;
    fill(buffer, 1'000'000);
    std::size_t moved_bytes = 0;
    for (int i = 0; i < 100'000; ++i) {
        buffer.consume(10);
        const char* const before = buffer.data();
        fill(buffer, 10);
        if (buffer.data() != before) moved_bytes += buffer.size();
    }
    EXPECT_LE(moved_bytes, 4'000'000u);
    EXPECT_LE(buffer.capacity(), std::size_t{4} << 20);
}

TEST(Buffer, GivesBackALargeCapacityOnceItIsHardlyUsed) {
    resp_buffer buffer;
    fill(buffer, 8'000'000);
    buffer.consume(8'000'000 - 5);
    fill(buffer, 100);
    EXPECT_EQ(buffer.size(), 105u);
    EXPECT_LE(buffer.capacity(), resp_buffer::kept_capacity);
}

TEST(Buffer, ClearKeepsASmallCapacityAndGivesBackALargeOne) {
    resp_buffer buffer;
    fill(buffer, 100'000);
    const std::size_t small = buffer.capacity();
    buffer.clear();
    EXPECT_EQ(buffer.capacity(), small);
    fill(buffer, 2'000'000);
    buffer.clear();
    EXPECT_LE(buffer.capacity(), resp_buffer::kept_capacity);
}

TEST(Buffer, AWarmReaderAllocatesNothing) {
    std::string bytes;
    for (int i = 0; i < 500; ++i)
        bytes += "*3\r\n:1\r\n$20\r\n01234567890123456789\r\n%1\r\n+a\r\n*2\r\n_\r\n,1.5\r\n:1\r\n";
    resp_reader reader;
    std::size_t replies = 0;
    std::size_t warm = 0;
    for (int round = 0; round < 50; ++round) {
        if (round == 10) warm = allocations;
        for (std::size_t at = 0; at < bytes.size(); at += 1000) {
            feed(reader, std::string_view{bytes}.substr(at, 1000));
            for (reply_view reply; reader.next(reply) == resp_status::reply;) ++replies;
        }
    }
    EXPECT_EQ(replies, 50u * 1000u);
    EXPECT_EQ(allocations, warm);
}

TEST(Buffer, AReaderGivesBackWhatALargeReplyTook) {
    resp_reader reader;
    reply_view reply;
    feed(reader, "$5000000\r\n" + std::string(5'000'000, 'x') + "\r\n:1");
    ASSERT_EQ(reader.next(reply), resp_status::reply);
    EXPECT_GT(reader.capacity(), 5'000'000u);
    feed(reader, "2\r\n");
    EXPECT_LE(reader.capacity(), resp_buffer::kept_capacity);
    ASSERT_EQ(reader.next(reply), resp_status::reply);
    EXPECT_EQ(reply.integer(), 12);
}

}  // namespace
}  // namespace holdfast::redis::resp_buffer_test
