// The view of a reply.
#include "redis/resp/resp_reply.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::resp_reply_test {
namespace {

using testing::feed;

// A reader with exactly one reply, and the view of it.
struct one_reply {
    explicit one_reply(std::string_view bytes) {
        feed(reader, bytes);
        EXPECT_EQ(reader.next(view), resp_status::reply);
    }
    resp_reader reader;
    reply_view view;
};

TEST(Reply, ReachesIntoNestedMaps) {
    const one_reply r{"%2\r\n$5\r\nslots\r\n%1\r\n:7\r\n*2\r\n+a\r\n+b\r\n$4\r\nname\r\n$1\r\nx\r\n"};
    ASSERT_EQ(r.view.type(), resp_type::map);
    ASSERT_EQ(r.view.size(), 4u);
    EXPECT_EQ(r.view[0].text(), "slots");
    EXPECT_EQ(r.view[1][0].integer(), 7);
    EXPECT_EQ(r.view[1][1][1].text(), "b");
    EXPECT_EQ(r.view[2].text(), "name");
    EXPECT_EQ(r.view[3].text(), "x");
}

TEST(Reply, IteratesOverDirectChildrenOnly) {
    const one_reply r{"*4\r\n*2\r\n:1\r\n:2\r\n:3\r\n*0\r\n*1\r\n*1\r\n:4\r\n"};
    std::vector<std::size_t> sizes;
    for (const reply_view child : r.view) sizes.push_back(child.size());
    EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 0, 0, 1}));
    for (const reply_view nothing : r.view[2]) ADD_FAILURE() << static_cast<int>(nothing.type());
    for (const reply_view nothing : r.view[1]) ADD_FAILURE() << static_cast<int>(nothing.type());
}

TEST(Reply, IndexAgreesWithIteration) {
    for (const char* bytes : {"*3\r\n:1\r\n:2\r\n:3\r\n", "*3\r\n*1\r\n:9\r\n:2\r\n%1\r\n:1\r\n:2\r\n",
                              "*1\r\n*1\r\n*2\r\n:1\r\n:2\r\n", "*2\r\n*0\r\n*0\r\n"}) {
        const one_reply r{bytes};
        std::size_t i = 0;
        for (const reply_view child : r.view)
            EXPECT_EQ(testing::tree_of(child), testing::tree_of(r.view[i++])) << bytes;
        EXPECT_EQ(i, r.view.size());
    }
}

TEST(Reply, TellsErrorsNullsAndAggregatesApart) {
    EXPECT_TRUE(one_reply{"-ERR\r\n"}.view.is_error());
    EXPECT_TRUE(one_reply{"!3\r\nERR\r\n"}.view.is_error());
    EXPECT_FALSE(one_reply{"+ERR\r\n"}.view.is_error());
    EXPECT_TRUE(one_reply{"$-1\r\n"}.view.is_null());
    EXPECT_FALSE(one_reply{"$0\r\n\r\n"}.view.is_null());
    for (const char* aggregate : {"*0\r\n", "%0\r\n", "~0\r\n", ">0\r\n"}) {
        EXPECT_TRUE(one_reply{aggregate}.view.is_aggregate()) << aggregate;
    }
    EXPECT_FALSE(one_reply{"*-1\r\n"}.view.is_aggregate());
}

TEST(Reply, ToIntegerTakesIntegersAndWholeDecimalStrings) {
    EXPECT_EQ(one_reply{":-5\r\n"}.view.to_integer(), -5);
    EXPECT_EQ(one_reply{"$2\r\n42\r\n"}.view.to_integer(), 42);
    EXPECT_EQ(one_reply{"+-7\r\n"}.view.to_integer(), -7);
    EXPECT_EQ(one_reply{"$16\r\n1700000000000000\r\n"}.view.to_integer(), 1700000000000000);
    EXPECT_EQ(one_reply{"$18\r\n999999999999999999\r\n"}.view.to_integer(), 999999999999999999);
    EXPECT_EQ(one_reply{"$19\r\n9223372036854775807\r\n"}.view.to_integer(), 9223372036854775807);
    EXPECT_EQ(one_reply{"$20\r\n-9223372036854775808\r\n"}.view.to_integer(), INT64_MIN);
    EXPECT_EQ(one_reply{"$20\r\n00000000000000000042\r\n"}.view.to_integer(), 42);
    for (const char* other : {"$3\r\n42 \r\n", "$3\r\n 42\r\n", "$0\r\n\r\n", "$3\r\n4.2\r\n", "$-1\r\n", "-5\r\n",
                              "$18\r\n12345678901234567x\r\n", "$19\r\n9223372036854775808\r\n", "*1\r\n:5\r\n",
                              "$1\r\n-\r\n", "$2\r\n+5\r\n"}) {
        EXPECT_EQ(one_reply{other}.view.to_integer(), std::nullopt) << other;
    }
}

TEST(Reply, OfAnotherTypeHasNoText) {
    EXPECT_EQ(one_reply{"*1\r\n:1\r\n"}.view.text(), "");
    EXPECT_EQ(one_reply{":1\r\n"}.view.text(), "");
    EXPECT_EQ(one_reply{"_\r\n"}.view.text(), "");
}

TEST(ReplyDeathTest, RefusesAnIndexOutOfRange) {
    const one_reply r{"*2\r\n:1\r\n:2\r\n"};
    EXPECT_DEATH(static_cast<void>(r.view[2]), "i < size");
    EXPECT_DEATH(static_cast<void>(r.view[0][0]), "i < size");
}

TEST(ReplyDeathTest, RefusesTheIntegerOfAString) {
    const one_reply r{"$1\r\n5\r\n"};
    EXPECT_DEATH(static_cast<void>(r.view.integer()), "integer");
    EXPECT_DEATH(static_cast<void>(reply_view{}.type()), "nullptr");
}

}  // namespace
}  // namespace holdfast::redis::resp_reply_test
