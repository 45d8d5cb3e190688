// The owners of slots by CLUSTER SHARDS.
#include "redis/slots/slot_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/cluster/cluster_answers.hpp"
#include "unit/redis/resp/parsed_reply.hpp"

namespace holdfast::redis::slot_map_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::node_answer;
using testing::parsed;
using testing::shard_answer;
using testing::shards_answer;

const server_address asked{"seed", 7000};
const server_address one{"one", 7001};
const server_address two{"two", 7002};
const server_address three{"three", 7003};

constexpr hash_slot slot(unsigned number) {
    return static_cast<hash_slot>(number);
}

std::optional<slot_map> read(const std::string& bytes, transport how = transport::tcp) {
    return slot_map::read(parsed(bytes).reply, asked, how);
}

std::string owner_of(const slot_map& map, unsigned number) {
    const server_address* const owner = map.owner(slot(number));
    return owner == nullptr ? "nobody" : to_text(*owner);
}

// The answer of a Redis 7.0.15: three primaries, a replica that is not ready yet, and slot 16001 without owner.
constexpr const char* recorded =
    "*3\r\n%2\r\n$5\r\nslots\r\n*4\r\n:10923\r\n:16000\r\n:16002\r\n:16383\r\n$5\r\nnodes\r\n*1\r\n%7\r\n"
    "$2\r\nid\r\n$40\r\nf52402001d8bed959d2aeafe71d7d116a0a9b351\r\n$4\r\nport\r\n:27303\r\n$2\r\nip\r\n"
    "$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$18\r\n"
    "replication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n"
    ":5460\r\n$5\r\nnodes\r\n*2\r\n%7\r\n$2\r\nid\r\n$40\r\n359732cff28bd82ea3c99c3df1cfe49567e9ab35\r\n"
    "$4\r\nport\r\n:27301\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\n"
    "role\r\n$6\r\nmaster\r\n$18\r\nreplication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n%7\r\n"
    "$2\r\nid\r\n$40\r\ndcd6c59246b57cb91b50a3f120e09de74488063d\r\n$4\r\nport\r\n:27304\r\n$2\r\nip\r\n"
    "$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\nrole\r\n$7\r\nreplica\r\n$18\r\n"
    "replication-offset\r\n:0\r\n$6\r\nhealth\r\n$7\r\nloading\r\n%2\r\n$5\r\nslots\r\n*2\r\n:5461\r\n"
    ":10922\r\n$5\r\nnodes\r\n*1\r\n%7\r\n$2\r\nid\r\n$40\r\nb403c9894d777993eeebce8cd1ff5e927e65184b\r\n"
    "$4\r\nport\r\n:27302\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n$4\r\n"
    "role\r\n$6\r\nmaster\r\n$18\r\nreplication-offset\r\n:0\r\n$6\r\nhealth\r\n$6\r\nonline\r\n";

TEST(SlotMap, IsReadAsAServerSendsIt) {
    const auto map = read(recorded);
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 0), "127.0.0.1:27301");
    EXPECT_EQ(owner_of(*map, 5460), "127.0.0.1:27301");
    EXPECT_EQ(owner_of(*map, 5461), "127.0.0.1:27302");
    EXPECT_EQ(owner_of(*map, 16000), "127.0.0.1:27303");
    EXPECT_EQ(owner_of(*map, 16001), "nobody");
    EXPECT_EQ(owner_of(*map, 16383), "127.0.0.1:27303");
    EXPECT_EQ(map->primaries().size(), 3U);
    EXPECT_EQ(map->members().size(), 4U);
    EXPECT_TRUE(map->is_primary({"127.0.0.1", 27302}));
    EXPECT_FALSE(map->is_primary({"127.0.0.1", 27304})) << "a replica";
}

// The answers around the death of a primary: dead and still the owner; then replaced.
TEST(SlotMap, ADeadPrimaryOwnsItsSlotsUntilSomebodyIsPromoted) {
    const auto before = read(shards_answer(
        {shard_answer({{0, 16383}}, {node_answer(one, {.health = "fail"}), node_answer(two, {.role = "replica"})})}));
    ASSERT_TRUE(before);
    EXPECT_EQ(owner_of(*before, 7), "one:7001");
    EXPECT_THAT(before->members(), ElementsAre(one, two));
    const auto after = read(shards_answer(
        {shard_answer({{0, 16383}}, {node_answer(two)}), shard_answer({}, {node_answer(one, {.health = "fail"})})}));
    ASSERT_TRUE(after);
    EXPECT_EQ(owner_of(*after, 7), "two:7002");
    EXPECT_FALSE(after->is_primary(one)) << "dead, and nothing is its own";
    EXPECT_THAT(after->members(), ElementsAre(two, one));
    EXPECT_EQ(after->moved_since(*before).size(), hash_slots);
}

