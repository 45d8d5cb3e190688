// URLs of servers: what is accepted, what is refused with what message, and that no password is shown.
#include "redis/url/server_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "unit/redis/url/url_refusal.hpp"

namespace holdfast::redis::server_url_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServerUrl, DefaultsToTheLocalServer) {
    for (const char* url : {"redis://", "redis:///", "redis://127.0.0.1", "redis://127.0.0.1:6379/0", "REDIS://"}) {
        const server_settings settings = parse_url(url);
        EXPECT_EQ(settings.kind, transport::tcp) << url;
        EXPECT_EQ(settings.host, "127.0.0.1") << url;
        EXPECT_EQ(settings.port, 6379) << url;
        EXPECT_EQ(settings.database, 0u) << url;
        EXPECT_TRUE(settings.user.empty() && settings.password.empty()) << url;
        EXPECT_EQ(settings.connect_timeout, 2s);
        EXPECT_EQ(settings.max_reply_bytes, 67108864u);
    }
    EXPECT_EQ(parse_url("redis:///2").database, 2u);
    EXPECT_EQ(parse_url("redis://?db=3").database, 3u);
}

TEST(ServerUrl, ReadsEveryPart) {
    const server_settings settings = parse_url("rediss://alice:pa%40ss@cache-1.example:7000/12?client_name=worker");
    EXPECT_EQ(settings.kind, transport::tls);
    EXPECT_EQ(settings.user, "alice");
    EXPECT_EQ(settings.password.reveal(), "pa@ss");
    EXPECT_EQ(settings.host, "cache-1.example");
    EXPECT_EQ(settings.port, 7000);
    EXPECT_EQ(settings.database, 12u);
    EXPECT_EQ(settings.client_name, "worker");
}

TEST(ServerUrl, DecodesPercentEscapesAndKeepsPlus) {
    const server_settings settings = parse_url("redis://a%20b:1+1%3d2%00%3A@h?client_name=x%2fy+z");
    EXPECT_EQ(settings.user, "a b");
    EXPECT_EQ(settings.password.reveal(), std::string_view("1+1=2\0:", 7));
    EXPECT_EQ(settings.client_name, "x/y+z");
}

TEST(ServerUrl, KeepsColonsInThePassword) {
    EXPECT_EQ(parse_url("redis://u:a:b:c@h").password.reveal(), "a:b:c");
    EXPECT_EQ(parse_url("redis://:p@h").password.reveal(), "p");
    EXPECT_EQ(parse_url("redis://:p@h").user, "");
}

TEST(ServerUrl, RefusesBadPercentEscapes) {
    for (const char* url : {"redis://:hunter2%@h", "redis://:hunter2%4@h", "redis://:hunter2%zz@h",
                            "redis://%g0:hunter2@h", "unix:///a%2", "redis://h?client_name=%"}) {
        EXPECT_THAT(refusal(url), AllOf(HasSubstr("percent escape"), Not(HasSubstr("hunter2")))) << url;
    }
}

TEST(ServerUrl, ReadsIpv6InBrackets) {
    EXPECT_EQ(parse_url("redis://[::1]").host, "::1");
    EXPECT_EQ(parse_url("redis://:pw@[2001:db8::7]:7000/1").host, "2001:db8::7");
    EXPECT_EQ(parse_url("redis://:pw@[2001:db8::7]:7000/1").port, 7000);
    EXPECT_EQ(parse_url("redis://[fe80::1%25eth0]").host, "fe80::1%eth0");
    for (const char* url :
         {"redis://[::1", "redis://[]", "redis://[zz]", "redis://[::1]x", "redis://[::1]6379", "redis://[",
          "redis://[127.0.0.1]", "redis://[fe80::1%25]", "redis://::1", "redis://fe80::1:6379"}) {
        EXPECT_NE(refusal(url), "") << url;
    }
}

TEST(ServerUrl, ReadsUnixSockets) {
    const server_settings settings = parse_url("unix://bob:pw@/run/redis/a%20b.sock?db=4");
    EXPECT_EQ(settings.kind, transport::unix_socket);
    EXPECT_EQ(settings.path, "/run/redis/a b.sock");
    EXPECT_EQ(settings.user, "bob");
    EXPECT_EQ(settings.password.reveal(), "pw");
    EXPECT_EQ(settings.database, 4u);
    EXPECT_EQ(parse_url("unix:///redis.sock").path, "/redis.sock");
}

TEST(ServerUrl, RefusesUnixPathsThatTheSystemCannotUse) {
    EXPECT_EQ(refusal("unix:///" + std::string(106, 'x')), "");
    EXPECT_THAT(refusal("unix:///" + std::string(107, 'x')), HasSubstr("107"));
    EXPECT_THAT(refusal("unix://"), HasSubstr("missing"));
    EXPECT_THAT(refusal("unix:///"), HasSubstr("missing"));
    EXPECT_THAT(refusal("unix://run/redis.sock"), HasSubstr("unix:///"));
    EXPECT_THAT(refusal("unix:///a%00b"), HasSubstr("control character"));
}

