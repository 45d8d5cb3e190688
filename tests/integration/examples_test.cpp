// Every program in examples/ does what its first lines say, on a server of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/child_process.hpp"
#include "support/redis_server.hpp"

namespace holdfast::testing::examples_test {
namespace {

using ::testing::HasSubstr;

/// What it printed.
std::string run_example(const std::string& name) {
    const redis_server server;
    child_process example{std::filesystem::path{HOLDFAST_EXAMPLES} / name, {.arguments = {server.url()}}};
    EXPECT_EQ(example.wait(std::chrono::seconds{60}), (exit_result{.status = 0, .signal = 0}));
    EXPECT_EQ(example.errors(), "");
    return example.output();
}

TEST(Examples, StockCounterSellsEveryItemOnce) {
    EXPECT_THAT(run_example("stock_counter"), HasSubstr("sold 30 of 30, 0 left"));
}

TEST(Examples, JobRunnerRunsTheJobOnOneMachine) {
    EXPECT_THAT(run_example("job_runner"), HasSubstr("the job ran 1 time(s)"));
}

TEST(Examples, CacheRebuildRebuildsOnce) {
    EXPECT_THAT(run_example("cache_rebuild"), HasSubstr("rebuilding takes 500 ms: rebuilt 1 time(s)"));
}

TEST(Examples, PriceListIsNeverSeenTorn) {
    EXPECT_THAT(run_example("price_list"), HasSubstr("net 120, gross 139, torn 0"));
}

TEST(Examples, CoroutineServerLosesNoDeposit) {
    EXPECT_THAT(run_example("coroutine_server"), HasSubstr("balance: 55\n"));
}

TEST(Examples, OtlpTraceTellsEverySpan) {
    const std::string output = run_example("otlp_trace");
    const auto count = [&output](const std::string& text) {
        std::size_t found = 0;
        for (std::size_t at = output.find(text); at != output.npos; at = output.find(text, at + 1)) ++found;
        return found;
    };
    EXPECT_EQ(count("\"holdfast hold\""), 3U);
    EXPECT_EQ(count("\"holdfast acquire\"") + count("\"holdfast wait\""), 3U);
    EXPECT_EQ(count("{\"key\":\"lock.name\",\"value\":{\"stringValue\":\"stock:1001\"}}"), 6U);
}

#ifdef HOLDFAST_WITH_SQLITE
TEST(Examples, FencedSqliteRefusesTheOldToken) {
    const std::string output = run_example("fenced_sqlite");
    EXPECT_THAT(output, HasSubstr("second writes 7: written"));
    EXPECT_THAT(output, HasSubstr("first wakes up and writes 9: refused"));
}
#endif

}  // namespace
}  // namespace holdfast::testing::examples_test