TEST(SlotMap, OfTwoPrimariesOfAShardTheLivingOneOwnsIt) {
    for (const bool dead_first : {true, false}) {
        std::vector<std::string> nodes{node_answer(one, {.health = "fail"}), node_answer(two)};
        if (!dead_first) std::swap(nodes[0], nodes[1]);
        const auto map = read(shards_answer({shard_answer({{0, 16383}}, nodes)}));
        ASSERT_TRUE(map);
        EXPECT_EQ(owner_of(*map, 0), "two:7002");
        EXPECT_FALSE(map->is_primary(one));
    }
}

TEST(SlotMap, KnowsPrimariesThatHaveNoSlotsYet) {
    const auto map =
        read(shards_answer({shard_answer({{0, 16383}}, {node_answer(one)}), shard_answer({}, {node_answer(two)})}));
    ASSERT_TRUE(map);
    EXPECT_TRUE(map->is_primary(two));
    EXPECT_THAT(map->primaries(), ElementsAre(one, two));
}

TEST(SlotMap, AnEmptyHostIsTheOneThatWasAsked) {
    const auto map = read(shards_answer({shard_answer({{0, 16383}}, {node_answer({"", 7001})})}));
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 0), "seed:7001");
}

TEST(SlotMap, AMemberWhoseNameIsNotKnownYetIsPassedOver) {
    const auto map = read(shards_answer(
        {shard_answer({{0, 5}}, {node_answer({"?", 7001})}), shard_answer({{6, 16383}}, {node_answer(two)})}));
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 5), "nobody");
    EXPECT_EQ(owner_of(*map, 6), "two:7002");
}

TEST(SlotMap, TheEndpointGoesBeforeTheAddress) {
    const auto map = read(shards_answer({shard_answer({{0, 16383}}, {node_answer(one, {.ip = "10.0.0.1"})})}));
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 0), "one:7001");
}

TEST(SlotMap, OverTlsTheTlsPortsCount) {
    const std::string bytes = shards_answer({shard_answer({{0, 5}}, {node_answer(one, {.tls_port = 9001})}),
                                             shard_answer({{6, 16383}}, {node_answer(two)})});
    const auto map = read(bytes, transport::tls);
    ASSERT_TRUE(map);
    EXPECT_EQ(owner_of(*map, 5), "one:9001");
    EXPECT_EQ(owner_of(*map, 6), "nobody") << "it has no such port";
    EXPECT_EQ(owner_of(*read(bytes), 5), "one:7001");
}

TEST(SlotMap, OneSlotIsAssignedAtATime) {
    auto map =
        read(shards_answer({shard_answer({{0, 16383}}, {node_answer(one), node_answer(two, {.role = "replica"})})}));
    ASSERT_TRUE(map);
    const slot_map before = *map;
    map->assign(slot(7), two);
    EXPECT_EQ(owner_of(*map, 7), "two:7002");
    EXPECT_EQ(owner_of(*map, 8), "one:7001");
    EXPECT_TRUE(map->is_primary(two)) << "whoever owns a slot is one";
    map->assign(slot(9), three);
    EXPECT_EQ(owner_of(*map, 9), "three:7003") << "a new member";
    EXPECT_THAT(map->members(), ElementsAre(one, two, three));
    EXPECT_THAT(map->moved_since(before), ElementsAre(slot(7), slot(9)));
    EXPECT_THAT(map->moved_since(*map), IsEmpty());
}

TEST(SlotMap, ASlotThatIsNobodysAnyMoreHasMoved) {
    const auto before = read(shards_answer({shard_answer({{0, 16383}}, {node_answer(one)})}));
    const auto after = read(shards_answer({shard_answer({{0, 1}, {3, 16383}}, {node_answer(one)})}));
    ASSERT_TRUE(before && after);
    EXPECT_THAT(after->moved_since(*before), ElementsAre(slot(2)));
    EXPECT_THAT(before->moved_since(*after), ElementsAre(slot(2)));
}

TEST(SlotMap, WhatIsNoMapOrCoversNothingIsThrownAway) {
    const std::string node = node_answer(one);
    for (const std::string& odd :
         {std::string("*0\r\n"), std::string("_\r\n"), std::string("+OK\r\n"), std::string("*1\r\n:1\r\n"),
          std::string("*1\r\n%0\r\n"), shards_answer({shard_answer({}, {node})}),
          shards_answer({shard_answer({{0, 5}}, {})}), shards_answer({shard_answer({{0, 16384}}, {node})}),
          shards_answer({shard_answer({{5, 4}}, {node})}), shards_answer({shard_answer({{-1, 4}}, {node})}),
          shards_answer({shard_answer({{0, 5}}, {node_answer({"a", 0})})}),
          shards_answer({shard_answer({{0, 5}}, {node_answer({"a b", 1})})}),
          std::string("*1\r\n%2\r\n$5\r\nslots\r\n*1\r\n:1\r\n$5\r\nnodes\r\n*0\r\n"),
          std::string("*1\r\n%2\r\n$5\r\nslots\r\n*2\r\n*0\r\n*0\r\n$5\r\nnodes\r\n*0\r\n"),
          std::string("*1\r\n%2\r\n$5\r\nslots\r\n:1\r\n$5\r\nnodes\r\n:1\r\n")}) {
        EXPECT_FALSE(read(odd)) << odd;
    }
}

