// URLs that name members of a Cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "redis/url/server_url.hpp"
#include "unit/redis/url/url_refusal.hpp"

namespace holdfast::redis::cluster_url_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ClusterUrl, ReadsTheMembersToBeginWith) {
    const server_settings settings =
        parse_url("redis+cluster://bob:pw@a:7001,[::1],10.0.0.3:7003?client_name=me&timeout=1s");
    EXPECT_THAT(settings.seeds,
                ElementsAre(server_address{"a", 7001}, server_address{"::1", 6379}, server_address{"10.0.0.3", 7003}));
    EXPECT_EQ(settings.kind, transport::tcp);
    EXPECT_EQ(settings.user, "bob");
    EXPECT_EQ(settings.password.reveal(), "pw");
    EXPECT_EQ(settings.request_timeout, 1s);
    EXPECT_FALSE(settings.sentinels);
    EXPECT_TRUE(parse_url("redis://h").seeds.empty());
}

TEST(ClusterUrl, EveryMemberHasTheSameAccess) {
    const server_settings settings = parse_url("rediss+cluster://bob:pw@a,b?ca_file=/ca&client_name=me");
    const server_settings link = settings.for_member({"10.0.0.9", 7009});
    EXPECT_EQ(link.host, "10.0.0.9");
    EXPECT_EQ(link.port, 7009);
    EXPECT_EQ(link.kind, transport::tls);
    EXPECT_EQ(link.tls.ca_file, "/ca");
    EXPECT_EQ(link.user, "bob");
    EXPECT_EQ(link.password.reveal(), "pw");
    EXPECT_EQ(link.client_name, "me");
    EXPECT_EQ(link.use, link_use::cluster);
    EXPECT_EQ(link.display(), "rediss://bob@10.0.0.9:7009/0");
}

TEST(ClusterUrl, IsShownWithItsMembersAndWithoutThePassword) {
    const std::string shown = parse_url("REDISS+CLUSTER://bob:pw@a:7001,[::1]?verify=false").display();
    EXPECT_EQ(shown, "rediss+cluster://bob@a:7001,[::1]:6379");
    EXPECT_EQ(parse_url("redis+cluster://a/0").display(), "redis+cluster://a:6379");
    EXPECT_THAT(redact("redis+cluster://bob:hunter2@a,b"), Not(HasSubstr("hunter2")));
}

TEST(ClusterUrl, HasDatabase0Only) {
    EXPECT_EQ(parse_url("redis+cluster://a/").database, 0U);
    EXPECT_EQ(parse_url("redis+cluster://a?db=0").database, 0U);
    EXPECT_THAT(refusal("redis+cluster://a/1"), HasSubstr("one database only"));
    EXPECT_THAT(refusal("redis+cluster://a?db=1"), HasSubstr("one database only"));
    EXPECT_THAT(refusal("redis+cluster://a/0?db=0"), HasSubstr("given twice"));
}

TEST(ClusterUrl, APrimaryThatHangsIsNoticedWhileTheOthersReplaceIt) {
    EXPECT_EQ(parse_url("redis+cluster://a").health_interval, 1s);
    EXPECT_EQ(parse_url("redis+cluster://a?health_interval=3s").health_interval, 3s);
    EXPECT_EQ(parse_url("redis://a").health_interval, 5s);
}

TEST(ClusterUrl, RefusesMembersThatAreMissingOrNamedTwice) {
    for (const char* url : {"redis+cluster://", "redis+cluster://a,,b", "redis+cluster://a,", "redis+cluster://:pw@"}) {
        EXPECT_THAT(refusal(url), HasSubstr("host of a member is missing")) << url;
    }
    EXPECT_THAT(refusal("redis+cluster://a:1,b,a:1"), HasSubstr("named twice"));
    EXPECT_THAT(refusal("redis+cluster://a:0"), HasSubstr("port"));
    EXPECT_THAT(refusal("redis+cluster://a?sentinel_user=x"), HasSubstr("redis+sentinel://"));
    EXPECT_THAT(refusal("unix+cluster:///tmp/x"), HasSubstr("unknown scheme"));
}

}  // namespace
}  // namespace holdfast::redis::cluster_url_test
