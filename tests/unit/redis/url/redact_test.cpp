// A URL in a message must not show its password, also if the URL is malformed.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis/url/server_url.hpp"
#include "unit/redis/url/url_refusal.hpp"

namespace holdfast::redis::redact_test {
namespace {

TEST(Redact, KeepsWhatIsNotSecret) {
    for (const char* url : {"redis://", "redis://h:6379/2?timeout=5s&db=1", "rediss://[::1]:7000",
                            "unix:///run/a:b.sock?db=1", "localhost", "localhost:6379", "/run/redis.sock", "",
                            "redis://h?password_file=/a&password_env=B", "rediss://h?client_name=a%40b&ca_file=/a",
                            "redis+sentinel://a:26379,b,[::1]:7,c:1/mine/2?sentinel_password_file=/a&sentinel_user=b",
                            "redis+cluster://a:7001,b,[::1]:7,c:1/1?timeout=5s"}) {
        EXPECT_EQ(redact(url), url);
    }
}

TEST(Redact, HidesUserAndPassword) {
    EXPECT_EQ(redact("redis://user:pw@h:1/2?db=3"), "redis://***@h:1/2?db=3");
    EXPECT_EQ(redact("redis://pw@h"), "redis://***@h");
    EXPECT_EQ(redact("unix://:pw@/run/x"), "unix://***@/run/x");
    EXPECT_EQ(redact("redis://:a@b/c?d@h"), "redis://***@h");
    EXPECT_EQ(redact("u:pw@h"), "***@h");
    EXPECT_EQ(redact("redis://:pw%40h/1"), "redis://***@h/1");
}

TEST(Redact, HidesWhatFollowsAColonAndIsNoPort) {
    EXPECT_EQ(redact("redis://user:pw/x?y"), "redis://user:***");
    EXPECT_EQ(redact("redis://:123"), "redis://***");
    EXPECT_EQ(redact("redis://h:123456"), "redis://h:***");
    EXPECT_EQ(redact("redis://u:p@h:pw"), "redis://***@h:***");
    EXPECT_EQ(redact("redis+sentinel://a,b:1,u:pw,c/m"), "redis+sentinel://a,b:1,u:***");
    EXPECT_EQ(redact("redis+sentinel://u:p@a,b:1,c:pw/m"), "redis+sentinel://***@a,b:1,c:***");
    EXPECT_EQ(redact("REDISS+CLUSTER://u:p@a,b:1,c:pw/m"), "REDISS+CLUSTER://***@a,b:1,c:***");
    EXPECT_EQ(redact("redis://a,b:1"), "redis://a,b:1");
}

TEST(Redact, HidesOptionsThatSoundLikePasswords) {
    EXPECT_EQ(redact("redis://h?db=1&password=pw"), "redis://h?db=1&password=***");
    EXPECT_EQ(redact("redis://h?Auth_Token=a&b"), "redis://h?Auth_Token=***");
    EXPECT_EQ(redact("redis://h?password:pw"), "redis://h?***");
    EXPECT_EQ(redact("redis://u:1?password=pw@h"), "redis://***");
}

TEST(Redact, HidesTheValuesOfOptionsThatNobodyKnows) {
    EXPECT_EQ(redact("redis://h?foo=pw"), "redis://h?foo=***");
    EXPECT_EQ(redact("redis://h?db=1&foo=a&timeout=5s"), "redis://h?db=1&foo=***");
    EXPECT_EQ(redact("redis://h?pw"), "redis://h?***");
    EXPECT_EQ(redact("redis://h?db=1&f%6Fo=pw"), "redis://h?db=1&***");
    EXPECT_EQ(redact("unix:///run/s?foo=pw"), "unix:///run/s?foo=***");
    for (const char* url : {"redis://h?foo=hunter2", "redis://h?tiemout=hunter2", "redis://h?hunter2"}) {
        EXPECT_EQ(refusal(url).find("hunter2"), std::string::npos) << url;
        EXPECT_NE(refusal(url).find("unknown option"), std::string::npos) << url;
    }
}

TEST(Redact, ReplacesControlCharacters) {
    EXPECT_EQ(redact("redis://h\n\x1b[31m\x7f"), "redis://h__[31m_");
    EXPECT_EQ(redact(std::string_view("a\0b", 3)), "a_b");
}

// Random texts of separators of URLs and letters.
class random_text {
public:
    explicit random_text(std::uint64_t seed) : state_(seed) {}

    std::size_t below(std::size_t limit) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>(state_ >> 33) % limit;
    }

    std::string of(std::string_view alphabet, std::size_t size) {
        std::string text;
        while (text.size() < size) text.push_back(alphabet[below(alphabet.size())]);
        return text;
    }

private:
    std::uint64_t state_;
};

constexpr std::string_view nasty = "QZXJW@@//??##::&&==;%%[]40 \t+,,";

TEST(Redact, NeverLeaksThePasswordOfAnyUserInfo) {
    random_text random(1);
    for (int i = 0; i < 50000; ++i) {
        const std::string scheme =
            std::array{"redis://", "rediss://", "unix://",           "",
                       "redis:/",  "rdis://",   "redis+sentinel://", "redis+cluster://"}[random.below(8)];
        const std::string user = random.of(nasty, random.below(5));
        const std::string password = "K" + random.of(nasty, 3 + random.below(12)) + "K";
        const std::string tail =
            std::array{"host", "host:6379/1", "/run/s?db=2", "[::1]:7", "", "h:bad"}[random.below(6)];
        const std::string url = scheme + user + ":" + password + "@" + tail;
        const std::string shown = redact(url);
        ASSERT_EQ(shown.find('K'), std::string::npos) << url << " -> " << shown;
        for (const char letter : {'Q', 'Z', 'X', 'J', 'W'}) {
            ASSERT_EQ(shown.find(letter), std::string::npos) << url << " -> " << shown;
        }
        ASSERT_EQ(refusal(url).find('K'), std::string::npos) << url;
    }
}

TEST(Redact, IsIdempotent) {
    random_text random(2);
    for (int i = 0; i < 50000; ++i) {
        const std::string scheme =
            std::array{"redis://", "unix://", "", "://", "redis+sentinel://", "redis+cluster://"}[random.below(6)];
        std::string text = scheme + random.of(nasty, random.below(16));
        if (random.below(3) == 0) text += std::array{"?password=", "&pass", "://", "%40"}[random.below(4)];
        text += random.of(nasty, random.below(12));
        const std::string once = redact(text);
        ASSERT_EQ(redact(once), once) << text;
    }
}

}  // namespace
}  // namespace holdfast::redis::redact_test