TEST(ServerUrl, RefusesOtherSchemesAndSaysWhichThereAre) {
    for (const char* url :
         {"http://h", "valkey://h", "redis+unix:///x", "localhost:6379", "", "redis", "redis:/h", "://h"}) {
        EXPECT_THAT(refusal(url), AllOf(HasSubstr("redis://"), HasSubstr("rediss://"), HasSubstr("unix://"))) << url;
    }
}

TEST(ServerUrl, RefusesAUserInfoWithoutColonBecauseItMayBeAPassword) {
    EXPECT_THAT(refusal("redis://hunter2@h"), AllOf(HasSubstr("redis://:password@host"), Not(HasSubstr("hunter2"))));
    EXPECT_NE(refusal("redis://@h"), "");
}

TEST(ServerUrl, RefusesAnEmptyPasswordUnlessAUserIsNamed) {
    EXPECT_THAT(refusal("redis://:@h"), HasSubstr("empty"));
    const server_settings settings = parse_url("redis://guest:@h");
    EXPECT_EQ(settings.user, "guest");
    EXPECT_TRUE(settings.password.empty());
}

TEST(ServerUrl, RefusesPortsOutOfRange) {
    EXPECT_EQ(parse_url("redis://h:1").port, 1);
    EXPECT_EQ(parse_url("redis://h:65535").port, 65535);
    for (const char* url : {"redis://h:0", "redis://h:65536", "redis://h:", "redis://h:-1", "redis://h:+1",
                            "redis://h:6a", "redis://h:99999999999999999999"}) {
        EXPECT_THAT(refusal(url), HasSubstr("1 to 65535")) << url;
    }
    EXPECT_THAT(refusal("redis://:6379"), HasSubstr("no host"));
}

TEST(ServerUrl, RefusesHostsThatCannotBe) {
    for (const char* url : {"redis://a b", "redis://a%20b", "redis://h\n", "redis://a\\b", "redis://a]"}) {
        EXPECT_THAT(refusal(url), HasSubstr("host")) << url;
    }
    EXPECT_THAT(refusal("redis://a,b"), HasSubstr("--url once for each"));
    EXPECT_NE(refusal(std::string_view("redis://h\0", 10)), "");
    EXPECT_NE(refusal("redis://" + std::string(254, 'a')), "");
    EXPECT_EQ(refusal("redis://" + std::string(253, 'a')), "");
}

TEST(ServerUrl, RefusesDatabasesThatAreNotNumbers) {
    EXPECT_EQ(parse_url("redis://h/2147483647").database, 2147483647u);
    for (const char* url : {"redis://h/x", "redis://h/-1", "redis://h/1/2", "redis://h/2147483648", "redis://h?db=x",
                            "redis://h?db=-1", "redis://h/1x"}) {
        EXPECT_THAT(refusal(url), HasSubstr("number from 0 on")) << url;
    }
    EXPECT_THAT(refusal("redis://h/1?db=1"), HasSubstr("twice"));
}

TEST(ServerUrl, RefusesControlCharactersInNames) {
    EXPECT_THAT(refusal("redis://a%0Ab:pw@h"), HasSubstr("control character"));
    EXPECT_THAT(refusal("redis://h?user=a%00b"), HasSubstr("control character"));
    EXPECT_THAT(refusal("redis://h?client_name=a%00b"), HasSubstr("without spaces"));
    EXPECT_THAT(refusal("redis://h?client_name=a%20b"), HasSubstr("without spaces"));
    EXPECT_THAT(refusal("redis://h#x"), HasSubstr("%23"));
}

TEST(ServerUrl, ReadsDurations) {
    const server_settings settings =
        parse_url("redis://h?connect_timeout=1.5s&timeout=300ms&health_interval=1m&backoff_min=10ms&backoff_max=1h");
    EXPECT_EQ(settings.connect_timeout, 1500ms) << "the special one wins in any order";
    EXPECT_EQ(settings.request_timeout, 300ms);
    EXPECT_EQ(settings.health_interval, 1min);
    EXPECT_EQ(settings.backoff_min, 10ms);
    EXPECT_EQ(settings.backoff_max, 1h);
    EXPECT_EQ(parse_url("redis://h?request_timeout=7s").request_timeout, 7s);
}

