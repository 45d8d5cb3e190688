// URLs with sentinels and the primary that they watch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "redis/url/server_url.hpp"
#include "unit/redis/url/url_refusal.hpp"

namespace holdfast::redis::sentinel_url_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SentinelUrl, ReadsSentinelsAndThePrimarysName) {
    const server_settings settings =
        parse_url("redis+sentinel://bob:pw@s-1:7001,[::1],10.0.0.3:7003/my%2Fprimary/4?client_name=me&timeout=1s");
    ASSERT_TRUE(settings.sentinels);
    EXPECT_EQ(settings.sentinels->primary, "my/primary");
    EXPECT_THAT(settings.sentinels->addresses, ElementsAre(server_address{"s-1", 7001}, server_address{"::1", 26379},
                                                           server_address{"10.0.0.3", 7003}));
    EXPECT_EQ(settings.kind, transport::tcp);
    EXPECT_EQ(settings.host, "") << "nobody knows yet";
    EXPECT_EQ(settings.database, 4U);
    EXPECT_EQ(settings.user, "bob");
    EXPECT_EQ(settings.password.reveal(), "pw");
    EXPECT_EQ(parse_url("redis+sentinel://h/m").database, 0U);
    EXPECT_EQ(parse_url("redis+sentinel://h/m/").database, 0U);
    EXPECT_EQ(parse_url("redis+sentinel://h/m?db=2").database, 2U);
}

TEST(SentinelUrl, TheSentinelsDoNotGetThePrimarysPassword) {
    ASSERT_EQ(setenv("HOLDFAST_URL_TEST", "hunter2", 1), 0);
    const server_settings settings = parse_url(
        "redis+sentinel://bob:pw@a,b:7/m/4?client_name=me&sentinel_user=ann&sentinel_password_env=HOLDFAST_URL_TEST");
    const server_settings link = settings.for_sentinel(settings.sentinels->addresses.at(1));
    EXPECT_EQ(link.host, "b");
    EXPECT_EQ(link.port, 7);
    EXPECT_EQ(link.user, "ann");
    EXPECT_EQ(link.password.reveal(), "hunter2");
    EXPECT_EQ(link.database, 0U);
    EXPECT_EQ(link.client_name, "me");
    EXPECT_FALSE(link.sentinels);
    EXPECT_EQ(link.display(), "redis://ann@b:7/0");
    const server_settings plain = parse_url("redis+sentinel://bob:pw@a/m");
    EXPECT_TRUE(plain.for_sentinel({"a", 1}).password.empty());
    EXPECT_TRUE(plain.for_sentinel({"a", 1}).user.empty());
    const temporary_file file("from a file");
    EXPECT_EQ(parse_url("redis+sentinel://a/m?sentinel_password_file=" + file.path()).sentinels->password.reveal(),
              "from a file");
    unsetenv("HOLDFAST_URL_TEST");
}

TEST(SentinelUrl, SentinelsTrustWhomThePrimaryTrustsUnlessToldOtherwise) {
    const server_settings same = parse_url("rediss+sentinel://a/m?ca_file=/ca&cert=/c&key=/k&server_name=primary");
    EXPECT_EQ(same.kind, transport::tls);
    EXPECT_EQ(same.sentinels->kind, transport::tls);
    EXPECT_EQ(same.sentinels->tls.ca_file, "/ca");
    EXPECT_EQ(same.sentinels->tls.certificate_file, "/c");
    EXPECT_EQ(same.sentinels->tls.server_name, "") << "their names are their own";
    const server_settings other =
        parse_url("rediss+sentinel://a/m?ca_file=/ca&sentinel_ca_file=/theirs&sentinel_verify=false");
    EXPECT_EQ(other.tls.ca_file, "/ca");
    EXPECT_TRUE(other.tls.verify);
    EXPECT_EQ(other.sentinels->tls.ca_file, "/theirs");
    EXPECT_FALSE(other.sentinels->tls.verify);
    EXPECT_EQ(parse_url("rediss+sentinel://a/m?sentinel_tls=false").sentinels->kind, transport::tcp);
    const server_settings only_theirs = parse_url("redis+sentinel://a/m?sentinel_tls=true&sentinel_ca_file=/theirs");
    EXPECT_EQ(only_theirs.kind, transport::tcp);
    EXPECT_EQ(only_theirs.sentinels->kind, transport::tls);
    EXPECT_EQ(only_theirs.sentinels->tls.ca_file, "/theirs");
}

TEST(SentinelUrl, RefusesSentinelUrlsThatLackAPart) {
    for (const char* url : {"redis+sentinel:///m", "redis+sentinel://a,,b/m", "redis+sentinel://a,/m",
                            "redis+sentinel://,a/m", "redis+sentinel://:pw@/m"}) {
        EXPECT_THAT(refusal(url), HasSubstr("host")) << url;
    }
    for (const char* url : {"redis+sentinel://a", "redis+sentinel://a,b/", "redis+sentinel://a//2"}) {
        EXPECT_THAT(refusal(url), HasSubstr("name of the primary is missing")) << url;
    }
    EXPECT_THAT(refusal("redis+sentinel://a/m%20m"), HasSubstr("blank"));
    EXPECT_THAT(refusal("redis+sentinel://a/m/x"), HasSubstr("number from 0 on"));
    EXPECT_THAT(refusal("redis+sentinel://a/m/1?db=1"), HasSubstr("twice"));
    EXPECT_THAT(refusal("redis+sentinel://a:1,a:1/m"), HasSubstr("named twice"));
    EXPECT_THAT(refusal("redis+sentinel://a:x/m"), HasSubstr("1 to 65535"));
    EXPECT_THAT(refusal("redis+sentinel://[::1/m"), HasSubstr("has no ']'"));
    EXPECT_THAT(refusal("unix+sentinel://a/m"), HasSubstr("unknown scheme"));
}

TEST(SentinelUrl, RefusesSentinelOptionsWhereTheyMeanNothing) {
    EXPECT_THAT(refusal("redis://a?sentinel_user=x"), HasSubstr("redis+sentinel://"));
    EXPECT_THAT(refusal("redis+sentinel://a/m?sentinel_ca_file=/a"), HasSubstr("sentinel_tls=true"));
    EXPECT_THAT(refusal("redis+sentinel://a/m?sentinel_tls=yes"), HasSubstr("true nor false"));
    for (const char* half :
         {"sentinel_cert=/a", "sentinel_key=/a", "cert=/c&key=/k&sentinel_cert=/a", "cert=/c&key=/k&sentinel_key=/a"}) {
        EXPECT_THAT(refusal("rediss+sentinel://a/m?" + std::string(half)),
                    HasSubstr("sentinel_cert and sentinel_key go together"))
            << half;
    }
    EXPECT_THAT(refusal("redis+sentinel://a/m?ca_file=/a"), HasSubstr("rediss://"));
}

TEST(SentinelUrl, DisplaysSentinelsAndWhereThePrimaryIsOnceTheyHaveSaid) {
    server_settings settings = parse_url("rediss+sentinel://u:hunter2@a,[::1]:7/mine/3");
    EXPECT_EQ(settings.display(), "rediss+sentinel://u@a:26379,[::1]:7/mine/3");
    settings.host = "fe80::2";
    settings.port = 7000;
    EXPECT_EQ(settings.display(), "rediss+sentinel://u@a:26379,[::1]:7/mine/3 at [fe80::2]:7000");
}

}  // namespace
}  // namespace holdfast::redis::sentinel_url_test
