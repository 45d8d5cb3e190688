// Durations are read exactly or refused.
#include "redis/url/duration.hpp"

#include <gtest/gtest.h>

#include <random>

namespace holdfast::redis::duration_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

TEST(Duration, ReadsEveryUnit) {
    EXPECT_EQ(parse_duration("500ms"), 500ms);
    EXPECT_EQ(parse_duration("2s"), 2s);
    EXPECT_EQ(parse_duration("1m"), 1min);
    EXPECT_EQ(parse_duration("3h"), 3h);
    EXPECT_EQ(parse_duration("0s"), 0ms);
    EXPECT_EQ(parse_duration("007s"), 7s);
}

TEST(Duration, ReadsFractionsExactly) {
    EXPECT_EQ(parse_duration("1.5s"), 1500ms);
    EXPECT_EQ(parse_duration("1.1s"), 1100ms);
    EXPECT_EQ(parse_duration("0.001s"), 1ms);
    EXPECT_EQ(parse_duration("0.5m"), 30s);
    EXPECT_EQ(parse_duration("0.25h"), 15min);
    EXPECT_EQ(parse_duration("1.0ms"), 1ms);
    EXPECT_EQ(parse_duration("1.50000000000000000000000s"), 1500ms);
    EXPECT_EQ(parse_duration("0.0000025h"), 9ms);
}

TEST(Duration, RefusesWhatIsNotAWholeNumberOfMilliseconds) {
    for (const char* text : {"0.5ms", "0.0001s", "1.0005s", "0.0000001h", "0.00000000001h"}) {
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
    }
}

TEST(Duration, RefusesJunk) {
    for (const char* text :
         {"",    "5",   "1.5", "s",   "ms",    ".5s",  "1.s",  "-1s",  "+1s",   " 1s",    "1s ", "1 s", "1S",
          "1MS", "1us", "1d",  "1s1", "1m30s", "1e3s", "0x1s", "1,5s", "1..5s", "1.5.5s", "inf", "nans"}) {
        EXPECT_EQ(parse_duration(text), std::nullopt) << text;
    }
    EXPECT_EQ(parse_duration(std::string_view("1s\0", 3)), std::nullopt);
}

TEST(Duration, RefusesWhatDoesNotFitAndTakesTheLargestThatDoes) {
    EXPECT_EQ(parse_duration("9223372036854775807ms"), milliseconds::max());
    EXPECT_EQ(parse_duration("9223372036854775.807s"), milliseconds::max());
    EXPECT_EQ(parse_duration("9223372036854775808ms"), std::nullopt);
    EXPECT_EQ(parse_duration("9223372036854775.808s"), std::nullopt);
    EXPECT_EQ(parse_duration("9223372036854775807h"), std::nullopt);
    EXPECT_EQ(parse_duration("99999999999999999999999s"), std::nullopt);
}

TEST(Duration, FormatsInTheShortestForm) {
    EXPECT_EQ(format_duration(0ms), "0ms");
    EXPECT_EQ(format_duration(999ms), "999ms");
    EXPECT_EQ(format_duration(1s), "1s");
    EXPECT_EQ(format_duration(1500ms), "1.5s");
    EXPECT_EQ(format_duration(1050ms), "1.05s");
    EXPECT_EQ(format_duration(1001ms), "1.001s");
    EXPECT_EQ(format_duration(90s), "90s");
    EXPECT_EQ(format_duration(2min), "2m");
    EXPECT_EQ(format_duration(48h), "48h");
}

TEST(Duration, FormatsNegativeOnesToo) {
    EXPECT_EQ(format_duration(-5ms), "-5ms");
    EXPECT_EQ(format_duration(-1500ms), "-1.5s");
    EXPECT_EQ(format_duration(-2h), "-2h");
    EXPECT_EQ(format_duration(milliseconds::min()), "-9223372036854775.808s");
}

TEST(Duration, ReadsBackWhatItFormats) {
    std::mt19937_64 random(20);
    for (int i = 0; i < 20000; ++i) {
        const auto bits = std::uniform_int_distribution<int>(1, 63)(random);
        const milliseconds value{static_cast<std::int64_t>(random() >> bits)};
        ASSERT_EQ(parse_duration(format_duration(value)), value) << format_duration(value);
    }
    EXPECT_EQ(parse_duration(format_duration(milliseconds::max())), milliseconds::max());
}

}  // namespace
}  // namespace holdfast::redis::duration_test