TEST(ServerUrl, RefusesDurationsWithoutUnitOrOutOfRange) {
    EXPECT_THAT(refusal("redis://h?timeout=5"), AllOf(HasSubstr("5ms"), HasSubstr("5s")));
    EXPECT_THAT(refusal("redis://h?timeout=soon"), HasSubstr("1.5s"));
    EXPECT_THAT(refusal("redis://h?timeout=0s"), HasSubstr("at most 1h"));
    EXPECT_THAT(refusal("redis://h?timeout=61m"), HasSubstr("at most 1h"));
    EXPECT_THAT(refusal("redis://h?backoff_min=3s"),
                AllOf(HasSubstr("backoff_min (3s)"), HasSubstr("backoff_max (2s)")));
}

TEST(ServerUrl, RefusesUnknownOptionsAndSuggestsTheNearest) {
    EXPECT_THAT(refusal("redis://h?tiemout=1s"),
                AllOf(HasSubstr("\"tiemout\""), HasSubstr("mean timeout?"), HasSubstr("ca_file")));
    EXPECT_THAT(refusal("redis://h?clientname=x"), HasSubstr("mean client_name?"));
    EXPECT_THAT(refusal("redis://h?zebra=x"), AllOf(HasSubstr("\"zebra\""), Not(HasSubstr("mean"))));
    EXPECT_THAT(refusal("redis://h?Timeout=1s"), HasSubstr("mean timeout?"));
    EXPECT_THAT(refusal("redis://h?&db=1"), HasSubstr("unknown option"));
}

TEST(ServerUrl, RefusesOptionsThatAreRepeatedOrEmpty) {
    EXPECT_THAT(refusal("redis://h?db=1&db=1"), HasSubstr("twice"));
    EXPECT_THAT(refusal("redis://a:b@h?user=a"), HasSubstr("twice"));
    EXPECT_THAT(refusal("redis://h?db"), HasSubstr("no value"));
    EXPECT_THAT(refusal("redis://h?db="), HasSubstr("no value"));
}

TEST(ServerUrl, ReadsTlsOptions) {
    const server_settings settings =
        parse_url("rediss://h?verify=false&ca_file=/a&ca_dir=/b&cert=/c%20c&key=/d&server_name=redis.example");
    EXPECT_FALSE(settings.tls.verify);
    EXPECT_EQ(settings.tls.ca_file, "/a");
    EXPECT_EQ(settings.tls.ca_directory, "/b");
    EXPECT_EQ(settings.tls.certificate_file, "/c c");
    EXPECT_EQ(settings.tls.key_file, "/d");
    EXPECT_EQ(settings.tls.server_name, "redis.example");
    EXPECT_TRUE(parse_url("rediss://h").tls.verify);
    EXPECT_TRUE(parse_url("rediss://h?verify=true").tls.verify);
}

TEST(ServerUrl, RefusesTlsOptionsThatMakeNoSense) {
    EXPECT_THAT(refusal("redis://h?verify=false"), HasSubstr("rediss://"));
    EXPECT_THAT(refusal("unix:///s?ca_file=/a"), HasSubstr("rediss://"));
    EXPECT_THAT(refusal("rediss://h?verify=no"), HasSubstr("true nor false"));
    EXPECT_THAT(refusal("rediss://h?cert=/c"), HasSubstr("go together"));
    EXPECT_THAT(refusal("rediss://h?key=/c"), HasSubstr("go together"));
}

TEST(ServerUrl, ReadsThePasswordFromTheFirstLineOfAFile) {
    const std::string longest(65536, 'x');
    for (const auto& [content, password] :
         std::vector<std::pair<std::string, std::string>>{{"hunter2", "hunter2"},
                                                          {"hunter2\n", "hunter2"},
                                                          {"hunter2\r\n", "hunter2"},
                                                          {"hunter2\nmore\n", "hunter2"},
                                                          {" hunter2 \n", " hunter2 "},
                                                          {longest, longest},
                                                          {longest + "\n", longest}}) {
        const temporary_file file(content);
        const server_settings settings = parse_url("redis://h?user=alice&password_file=" + file.path());
        EXPECT_EQ(settings.password.reveal(), password);
        EXPECT_EQ(settings.user, "alice");
    }
}

TEST(ServerUrl, RefusesAPasswordFileThatHasNone) {
    EXPECT_THAT(refusal("redis://h?password_file=/no/such/file"),
                AllOf(HasSubstr("/no/such/file"), HasSubstr("opened")));
    for (const char* content : {"", "\n", "\r\n", "\nsecond line"}) {
        const temporary_file file(content);
        EXPECT_THAT(refusal("redis://h?password_file=" + file.path()), HasSubstr("empty"));
    }
    const temporary_file file(std::string(65537, 'x'));
    EXPECT_THAT(refusal("redis://h?password_file=" + file.path()), HasSubstr("too long"));
    EXPECT_NE(refusal("redis://h?password_file=/"), "");
    EXPECT_NE(refusal("redis://h?password_file=/dev/zero"), "");
}

