// Wake-ups over sharded channels. The scripts recognise them by the tag in the name.
//
// A sharded channel and a plain channel of the same name are two channels with different subscribers.
#include "script/rw/rw_rows.hpp"
#include "script/script_rows.hpp"

namespace holdfast::testing::sharded_channel_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using kind = sim::channel_kind;

std::string channel(const std::string& id) {
    return "hf:wake:{stock}:" + id;
}

// Somebody who listens for that waiter.
class ear {
public:
    ear(const std::string& socket, const std::string& id, kind how = kind::sharded) : link_{socket, 1} {
        link_.subscribe(channel(id), how);
    }
    std::vector<std::string> heard() {
        std::vector<std::string> all;
        for (const sim::message& one : link_.heard()) all.push_back(one.payload);
        return all;
    }

private:
    sim::listener link_;
};

class ShardedChannelMutex : public script_rows {
protected:
    redis_reply wait_for(const std::string& id, asking terms = {}) {
        terms.channel = channel(id);
        return acquire(id, terms);
    }
};

TEST_F(ShardedChannelMutex, TellsTheNewHolder) {  // R11, R12
    const std::string token = hold("holder");
    wait_for("a");
    wait_for("b");
    ear a{socket(), "a"}, b{socket(), "b"};
    EXPECT_EQ(code(release("holder", token)), 1);
    EXPECT_EQ(value(lock), "a");
    EXPECT_THAT(a.heard(), ElementsAre("grant a " + value(fence)));
    EXPECT_THAT(b.heard(), IsEmpty());
}

TEST_F(ShardedChannelMutex, TellsTheNextToPollIfTheNewLeaseIsShorterThanItsInterval) {  // §6
    const std::string token = hold("holder");
    wait_for("a", {.lease = 1000, .interval = 300});
    wait_for("b", {.interval = 10'000});
    const ear a{socket(), "a"};
    ear b{socket(), "b"};
    release("holder", token);
    EXPECT_THAT(b.heard(), ElementsAre("poll b"));
}

TEST_F(ShardedChannelMutex, PassesOverWhoDoesNotListen) {  // R13
    const std::string token = hold("holder");
    wait_for("dead");
    wait_for("alive");
    ear alive{socket(), "alive"};
    release("holder", token);
    EXPECT_EQ(value(lock), "alive");
    EXPECT_THAT(alive.heard(), ElementsAre("grant alive " + value(fence)));
}

TEST_F(ShardedChannelMutex, IsAnotherThanThePlainOneOfThatName) {  // R13
    const std::string token = hold("holder");
    wait_for("a");
    ear plain{socket(), "a", kind::plain};
    release("holder", token);
    EXPECT_EQ(everything().count(lock), 0U);
    EXPECT_THAT(plain.heard(), IsEmpty());
}

// A server that was updated from Redis 7.0 may not survive it: docs/deployment.md, Updating a Cluster.
TEST_F(ShardedChannelMutex, IsNotSpokenToWhereNobodyListens) {
    const std::string token = hold("holder");
    wait_for("a");
    wait_for("b");
    must({"CONFIG", "RESETSTAT"});
    release("a", "0");  // the next one would have to poll
    release("holder", token);
    EXPECT_THAT(must({"INFO", "commandstats"}).text, Not(HasSubstr("cmdstat_spublish")));
}

class ShardedChannelRw : public rw_rows {};

TEST_F(ShardedChannelRw, TellsAllReadersOfAProcessAtOnce) {  // R28
    const std::string token = writes(ann);
    for (const std::string& id : {bob, cid}) wait_to(wish::read, id, {.channel = channel("client")});
    ear client{socket(), "client"};
    EXPECT_THAT(release(ann, token), IsReleased(0, 2));
    EXPECT_THAT(client.heard(),
                ElementsAre("grant " + bob + grant_of(bob).substr(1) + " " + cid + grant_of(cid).substr(1)));
}

TEST_F(ShardedChannelRw, PassesOverWhoDoesNotListen) {  // R13
    const std::string token = writes(ann);
    wait_to(wish::write, bob, {.channel = channel("dead")});
    wait_to(wish::write, cid, {.channel = channel("client")});
    ear client{socket(), "client"};
    EXPECT_THAT(release(ann, token), IsReleased(0, 1));
    EXPECT_EQ(held(), written_by(cid));
    EXPECT_THAT(client.heard(), ElementsAre("grant " + cid + grant_of(cid).substr(1)));
}

}  // namespace
}  // namespace holdfast::testing::sharded_channel_test
