// The SHA1 that the build computes is the name by which EVALSHA finds the script.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/redis_server.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing::sha_test {
namespace {

std::vector<wire::script> scripts() {
    std::vector<wire::script> both(wire::all().begin(), wire::all().end());
    both.insert(both.end(), wire::tools().begin(), wire::tools().end());
    return both;
}

TEST(Scripts, AreKnownToAServerByTheEmbeddedSha) {
    redis_server server;
    ASSERT_FALSE(wire::all().empty());
    ASSERT_FALSE(wire::tools().empty());
    for (const auto& script : scripts()) {
        const redis_reply loaded = server.call({"SCRIPT", "LOAD", std::string{script.text}});
        EXPECT_EQ(loaded.text, script.sha1) << script.name;
    }
}

TEST(Scripts, AreSortedAndFoundByName) {
    for (const auto list : {wire::all(), wire::tools()}) {
        EXPECT_TRUE(std::ranges::is_sorted(list, {}, &wire::script::name));
        for (const auto& script : list) EXPECT_EQ(&wire::find(script.name), &script);
    }
}

TEST(Scripts, HaveTheirIncludesPutIn) {
    for (const auto& script : scripts()) {
        EXPECT_EQ(script.text.find("--@include"), std::string_view::npos) << script.name;
        EXPECT_EQ(script.text.find("--@paste"), std::string_view::npos) << script.name;
    }
}

}  // namespace
}  // namespace holdfast::testing::sha_test
