// Figures by name: bounded, and written as Prometheus reads them.
#include "base/utf8.hpp"

#include <holdfast/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::named_metrics_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> names_of(const named_metrics& all) {
    std::vector<std::string> names;
    all.for_each([&](std::string_view name, const lock_metrics& one) {
        names.push_back(std::string(name) + " " + std::to_string(one.acquired.load()));
    });
    return names;
}

TEST(NamedMetrics, NamesBeyondTheLimitShareOneEntry) {
    named_metrics all(2);
    ++all.of("b").acquired;
    ++all.of("a").acquired;
    EXPECT_THAT(names_of(all), ElementsAre("a 1", "b 1"));
    for (int i = 0; i < 1000; ++i) ++all.of("name " + std::to_string(i)).acquired;
    ++all.of("a").acquired;
    EXPECT_THAT(names_of(all), ElementsAre("a 2", "b 1", " 1000"));
    EXPECT_EQ(&all.of("x"), &all.of("y"));
    EXPECT_NE(&all.of("a"), &all.of("b"));
}

TEST(NamedMetrics, WithoutAnyNameAllShareOneEntry) {
    named_metrics all(0);
    ++all.of("a").acquired;
    EXPECT_THAT(names_of(all), ElementsAre(" 1"));
}

TEST(NamedMetrics, PrometheusReadsThem) {
    metrics all(1);
    lock_metrics& stock = all.by_name.of("stock:1");
    stock.waiting = 2;
    stock.acquired = 3;
    stock.acquire_wait.add(100us);
    stock.acquire_wait.add(2ms);
    stock.acquire_wait.add(1h);
    ++all.by_name.of("another").acquired;
    all.links = 7;
    const std::string text = prometheus_text(all);
    EXPECT_THAT(text, HasSubstr("# TYPE holdfast_client_links_total counter\nholdfast_client_links_total 7\n"));
    EXPECT_THAT(text, HasSubstr("\nholdfast_client_waiting{lock=\"stock:1\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("\nholdfast_client_acquired_total{lock=\"stock:1\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("\nholdfast_client_acquired_total{lock=\"\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_bucket{lock=\"stock:1\",le=\"0.000128\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_bucket{lock=\"stock:1\",le=\"0.008192\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_bucket{lock=\"stock:1\",le=\"268.435456\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_bucket{lock=\"stock:1\",le=\"+Inf\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_sum{lock=\"stock:1\"} 3600.002100\n"));
    EXPECT_THAT(text, HasSubstr("acquire_wait_seconds_count{lock=\"stock:1\"} 3\n"));
}

TEST(NamedMetrics, AnyBytesOfANameAreALabel) {
    metrics all;
    all.by_name.of("a\"b\\c\nd\xff");
    all.by_name.of("\xe9\x94\x81");
    const std::string text = prometheus_text(all);
    EXPECT_THAT(text, HasSubstr("{lock=\"a\\\"b\\\\c_d_\"}"));
    EXPECT_THAT(text, HasSubstr("{lock=\"\xe9\x94\x81\"}"));
    EXPECT_TRUE(is_utf8(text));
}

TEST(Utf8, IsWhatTheStandardSays) {
    for (const char* text : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
                             "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    for (const char* text : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                             "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x82z", "\xff"}) {
        EXPECT_FALSE(is_utf8(text)) << text;
    }
}

}  // namespace
}  // namespace holdfast::named_metrics_test