TEST(ServerUrl, ReadsThePasswordFromTheEnvironment) {
    ASSERT_EQ(setenv("HOLDFAST_URL_TEST", "hunter2", 1), 0);
    EXPECT_EQ(parse_url("redis://h?password_env=HOLDFAST_URL_TEST").password.reveal(), "hunter2");
    EXPECT_EQ(parse_url("redis://bob:@h?password_env=HOLDFAST_URL_TEST").user, "bob");
    ASSERT_EQ(setenv("HOLDFAST_URL_TEST", "", 1), 0);
    EXPECT_THAT(refusal("redis://h?password_env=HOLDFAST_URL_TEST"), HasSubstr("empty"));
    ASSERT_EQ(unsetenv("HOLDFAST_URL_TEST"), 0);
    EXPECT_THAT(refusal("redis://h?password_env=HOLDFAST_URL_TEST"),
                AllOf(HasSubstr("HOLDFAST_URL_TEST"), HasSubstr("not set")));
}

TEST(ServerUrl, RefusesTwoPasswords) {
    ASSERT_EQ(setenv("HOLDFAST_URL_TEST", "other", 1), 0);
    const temporary_file file("third");
    for (const char* url :
         {"redis://:hunter2@h?password_env=HOLDFAST_URL_TEST", "redis://:hunter2@h?password_file=x"}) {
        EXPECT_THAT(refusal(url), AllOf(HasSubstr("another password"), Not(HasSubstr("hunter2")))) << url;
    }
    EXPECT_THAT(refusal("redis://h?password_env=HOLDFAST_URL_TEST&password_file=" + file.path()),
                HasSubstr("another password"));
    unsetenv("HOLDFAST_URL_TEST");
}

TEST(ServerUrl, DisplaysTheServerButNotThePassword) {
    EXPECT_EQ(parse_url("redis://").display(), "redis://127.0.0.1:6379/0");
    EXPECT_EQ(parse_url("redis://al%40ice:hunter2@h:7/3?client_name=x").display(), "redis://al%40ice@h:7/3");
    EXPECT_EQ(parse_url("rediss://:hunter2@[::1]").display(), "rediss://[::1]:6379/0");
    EXPECT_EQ(parse_url("rediss://[fe80::1%25eth0]").display(), "rediss://[fe80::1%25eth0]:6379/0");
    EXPECT_EQ(parse_url("unix://:hunter2@/run/r.sock").display(), "unix:///run/r.sock");
    EXPECT_EQ(parse_url("unix://u:hunter2@/run/r%3F.sock?db=2").display(), "unix://u@/run/r%3F.sock?db=2");
}

// Mistakes by which the grammar takes the password for something else.
TEST(ServerUrl, RefusesMangledUrlsWithoutShowingThePassword) {
    for (const char* url : {
             "redis://:hun@ter2@h",
             "redis://:hun/ter2@h",
             "redis://:hun?ter2@h",
             "redis://user:12?ter2@h",
             "redis://user:12/3?ter2=hun@h",
             "redis://:12?ter2@h",
             "redis://:hun#ter2@h",
             "redis://:hunter2",
             "redis://user:hunter2",
             "redis://:hunter2%40h",
             "redis:/:hunter2@h",
             "redis:hunter2@h",
             "user:hunter2@h:6379",
             "redis://h?password=hunter2",
             "redis://h?passwd=hun&ter2",
             "redis://h?password=hun@ter2",
             "redis://h?PASS%57ORD=hunter2",
             "redis://h?auth=hunter2&db=1",
             "rediss://h:hunter2@",
             "redis://u@h:hunter2",
             "redis://[hunter2]",
             "redis://u:p@[hunter2",
             "redis+sentinel://a,u:hunter2",
             "redis+sentinel://u:hunter2,b/m",
             "redis+sentinel://u:hun/ter2@a,b/m",
             "redis+sentinel://u:hun,ter2@a,b",
             "redis+sentinel://a/m?sentinel_password=hunter2",
         }) {
        const std::string message = refusal(url);
        EXPECT_NE(message, "") << url;
        EXPECT_THAT(message, AllOf(Not(HasSubstr("ter2")), Not(HasSubstr("hun")))) << url;
    }
}

TEST(ServerUrl, ReadsBackAnyPasswordThatIsEncoded) {
    std::mt19937 random(3);
    for (int i = 0; i < 20000; ++i) {
        std::string password;
        std::string encoded;
        for (std::size_t size = 1 + random() % 20; password.size() < size;) {
            const auto byte = static_cast<unsigned char>(random() % 256);
            password.push_back(static_cast<char>(byte));
            constexpr std::string_view hex = "0123456789abcdef";
            encoded.append({'%', hex[byte / 16], hex[byte % 16]});
        }
        ASSERT_EQ(parse_url("redis://:" + encoded + "@h").password.reveal(), password);
    }
}

}  // namespace
}  // namespace holdfast::redis::server_url_test
