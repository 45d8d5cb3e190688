// A failover after which members list no slots for the shard: Redis 7.2 and later, while the dead primary is listed
// beside its successor. Commands then go to the successor, and its pushes count.
#include "unit/engine/cluster_node_fixture.hpp"

namespace holdfast::engine::cluster_left_out_test {
namespace {

using namespace std::chrono_literals;
using namespace redis::testing;
using testing::cluster_node_fixture;
using ::testing::HasSubstr;
using testing::list;
using testing::long_ago_s;
using testing::map_of;

class ClusterLeftOut : public cluster_node_fixture {
protected:
    ClusterLeftOut() : cluster_node_fixture(0) {}

    void time_passes(std::chrono::milliseconds span) {
        pass(span);
        subject.on_timer(now);
        settle();
    }
    /// Answers every question for the map.
    void keep_telling_map() {
        for (int i = 0; i < 30; ++i) {
            time_passes(100ms);
            for (const auto& address : {one, three}) {
                if (sent(address).find(shards_question) != std::string::npos) say(address, without_a);
            }
        }
    }

    // `two` died and `three` took over.
    const std::string without_a = shards_answer(
        {shard_answer({{0, 8191}}, {redis::testing::node_answer(one)}),
         shard_answer({}, {redis::testing::node_answer(two, {.health = "fail"}), redis::testing::node_answer(three)})});
};

TEST_F(ClusterLeftOut, AWaiterGoesToTheSuccessor) {
    start(map_of(one, two));
    wait_in_queue(first, "a", two);
    fail(two);
    tell_map(without_a);
    time_passes(200ms);
    ASSERT_TRUE(has_link(three));
    come_up(three, {.uptime_s = long_ago_s});
    EXPECT_THAT(sent(three), HasSubstr("SSUBSCRIBE"));
}

TEST_F(ClusterLeftOut, AClientThatComesLaterHearsItsGrant) {
    driven().start(now);
    settle();
    come_up(one, {.uptime_s = long_ago_s});
    sent(one);
    say(one, without_a);
    ask(first, "a");
    sent(one);
    say(one, "-MOVED 15495 three:7003\r\n");
    come_up(three, {.uptime_s = long_ago_s});
    const std::string asked = sent(three);
    const auto at = asked.find(subject.id().text() + ".", asked.find("EVALSHA"));
    ASSERT_NE(at, std::string::npos);
    const std::string id = asked.substr(at, asked.find("\r\n", at) - at);
    confirm(three, channel("a"));
    say(three, list({"2", "20000", "other", "77", "0", "41"}));
    keep_telling_map();
    EXPECT_TRUE(is_up("a")) << "its owner is known, and answers";
    say(three, ">3\r\n" + bulk("smessage") + bulk(channel("a")) + bulk("grant " + id + " 78"));
    EXPECT_NE(first.held, nullptr);
}

}  // namespace
}  // namespace holdfast::engine::cluster_left_out_test
