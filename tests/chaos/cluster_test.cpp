// Twelve processes on a Cluster whose slots move and whose primaries are killed, stopped and replaced: R40 to R46.
//
// Planned changes (moving slots, a manual failover) lose nothing: two processes never believe at the same time. A
// primary that is killed or hangs may lose grants that its replica lacks. Then two processes may believe for at most a
// lease, but their tokens differ, and the store, which checks tokens, loses no update.
//
// Each change happens once; HOLDFAST_CHAOS_SECONDS repeats them for longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "chaos/beliefs.hpp"
#include "chaos/chaos_fixture.hpp"
#include "support/redis_cluster.hpp"
#include "support/temp_directory.hpp"

namespace holdfast::testing::cluster_test {
namespace {

using namespace std::chrono_literals;

/// One lock, the store that it guards, and the workers that use it.
class guarded_store {
public:
    guarded_store(const std::string& url, std::string of, std::chrono::milliseconds lease)
        : name{std::move(of)}, path_{directory_.path() / "store"} {
        std::ofstream(path_) << "0 0\n";
        for (int i = 0; i < 3; ++i) {
            workers_.emplace_back(
                std::vector<std::string>{"lock-set", url, name, path_, std::to_string(lease.count())});
        }
    }

    std::string key() const { return "hf:{" + name + "}"; }

    std::int64_t counted() const {
        std::int64_t count = 0;
        std::ifstream(path_) >> count;
        return count;
    }

    std::int64_t updates() { return updates_of(workers_); }
    std::vector<interval> beliefs() const { return beliefs_of(workers_); }

    const std::string name;

private:
    temp_directory directory_;
    std::string path_;
    std::vector<worker> workers_;
};

class ClusterChaos : public ::testing::Test {
protected:
    static constexpr std::chrono::milliseconds lease = 3000ms;
    static constexpr std::size_t pairs = 3;

    void start() {
        for (const char* const name : {"stock", "orders", "shelf", "till"}) {
            stores.push_back(std::make_unique<guarded_store>(cluster.url(), name, lease));
        }
        ASSERT_TRUE(all_go_on());
    }

    /// A read during a write counts nothing; a later one does.
    [[nodiscard]] bool all_go_on() const {
        std::vector<std::int64_t> before;
        for (const auto& each : stores) before.push_back(each->counted());
        const auto has_gone_on = [&] {
            for (std::size_t i = 0; i < stores.size(); ++i) {
                if (stores[i]->counted() <= before[i] + 3) return false;
            }
            return true;
        };
        return eventually(has_gone_on, an_age);
    }

    /// Moves every slot to the next pair of primary and replica; afterwards each pair has one.
    void slots_move() {
        ++moves;
        for (std::size_t i = 0; i < stores.size(); ++i) {
            redis_server& to = primary_of((i + moves) % pairs);
            if (&to != &cluster.owner_of(stores[i]->key())) cluster.move_slot(stores[i]->key(), to);
        }
    }
    redis_server& primary_of(std::size_t pair) {
        redis_server& first = cluster.members[pair];
        return first.info("replication", "role") == "master" ? first : cluster.replica_of(first);
    }
    /// The primary of that pair.
    std::string some_key(std::size_t pair) const { return stores[(pair + pairs - moves % pairs) % pairs]->key(); }

    void a_replica_takes_over_by_hand(std::size_t pair) { EXPECT_TRUE(cluster.fail_over(some_key(pair))); }

    enum class end { killed, stopped };
    void a_primary_fails(end how, std::size_t pair) {
        const std::string key = some_key(pair);
        redis_server& victim = cluster.owner_of(key);
        const std::int64_t from = now_us();
        how == end::killed ? victim.kill() : victim.pause();
        EXPECT_TRUE(cluster.is_given_up(victim));
        EXPECT_TRUE(cluster.has_replaced(victim, key));
        EXPECT_TRUE(all_go_on());
        EXPECT_TRUE(cluster.comes_back(victim));
        // Until now the old primary may have made grants that no other server knows; they end with their lease.
        losses.push_back({from, now_us() + std::chrono::microseconds{lease}.count()});
    }

    [[nodiscard]] bool may_be_lost(std::int64_t when_us) const {
        return std::ranges::any_of(
            losses, [&](const interval& loss) { return loss.from_us <= when_us && when_us <= loss.to_us; });
    }

    /// Checks one lock; returns how many pairs of intervals overlap.
    int overlaps(const std::vector<interval>& all) const {
        int count = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            for (std::size_t j = i + 1; j < all.size() && all[j].from_us <= all[i].to_us; ++j) {
                ++count;
                EXPECT_TRUE(may_be_lost(all[j].from_us)) << "two holders although nothing was lost";
                EXPECT_NE(all[i].token, all[j].token);
            }
        }
        return count;
    }

    redis_cluster cluster{{.config = {"cluster-require-full-coverage no"}}};
    std::size_t moves = 0;
    std::vector<interval> losses;                        // periods in which grants may have been lost
    std::vector<std::unique_ptr<guarded_store>> stores;  // last member: it uses the servers
};

// R40, R43, R44, R45
TEST_F(ClusterChaos, LosesNoUpdateAndHasTwoHoldersOnlyWhereAGrantWasLost) {
    ASSERT_NO_FATAL_FAILURE(start());
    const auto end_of_time = std::chrono::steady_clock::now() + std::chrono::seconds{std::stol(seconds_to_run("1"))};
    do {
        slots_move();
        EXPECT_TRUE(all_go_on()) << "after moves";
        a_replica_takes_over_by_hand(0);
        EXPECT_TRUE(all_go_on()) << "after a failover by hand";
        a_primary_fails(end::killed, 1);
        slots_move();
        EXPECT_TRUE(all_go_on()) << "after a primary was killed, and moves";
        a_primary_fails(end::stopped, 2);
        EXPECT_TRUE(all_go_on()) << "after a primary hung";
    } while (std::chrono::steady_clock::now() < end_of_time && !HasFailure());
    std::int64_t sections = 0;
    int together = 0;
    for (const auto& each : stores) {
        const std::int64_t done = each->updates();
        EXPECT_EQ(each->counted(), done) << each->name;
        together += overlaps(each->beliefs());
        sections += done;
    }
    std::cout << "sections: " << sections << ", two at once: " << together << "\n";
    EXPECT_TRUE(eventually(
        [&] {
            return std::ranges::all_of(cluster.members, [](redis_server& each) { return leftovers(each).empty(); });
        },
        an_age));
}

}  // namespace
}  // namespace holdfast::testing::cluster_test
