// A member of a Cluster that starts from the node map of an older server.
//
// Redis before 7.2 writes no shard ids into nodes.conf. A later server, Valkey included, takes its other members' ids
// from them, but a primary without replicas is in no shard itself until it starts again. Meanwhile any SPUBLISH ends it
// by an assertion, so the client must not cause one. Redis 7.0 knows no shard ids, and passes in any case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <holdfast/holdfast.hpp>

#include <fstream>
#include <future>
#include <regex>
#include <sstream>

#include "integration/refusal.hpp"
#include "support/eventually.hpp"
#include "support/redis_cluster.hpp"

namespace holdfast::testing::cluster_update_test {
namespace {

using namespace std::chrono_literals;

const std::string key = "hf:{stock}";

/// As if Redis 7.0 had run there before: no field of an address but the address.
void start_from_an_older_map(redis_server& member) {
    member.stop();
    const std::filesystem::path file = member.directory() / "nodes.conf";
    std::stringstream map;
    map << std::ifstream{file}.rdbuf();
    std::ofstream{file} << std::regex_replace(map.str(), std::regex{R"((@\d+),\S*)"}, "$1");
    member.restart(redis_server::data::lose);
}

class ClusterUpdate : public ::testing::Test {
protected:
    ClusterUpdate() { start_from_an_older_map(member); }

    void SetUp() override {
        const auto well = [&] {
            return member.call({"CLUSTER", "INFO"}).text.find("cluster_state:ok") != std::string::npos;
        };
        ASSERT_TRUE(eventually(well));
        ASSERT_TRUE(cluster.have_all_heard(key));
    }

    redis_cluster cluster{{.replicas = false}};
    redis_server& member = cluster.owner_of(key);
};

TEST_F(ClusterUpdate, TheMemberLivesThroughAHandOver) {
    const std::string started = member.info("server", "run_id");
    client ours{cluster.url()}, theirs{cluster.url()};
    mutex lock{ours, "stock", {.lease = 600ms}};
    mutex other{theirs, "stock", {.lease = 600ms}};
    for (int i = 0; i < 3; ++i) {
        lease held = lock.acquire();
        auto waiting = std::async(std::launch::async, [&] { return other.try_acquire_for(an_age); });
        ASSERT_TRUE(eventually([&] { return member.call({"ZCARD", key + ":queue"}).integer == 1; }));
        EXPECT_FALSE(held.release());
        EXPECT_TRUE(waiting.get());
    }
    ASSERT_TRUE(member.running()) << member.log_tail();
    EXPECT_EQ(member.info("server", "run_id"), started);
}

}  // namespace
}  // namespace holdfast::testing::cluster_update_test
