#include "redis/session/command_writer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "unit/redis/resp/resp_support.hpp"

namespace holdfast::redis::command_writer_test {
namespace {

TEST(CommandWriter, WritesAnArrayOfStrings) {
    std::string out;
    append_command(out, {"SET", "stock:1001", ""});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$10\r\nstock:1001\r\n$0\r\n\r\n");
}

TEST(CommandWriter, AppendsBehindWhatIsThere) {
    std::string out;
    append_command(out, {"PING"});
    append_command(out, {"ECHO", "x"});
    EXPECT_EQ(out, "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n");
    EXPECT_EQ(encoded_command({"PING"}) + encoded_command({"ECHO", "x"}), out);
}

std::string written(std::int64_t value) {
    std::string out;
    append_arguments(out, std::array{argument::number(value)});
    return out;
}

TEST(CommandWriter, WritesNumbersInDecimal) {
    const auto expected = [](const std::string& digits) {
        return "$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n";
    };
    // Around every power of ten and of two, where the number of digits changes.
    std::vector<std::int64_t> values{0, INT64_MAX, INT64_MIN};
    for (std::int64_t power = 1;; power *= 10) {
        values.insert(values.end(), {power - 1, power, power + 1, power * 5});
        if (power > INT64_MAX / 100) break;
    }
    for (unsigned bit = 0; bit < 63; ++bit)
        values.insert(values.end(), {(std::int64_t{1} << bit) - 1, std::int64_t{1} << bit});
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) values.push_back(static_cast<std::int64_t>(random() >> random() % 64));
    for (const std::int64_t value : values) {
        ASSERT_EQ(written(value), expected(std::to_string(value)));
        if (value == INT64_MIN) continue;
        ASSERT_EQ(written(-value), expected(std::to_string(-value)));
    }
}

TEST(CommandWriter, CarriesAnyBytes) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    std::string out;
    append_command(out, {"\r\n", every_byte, "*1\r\n"});
    EXPECT_EQ(testing::parse_one(out), testing::array({testing::bulk_leaf("\r\n"), testing::bulk_leaf(every_byte),
                                                       testing::bulk_leaf("*1\r\n")}));
}

// The length of an argument makes no difference.
TEST(CommandWriter, WritesArgumentsOfEveryLengthAlike) {
    for (std::size_t size = 0; size < 1200; ++size) {
        std::string text;
        for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
        const std::string_view whole = text;
        const std::string body = "$" + std::to_string(size) + "\r\n" + text + "\r\n";
        const std::string small = "$3\r\nGET\r\n";
        std::string out = "before";
        append_arguments(out, std::array<argument, 3>{"GET", text, "GET"});
        ASSERT_EQ(out, "before" + small + body + small) << size;
        out.clear();
        append_command(out, {text, "GET", {whole.substr(0, size / 3), whole.substr(size / 3)}});
        ASSERT_EQ(out, "*3\r\n" + body + small + body) << size;
        out.clear();
        append_arguments(out, std::array<argument, 2>{argument{'{', text, "}:queue"}, "GET"});
        ASSERT_EQ(out, "$" + std::to_string(size + 8) + "\r\n{" + text + "}:queue\r\n" + small) << size;
    }
}

TEST(CommandWriter, WritesManyArguments) {
    std::string expected = "*250\r\n";
    std::vector<argument> all;
    for (int i = 0; i < 250; ++i) {
        all.push_back(argument::number(1'000'000'000 + i));
        expected += "$10\r\n" + std::to_string(1'000'000'000 + i) + "\r\n";
    }
    std::string out;
    append_command(out, all);
    EXPECT_EQ(out, expected);
}

TEST(CommandWriter, WritesABeginningThatOthersEnd) {
    std::string out;
    append_head(out, 3, {"EVALSHA", "abc"});
    append_arguments(out, std::array{argument::number(0)});
    EXPECT_EQ(out, encoded_command({"EVALSHA", "abc", "0"}));
}

TEST(CommandWriterDeathTest, RefusesACommandOfNothing) {
    std::string out;
    EXPECT_DEATH(append_command(out, std::span<const argument>()), "empty");
    EXPECT_DEATH(append_head(out, 1, {"EVALSHA", "abc"}), "argument_count");
}

}  // namespace
}  // namespace holdfast::redis::command_writer_test
