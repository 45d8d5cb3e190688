// The reader reads what was written, for random replies in random pieces.
#include <gtest/gtest.h>

#include "unit/redis/resp/resp_random.hpp"

namespace holdfast::redis::resp_property_test {
namespace {

using namespace testing;

TEST(ReaderProperty, ReadsBackWhatWasWritten) {
    for (std::uint32_t seed = 1; seed <= 3'000; ++seed) {
        reply_generator random{seed, reply_generator::protocol::resp3};
        outcome expected;
        std::string bytes;
        for (std::size_t count = 1 + random.below(5); count > 0; --count) {
            expected.replies.push_back(random.reply());
            bytes += random.encode(expected.replies.back());
        }
        const std::size_t longest = 1 + random.below(bytes.size());
        ASSERT_EQ(parse_in_pieces(bytes, [&] { return 1 + random.below(longest); }), expected) << "seed " << seed;
    }
}

TEST(ReaderProperty, DamagedBytesGiveTheSameInPiecesAsAtOnce) {
    const resp_limits tight{
        .max_depth = 4, .max_elements = 12, .max_bulk_bytes = 100, .max_line_bytes = 18, .max_reply_bytes = 160};
    std::size_t faults = 0;
    for (std::uint32_t seed = 1; seed <= 6'000; ++seed) {
        reply_generator random{seed, reply_generator::protocol::resp3};
        std::string bytes;
        for (std::size_t count = 1 + random.below(4); count > 0; --count) bytes += random.encode(random.reply());
        bytes = random.damage(bytes);
        const resp_limits limits = random.below(2) == 0 ? tight : resp_limits{};
        const outcome at_once = parse(bytes, limits);
        if (at_once.fault != resp_fault::none) ++faults;
        ASSERT_EQ(parse_in_pieces(
                      bytes, [&] { return 1 + random.below(9); }, limits),
                  at_once)
            << "seed " << seed;
    }
    EXPECT_GT(faults, 1'000u) << "the damage should hurt";
    EXPECT_LT(faults, 5'900u) << "the damage should not always hurt";
}

}  // namespace
}  // namespace holdfast::redis::resp_property_test
