// The digest that the build computes is the name under which EVALSHA finds the script.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/redis_server.hpp"
#include "wire/scripts.hpp"

namespace holdfast::testing::sha_test {
namespace {

TEST(Scripts, AreKnownToAServerByTheEmbeddedSha) {
    redis_server server;
    ASSERT_FALSE(wire::all().empty());
    for (const auto& script : wire::all()) {
        const redis_reply loaded = server.call({"SCRIPT", "LOAD", std::string{script.text}});
        EXPECT_EQ(loaded.text, script.sha1) << script.name;
    }
}

TEST(Scripts, AreSortedAndFoundByName) {
    const auto all = wire::all();
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; }));
    for (const auto& script : all) EXPECT_EQ(&wire::find(script.name), &script);
}

TEST(Scripts, HaveTheirIncludesPutIn) {
    for (const auto& script : wire::all()) {
        EXPECT_EQ(script.text.find("--@include"), std::string_view::npos) << script.name;
    }
}

}  // namespace
}  // namespace holdfast::testing::sha_test