// Members that were upgraded from 7.0 do so: a replica of an unknown shard has the slots of its primary.
TEST(SlotMap, SlotsThatAreNamedAgainAreStillTheirPrimarys) {
    const auto map = read(shards_answer({shard_answer({{0, 8000}, {0, 8000}}, {node_answer(one)}),
                                         shard_answer({{0, 8000}}, {node_answer(three, {.role = "replica"})}),
                                         shard_answer({{8001, 16383}}, {node_answer(two)}),
                                         shard_answer({{8001, 16383}}, {node_answer(three, {.role = "replica"})})}));
    ASSERT_TRUE(map);
    for (const unsigned number : {0U, 8000U}) EXPECT_EQ(owner_of(*map, number), to_text(one));
    for (const unsigned number : {8001U, 16383U}) EXPECT_EQ(owner_of(*map, number), to_text(two));
}

// Redis 7.2 and later, after a failover.
TEST(SlotMap, WhatIsLeftOutStaysWithItsPrimaryOrGoesToItsSuccessor) {
    const auto before = read(
        shards_answer({shard_answer({{0, 99}}, {node_answer(one)}), shard_answer({{100, 16383}}, {node_answer(two)})}));
    auto map = read(shards_answer({shard_answer({}, {node_answer(one, {.health = "fail"}), node_answer(three)}),
                                   shard_answer({{200, 16383}}, {node_answer(two)})}));
    ASSERT_TRUE(before && map);
    map->fill_from(*before);
    EXPECT_EQ(owner_of(*map, 99), to_text(three)) << "it took over";
    EXPECT_EQ(owner_of(*map, 199), to_text(two)) << "nobody says otherwise";
    EXPECT_EQ(owner_of(*map, 200), to_text(two));
}

TEST(SlotMap, WhatIsLeftOutAndWasAnotherPrimarysIsNobodys) {
    const auto before = read(shards_answer({shard_answer({{0, 16383}}, {node_answer(three)})}));
    auto map = read(shards_answer({shard_answer({{0, 99}}, {node_answer(one)})}));
    ASSERT_TRUE(before && map);
    map->fill_from(*before);
    EXPECT_EQ(owner_of(*map, 100), "nobody");
}

// The primary of each shard is searched among all members.
TEST(SlotMap, AnAnswerThatNamesShardsWithoutEndIsThrownAway) {
    const std::string node = node_answer(one);
    std::vector<std::string> shards(2048, shard_answer({}, {node}));
    shards.front() = shard_answer({{0, 16383}}, {node});
    EXPECT_TRUE(read(shards_answer(shards)));
    shards.push_back(shards.back());
    EXPECT_FALSE(read(shards_answer(shards)));
}

TEST(SlotMap, AServerThatNamesMembersWithoutEndIsNotRememberedWithoutEnd) {
    auto map = read(shards_answer({shard_answer({{0, 16383}}, {node_answer(one)})}));
    ASSERT_TRUE(map);
    for (unsigned i = 0; i < 3000; ++i) map->assign(slot(i), {"x", static_cast<std::uint16_t>(i + 1)});
    EXPECT_LT(map->members().size(), 2500U);
    EXPECT_EQ(owner_of(*map, 0), "x:1");
    EXPECT_EQ(owner_of(*map, 2999), "nobody");
}

// Which servers do that, and the consequences: see slot_map.hpp.
TEST(SlotMap, AMemberThatIsLeftOutOfItsOwnAnswerIsInNoShard) {
    const auto is_in = [](const std::string& bytes) { return is_in_a_shard(one, parsed(bytes).reply, transport::tcp); };
    const std::string of_two = shard_answer({{8192, 16383}}, {node_answer(two)});
    EXPECT_FALSE(is_in(shards_answer({of_two})));
    EXPECT_FALSE(is_in(shards_answer({}))) << "it is the only member";
    EXPECT_FALSE(is_in(shards_answer({shard_answer({}, {node_answer(two)})}))) << "the other has no slot";
    EXPECT_TRUE(is_in(shards_answer({of_two, shard_answer({{0, 8191}}, {node_answer(one)})})));
    EXPECT_TRUE(is_in(shards_answer({of_two, shard_answer({}, {node_answer(one)})}))) << "it has no slot";
    const std::string replica = node_answer(three, {.role = "replica"});
    EXPECT_TRUE(is_in(shards_answer({of_two, shard_answer({{0, 8191}}, {replica})}))) << "perhaps its own: Redis";
    EXPECT_TRUE(is_in(shards_answer({of_two, shard_answer({}, {replica})}))) << "perhaps its own: Valkey";
    EXPECT_TRUE(is_in(shards_answer({of_two, shard_answer({{0, 8191}}, {node_answer(three)})}))) << "another name";
    EXPECT_TRUE(is_in("-NOPERM no\r\n"));
    EXPECT_TRUE(is_in("*1\r\n:1\r\n"));
}

}  // namespace
}  // namespace holdfast::redis::slot_map_test
