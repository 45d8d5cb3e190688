// Each type of reply is read correctly, wherever pieces end.
#include "redis/resp/resp_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::resp_reader_test {
namespace {

using namespace testing;  // the helpers, and so as not to name gtest's

static_assert(std::forward_iterator<reply_view::iterator>);

// Bytes of every type, nested and not, with attributes at every possible position.
const std::vector<std::string> corpus = {
    "+OK\r\n",
    "+\r\n",
    "-ERR no such thing\r\n",
    ":0\r\n",
    ":-9223372036854775808\r\n",
    ":9223372036854775807\r\n",
    "$0\r\n\r\n",
    "$11\r\nhello\r\nyou!\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*3\r\n:1\r\n$20\r\n01234567890123456789\r\n:1700000000000000\r\n",
    "_\r\n",
    ",3.25\r\n",
    ",-inf\r\n",
    "#t\r\n",
    "#f\r\n",
    "!10\r\nERR \r\nfull\r\n",
    "=8\r\ntxt:a\r\nb\r\n",
    "(-3492890328409238509324850943850943825024385\r\n",
    "%2\r\n+a\r\n%1\r\n+b\r\n*2\r\n:1\r\n_\r\n:2\r\n~1\r\n#t\r\n",
    "~2\r\n*0\r\n%0\r\n",
    ">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$2\r\n\r\n\r\n",
    "*3\r\n$-1\r\n*-1\r\n_\r\n",
    "|1\r\n+ttl\r\n:3600\r\n*2\r\n|1\r\n+a\r\n*1\r\n|0\r\n:1\r\n:1\r\n|0\r\n|1\r\n:1\r\n:2\r\n$1\r\nx\r\n",
};

std::string whole_corpus() {
    std::string all;
    for (const std::string& reply : corpus) all += reply;
    return all;
}

TEST(Reader, ReadsSimpleStrings) {
    EXPECT_EQ(parse_one("+OK\r\n"), leaf(resp_type::simple_string, "OK"));
    EXPECT_EQ(parse_one("+\r\n"), leaf(resp_type::simple_string, ""));
}

TEST(Reader, ReadsErrorsWithoutTheDash) {
    EXPECT_EQ(parse_one("-NOSCRIPT No matching script.\r\n"),
              leaf(resp_type::simple_error, "NOSCRIPT No matching script."));
    EXPECT_EQ(parse_one("!8\r\nERR a\r\nb\r\n"), leaf(resp_type::blob_error, "ERR a\r\nb"));
}

TEST(Reader, ReadsTheWholeRangeOfIntegers) {
    EXPECT_EQ(parse_one(":0\r\n"), number(0));
    EXPECT_EQ(parse_one(":-1\r\n"), number(-1));
    EXPECT_EQ(parse_one(":9223372036854775807\r\n"), number(INT64_MAX));
    EXPECT_EQ(parse_one(":-9223372036854775808\r\n"), number(INT64_MIN));
}

TEST(Reader, ReadsStringsThatContainLineEnds) {
    EXPECT_EQ(parse_one("$4\r\na\r\nb\r\n"), bulk_leaf("a\r\nb"));
    EXPECT_EQ(parse_one("$0\r\n\r\n"), bulk_leaf(""));
    EXPECT_EQ(parse_one(std::string_view{"$3\r\n\0\xff\n\r\n", 9}), bulk_leaf(std::string_view{"\0\xff\n", 3}));
}

TEST(Reader, ReadsAllThreeNulls) {
    EXPECT_EQ(parse_one("$-1\r\n"), null());
    EXPECT_EQ(parse_one("*-1\r\n"), null());
    EXPECT_EQ(parse_one("_\r\n"), null());
    EXPECT_EQ(parse_one("*3\r\n$-1\r\n*-1\r\n_\r\n"), array({null(), null(), null()}));
}

TEST(Reader, ReadsDoublesAsSent) {
    for (const char* text : {"3.25", "-0", "10", "1e+20", "1.5e-07", "13.36138933897018433", "inf", "-inf", "nan"}) {
        EXPECT_EQ(parse_one(std::string{","} + text + "\r\n"), leaf(resp_type::double_number, text));
    }
}

TEST(Reader, ReadsBooleans) {
    EXPECT_EQ(parse_one("#t\r\n"), boolean(1));
    EXPECT_EQ(parse_one("#f\r\n"), boolean(0));
}

TEST(Reader, ReadsVerbatimStringsWithoutTheirFormat) {
    EXPECT_EQ(parse_one("=9\r\ntxt:a\r\nbc\r\n"), leaf(resp_type::verbatim_string, "a\r\nbc"));
    EXPECT_EQ(parse_one("=4\r\nmkd:\r\n"), leaf(resp_type::verbatim_string, ""));
}

TEST(Reader, ReadsBigNumbers) {
    EXPECT_EQ(parse_one("(-34928903284092385093248509\r\n"),
              leaf(resp_type::big_number, "-34928903284092385093248509"));
}

TEST(Reader, ReadsAggregates) {
    EXPECT_EQ(parse_one("*2\r\n:1\r\n*1\r\n+x\r\n"), array({number(1), array({leaf(resp_type::simple_string, "x")})}));
    EXPECT_EQ(parse_one("%1\r\n$1\r\nk\r\n:7\r\n"), aggregate(resp_type::map, {bulk_leaf("k"), number(7)}));
    EXPECT_EQ(parse_one("~1\r\n:7\r\n"), aggregate(resp_type::set, {number(7)}));
    EXPECT_EQ(parse_one(">2\r\n$1\r\nk\r\n:7\r\n"), aggregate(resp_type::push, {bulk_leaf("k"), number(7)}));
}

TEST(Reader, ReadsEmptyAggregates) {
    EXPECT_EQ(parse_one("*0\r\n"), array({}));
    EXPECT_EQ(parse_one("%0\r\n"), aggregate(resp_type::map, {}));
    EXPECT_EQ(parse_one("*3\r\n*0\r\n~0\r\n%0\r\n"),
              array({array({}), aggregate(resp_type::set, {}), aggregate(resp_type::map, {})}));
}

TEST(Reader, DropsAttributesWhereverTheyOccur) {
    EXPECT_EQ(parse_one("|1\r\n+ttl\r\n:3600\r\n:1\r\n"), number(1));
    EXPECT_EQ(parse_one("*2\r\n|1\r\n+a\r\n%1\r\n+b\r\n+c\r\n:1\r\n|0\r\n|0\r\n:2\r\n"), array({number(1), number(2)}));
    EXPECT_EQ(parse_one("|1\r\n|1\r\n+deep\r\n:1\r\n+a\r\n*2\r\n:1\r\n:2\r\n$1\r\nx\r\n"), bulk_leaf("x"));
}

TEST(Reader, AnAttributeAfterTheLastElementBelongsToTheNextReply) {
    const outcome result = parse("*1\r\n:1\r\n|1\r\n+a\r\n+b\r\n:2\r\n");
    EXPECT_EQ(result.replies, (std::vector<tree>{array({number(1)}), number(2)}));
}

TEST(Reader, AnAttributeAloneIsNotAReply) {
    const outcome result = parse("|1\r\n+a\r\n+b\r\n");
    EXPECT_TRUE(result.replies.empty());
    EXPECT_EQ(result.fault, resp_fault::none);
}

TEST(Reader, ResumesAtEveryByteBoundary) {
    for (const std::string& bytes : corpus) {
        const outcome expected = parse(bytes);
        ASSERT_EQ(expected.replies.size(), 1u) << bytes;
        for (std::size_t split = 1; split < bytes.size(); ++split) {
            std::size_t pieces = 0;
            EXPECT_EQ(parse_in_pieces(bytes, [&] { return pieces++ == 0 ? split : bytes.size(); }), expected)
                << bytes << " split at " << split;
        }
    }
}

TEST(Reader, ReadsByteByByteWhatItReadsInOnePiece) {
    const std::string bytes = whole_corpus();
    const outcome expected = parse(bytes);
    ASSERT_EQ(expected.replies.size(), corpus.size());
    EXPECT_EQ(expected.left, 0u);
    for (std::size_t size = 1; size < 40; ++size) {
        EXPECT_EQ(parse_in_pieces(bytes, [&] { return size; }), expected) << "pieces of " << size;
    }
}

TEST(Reader, EveryProperPrefixNeedsMore) {
    for (const std::string& bytes : corpus) {
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const outcome result = parse(std::string_view{bytes}.substr(0, size));
            EXPECT_TRUE(result.replies.empty() && result.fault == resp_fault::none) << bytes << " cut at " << size;
            EXPECT_EQ(result.left, size);
        }
    }
}

