// Hostile and broken servers: every input ends in a refusal with a reason, never in a crash or a large allocation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::resp_limits_test {
namespace {

using testing::drain;
using testing::feed;
using ::testing::HasSubstr;
using testing::outcome;
using testing::parse;
using testing::parse_in_pieces;
using testing::tree;

// The fault. Checks that it is the same byte by byte.
resp_fault fault_of(std::string_view bytes, resp_limits limits = {}) {
    const outcome at_once = parse(bytes, limits);
    EXPECT_EQ(parse_in_pieces(
                  bytes, [] { return std::size_t{1}; }, limits),
              at_once)
        << bytes;
    return at_once.fault;
}

std::string fault_text_of(std::string_view bytes) {
    resp_reader reader;
    std::vector<tree> replies;
    feed(reader, bytes);
    EXPECT_EQ(drain(reader, replies), resp_status::broken);
    return reader.fault_text();
}

TEST(Hostile, UnknownTypesAreMalformed) {
    const std::string_view known = "+-:$*_,#!=(%~>|";
    for (int byte = 0; byte < 256; ++byte) {
        const char type = static_cast<char>(byte);
        if (known.find(type) != known.npos) continue;
        EXPECT_EQ(fault_of(std::string{type}), resp_fault::malformed) << byte;
    }
}

TEST(Hostile, LinesMustEndInCarriageReturnAndNewline) {
    for (const char* bytes : {"+OK\n", "+O\rK\r\n", "+OK\r\r\n", ":1\n", ":1\rx", "*1\n:1\r\n", "_\n", "$3\nabc\r\n"}) {
        EXPECT_EQ(fault_of(bytes), resp_fault::malformed) << bytes;
    }
}

TEST(Hostile, IntegersHaveOneForm) {
    for (const char* text : {"", "-", "+1", " 1", "1 ", "01", "-0", "00", "-01", "1.0", "0x1", "1a", "--1", "?",
                             "9223372036854775808", "-9223372036854775809", "99999999999999999999"}) {
        EXPECT_EQ(fault_of(":" + std::string{text} + "\r\n"), resp_fault::malformed) << text;
    }
}

TEST(Hostile, LengthsHaveOneForm) {
    for (const char type : std::string_view{"$*%~>|!="}) {
        for (const char* text :
             {"", "-2", "-0", "+1", " 1", "1 ", "01", "1x", "-", "9223372036854775808", "-9223372036854775808"}) {
            EXPECT_EQ(fault_of(type + std::string{text} + "\r\n"), resp_fault::malformed) << type << text;
        }
    }
}

TEST(Hostile, OnlyStringsAndArraysMayBeNullByLength) {
    for (const char type : std::string_view{"%~>|!="}) {
        EXPECT_EQ(fault_of(type + std::string{"-1\r\n"}), resp_fault::malformed) << type;
    }
}

TEST(Hostile, StreamedTypesAreRefusedByName) {
    for (const char type : std::string_view{"$*%~>|!="}) {
        EXPECT_THAT(fault_text_of(type + std::string{"?\r\n"}), HasSubstr("streamed")) << type;
        EXPECT_EQ(fault_of(type + std::string{"?\r\n"}), resp_fault::malformed) << type;
    }
}

TEST(Hostile, StringsMustEndWhereTheySaid) {
    for (const char* bytes :
         {"$3\r\nabcd\r\n", "$3\r\nabc\n\n", "$3\r\nabc\r\r", "$0\r\nab", "!1\r\nabc", "=4\r\ntxt:ab"}) {
        EXPECT_EQ(fault_of(bytes), resp_fault::malformed) << bytes;
    }
}

TEST(Hostile, ScalarsOfRespThreeAreChecked) {
    for (const char* bytes :
         {"_x\r\n",   "#\r\n",       "#T\r\n",        "#true\r\n",      "#1\r\n",    ",\r\n",
          ",-\r\n",   ",.5\r\n",     ",+1\r\n",       ",1.5x\r\n",      ", 1\r\n",   ",infinity\r\n",
          ",NAN\r\n", ",nan(1)\r\n", ",1e999\r\n",    ",0x1p3\r\n",     "(\r\n",     "(-\r\n",
          "(1.5\r\n", "(12a\r\n",    "=3\r\ntxt\r\n", "=4\r\ntxt-\r\n", "=0\r\n\r\n"}) {
        EXPECT_EQ(fault_of(bytes), resp_fault::malformed) << bytes;
    }
}

TEST(Hostile, RepliesBeforeTheFaultAreGivenOut) {
    const outcome result = parse(":1\r\n+OK\r\n*2\r\n:1\r\nHTTP/1.1 400 Bad Request\r\n:2\r\n");
    EXPECT_EQ(result.replies.size(), 2u);
    EXPECT_EQ(result.fault, resp_fault::malformed);
}

TEST(Hostile, ABrokenReaderStaysBrokenUntilReset) {
    resp_reader reader;
    std::vector<tree> replies;
    feed(reader, ":x\r\n:1\r\n");
    EXPECT_EQ(drain(reader, replies), resp_status::broken);
    feed(reader, ":1\r\n");
    EXPECT_EQ(drain(reader, replies), resp_status::broken);
    EXPECT_TRUE(replies.empty());
    EXPECT_FALSE(reader.fault_text().empty());
    reader.reset();
    EXPECT_EQ(reader.fault(), resp_fault::none);
    EXPECT_EQ(reader.fault_text(), "");
    feed(reader, ":1\r\n");
    EXPECT_EQ(drain(reader, replies), resp_status::need_more);
    EXPECT_EQ(replies.size(), 1u);
}

TEST(Hostile, TheFaultQuotesTheOffendingBytesPrintably) {
    EXPECT_EQ(fault_text_of(":1\r\n*1\r\n:1\x01\"\xff\r\n"), R"(bad integer, at ":1\x01\"\xff\r\n")");
    EXPECT_EQ(fault_text_of("$2\r\nabcde"), R"(string does not end where it said, at "cde")");
    EXPECT_EQ(fault_text_of("HTTP/1.1 400 Bad Request, and a lot more of it\r\n"),
              R"(unknown type of reply, at "HTTP/1.1 400 Bad Request, and a "...)");
}

TEST(Limits, DepthIsCountedFromTheOutermostAggregate) {
    const resp_limits limits{.max_depth = 3};
    EXPECT_EQ(fault_of("*1\r\n*1\r\n*1\r\n:1\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("*1\r\n*1\r\n*1\r\n*1\r\n", limits), resp_fault::too_deep);
    EXPECT_EQ(fault_of("*1\r\n%1\r\n~1\r\n*0\r\n", limits), resp_fault::too_deep);
    EXPECT_EQ(fault_of("*1\r\n*1\r\n*1\r\n|1\r\n", limits), resp_fault::too_deep);
    EXPECT_EQ(fault_of("*1\r\n*1\r\n*1\r\n*-1\r\n", limits), resp_fault::none);
}

TEST(Limits, EndlessNestingIsRefusedByDefault) {
    std::string bytes;
    for (int i = 0; i < 100'000; ++i) bytes += "*1\r\n";
    EXPECT_EQ(parse(bytes).fault, resp_fault::too_deep);
}

TEST(Limits, ElementsAreCountedOverTheWholeReply) {
    const resp_limits limits{.max_elements = 5};
    EXPECT_EQ(fault_of("*5\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("*6\r\n", limits), resp_fault::too_many_elements);
    EXPECT_EQ(fault_of("%2\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("%3\r\n", limits), resp_fault::too_many_elements);
    EXPECT_EQ(fault_of("*3\r\n*2\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("*3\r\n*3\r\n", limits), resp_fault::too_many_elements);
    EXPECT_EQ(fault_of("|2\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("|3\r\n", limits), resp_fault::too_many_elements);
}

TEST(Limits, TheCountStartsAnewWithEachReply) {
    const resp_limits limits{.max_elements = 2};
    EXPECT_EQ(fault_of("*2\r\n:1\r\n:1\r\n*2\r\n:1\r\n:1\r\n*2\r\n:1\r\n:1\r\n", limits), resp_fault::none);
}

TEST(Limits, EndlessAttributesAreRefused) {
    std::string bytes;
    for (int i = 0; i < 100; ++i) bytes += "|0\r\n";
    EXPECT_EQ(fault_of(bytes, {.max_elements = 99}), resp_fault::too_many_elements);
    EXPECT_EQ(fault_of(bytes, {.max_elements = 100}), resp_fault::none);
}

TEST(Limits, AnAnnouncementReservesNothing) {
    for (const char* bytes :
         {"*2147483648\r\n", "%9223372036854775807\r\n", "~4294967296\r\n", "|4611686018427387904\r\n"}) {
        EXPECT_EQ(fault_of(bytes), resp_fault::too_many_elements) << bytes;
    }
    resp_reader reader;
    std::vector<tree> replies;
    feed(reader, "*1000000\r\n$60000000\r\n");
    EXPECT_EQ(drain(reader, replies), resp_status::need_more);
    EXPECT_LE(reader.prepare(1).size(), std::size_t{64} << 10);
    EXPECT_LE(reader.capacity(), std::size_t{64} << 10);
}

TEST(Limits, LongStringsAreRefusedAtTheHeader) {
    const resp_limits limits{.max_bulk_bytes = 4};
    EXPECT_EQ(fault_of("$4\r\nabcd\r\n", limits), resp_fault::none);
    for (const char type : std::string_view{"$!="}) {
        EXPECT_EQ(fault_of(type + std::string{"5\r\n"}, limits), resp_fault::bulk_too_long) << type;
        EXPECT_EQ(fault_of(type + std::string{"9223372036854775807\r\n"}), resp_fault::bulk_too_long) << type;
    }
}

TEST(Limits, LongLinesAreRefusedBeforeTheyEnd) {
    const resp_limits limits{.max_line_bytes = 4};
    EXPECT_EQ(fault_of("+abcd\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("+abcde", limits), resp_fault::line_too_long);
    EXPECT_EQ(fault_of("+abcde\n", limits), resp_fault::line_too_long);
    EXPECT_EQ(fault_of(":12345\r\n", limits), resp_fault::line_too_long);
    EXPECT_EQ(parse("-" + std::string(70'000, 'x')).fault, resp_fault::line_too_long);
}

TEST(Limits, LongRepliesAreRefused) {
    const resp_limits limits{.max_reply_bytes = 16};
    EXPECT_EQ(fault_of("*2\r\n$3\r\nabc\r\n_\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("*2\r\n$3\r\nabc\r\n:1\r\n", limits), resp_fault::reply_too_long);
    EXPECT_EQ(fault_of("$9\r\n123456789\r\n", limits), resp_fault::none);
    EXPECT_EQ(fault_of("$10\r\n", limits), resp_fault::reply_too_long);
}

}  // namespace
}  // namespace holdfast::redis::resp_limits_test
