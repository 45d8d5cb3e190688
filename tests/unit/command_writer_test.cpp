#include "redis/command_writer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

#include "unit/resp_support.hpp"

namespace holdfast::redis {
namespace {

TEST(CommandWriter, WritesAnArrayOfStrings) {
    std::string out;
    append_command(out, {"SET", "stock:1001", ""});
    EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$10\r\nstock:1001\r\n$0\r\n\r\n");
}

TEST(CommandWriter, AppendsBehindWhatIsThere) {
    std::string out;
    append_command(out, {"PING"});
    command_writer{out, 2}.arg("ECHO").arg("x");
    EXPECT_EQ(out, "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n");
    EXPECT_EQ(encoded_command({"PING"}) + encoded_command({"ECHO", "x"}), out);
}

TEST(CommandWriter, WritesIntegersInDecimal) {
    std::string out;
    command_writer{out, 4}.arg("X").arg(0).arg(INT64_MIN).arg(INT64_MAX);
    EXPECT_EQ(out, "*4\r\n$1\r\nX\r\n$1\r\n0\r\n$20\r\n-9223372036854775808\r\n$19\r\n9223372036854775807\r\n");
}

TEST(CommandWriter, CarriesAnyBytes) {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    std::string out;
    append_command(out, {"\r\n", every_byte, "*1\r\n"});
    EXPECT_EQ(testing::parse_one(out),
              testing::array({testing::bulk("\r\n"), testing::bulk(every_byte), testing::bulk("*1\r\n")}));
}

// What is gathered before it is appended must show nowhere, whatever fits into it.
TEST(CommandWriter, WritesArgumentsOfEveryLengthAlike) {
    for (std::size_t size = 0; size < 1200; ++size) {
        const std::string text(size, 'x');
        const std::string body = "$" + std::to_string(size) + "\r\n" + text + "\r\n";
        const std::string small = "$3\r\nGET\r\n";
        std::string out = "before";
        command_writer{out, 3, command_writer::part::rest}.arg("GET").arg(text).arg("GET");
        ASSERT_EQ(out, "before" + small + body + small) << size;
        out.clear();
        const std::string_view pieces[] = {std::string_view(text).substr(0, size / 3), "",
                                           std::string_view(text).substr(size / 3)};
        command_writer{out, 3}.arg(text).arg("GET").arg(pieces);
        ASSERT_EQ(out, "*3\r\n" + body + small + body) << size;
    }
}

TEST(CommandWriter, MayBeLeftByAnException) {
    std::string out;
    const auto interrupted = [&] {
        command_writer writer{out, 2};
        writer.arg("GET");
        throw std::runtime_error{"no key"};
    };
    EXPECT_THROW(interrupted(), std::runtime_error);
}

TEST(CommandWriterDeathTest, RefusesTooFewAndTooManyArguments) {
    std::string out;
    EXPECT_DEATH(command_writer(out, 2).arg("GET"), "missing_");
    EXPECT_DEATH(command_writer(out, 1).arg("GET").arg("k"), "missing_");
    EXPECT_DEATH(append_command(out, {}), "argument_count");
}

}  // namespace
}  // namespace holdfast::redis