TEST(Reader, NeedMoreLeavesTheCallersViewAlone) {
    resp_reader reader;
    feed(reader, ":5\r\n:6");
    reply_view reply;
    ASSERT_EQ(reader.next(reply), resp_status::reply);
    EXPECT_EQ(reader.buffered(), 2u);
    EXPECT_EQ(reply.integer(), 5);
    EXPECT_EQ(reader.next(reply), resp_status::need_more);
    EXPECT_EQ(reader.next(reply), resp_status::need_more);
}

TEST(Reader, ResetForgetsAHalfReadReply) {
    for (const std::string& bytes : corpus) {
        for (std::size_t size = 0; size <= bytes.size(); ++size) {
            resp_reader reader;
            std::vector<tree> replies;
            feed(reader, std::string_view{bytes}.substr(0, size));
            drain(reader, replies);
            reader.reset();
            replies.clear();
            EXPECT_EQ(reader.buffered(), 0u);
            feed(reader, "*1\r\n:42\r\n");
            drain(reader, replies);
            EXPECT_EQ(replies, std::vector<tree>{array({number(42)})});
        }
    }
}

// If each piece were parsed from the start, this would take 10^12 steps.
TEST(Reader, ALargeReplyMayComeByteByByte) {
    constexpr std::size_t count = 300'000;
    std::string bytes = "*" + std::to_string(count) + "\r\n";
    for (std::size_t i = 0; i < count; ++i) bytes += ":7\r\n";
    resp_reader reader;
    reply_view reply;
    resp_status status = resp_status::need_more;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        ASSERT_EQ(status, resp_status::need_more);
        feed(reader, {&bytes[i], 1});
        status = reader.next(reply);
    }
    ASSERT_EQ(status, resp_status::reply);
    EXPECT_EQ(reply.size(), count);
    EXPECT_EQ(reply[count - 1].integer(), 7);
}

TEST(Reader, ALongStringMayComeInSmallPieces) {
    const std::string body(10'000'000, 'x');
    const std::string bytes = "$10000000\r\n" + body + "\r\n";
    const outcome result = parse_in_pieces(bytes, [] { return std::size_t{4096}; });
    ASSERT_EQ(result.replies.size(), 1u);
    EXPECT_EQ(result.replies.front().text, body);
}

}  // namespace
}  // namespace holdfast::redis::resp_reader_test
