// The table of error codes is complete: every enumerator of errc has one row, spelled as in the public header.
#include "base/errc_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace holdfast::errc_table_test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<std::string> enumerators() {
    const auto root = std::filesystem::path(__FILE__).parent_path() / "../../..";
    std::ifstream file(root / "include/holdfast/errors.hpp");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto begin = text.find("enum class errc {");
    const std::string body = text.substr(begin, text.find("};", begin) - begin);
    const std::regex one("\n    ([a-z_]+)( = 1)?,");
    std::vector<std::string> names;
    for (std::sregex_iterator it(body.begin(), body.end(), one), end; it != end; ++it) names.push_back((*it)[1]);
    return names;
}

TEST(ErrcTable, HasARowForEveryCodeInTheOrderOfTheHeader) {
    std::vector<std::string> names;
    for (const errc_row& row : errc_table()) names.emplace_back(row.name);
    EXPECT_THAT(names, ElementsAreArray(enumerators()));
}

TEST(ErrcTable, EveryCodeHasANameAndAMessageOfItsOwn) {
    std::set<std::string> names, messages;
    for (const errc_row& row : errc_table()) {
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_TRUE(messages.insert(row.message).second) << row.name;
        EXPECT_FALSE(std::string(row.message).empty()) << row.name;
        EXPECT_EQ(make_error_code(row.code).message(), row.message);
        EXPECT_EQ(find_errc(row.code), &row);
    }
}

TEST(ErrcTable, ANumberThatIsNoCodeHasNoRow) {
    const auto beyond = static_cast<errc>(errc_table().size() + 1);
    EXPECT_EQ(find_errc(errc{}), nullptr);
    EXPECT_EQ(find_errc(beyond), nullptr);
    EXPECT_THAT(make_error_code(beyond).message(), HasSubstr("unknown"));
    EXPECT_FALSE(may_pass(beyond) || is_permanent(beyond) || is_plain_no(beyond));
}

TEST(ErrcTable, PropertiesDoNotContradictEachOther) {
    for (const errc_row& row : errc_table()) {
        EXPECT_FALSE(may_pass(row.code) && is_permanent(row.code)) << row.name;
        EXPECT_FALSE(is_of_the_lock(row.code) && is_silence(row.code)) << row.name;
        EXPECT_FALSE(is_silence(row.code) && is_permanent(row.code)) << row.name;
        EXPECT_FALSE(is_plain_no(row.code) && (may_pass(row.code) || is_permanent(row.code))) << row.name;
    }
}

}  // namespace
}  // namespace holdfast::errc_table_test
