// Watching a mutex: when it is asked about, and what is told.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_watch_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string ann = "hf_0123456789abcdef.1.0123456789abcdefghijkl";
const std::string bob = "hf_fedcba9876543210.1.0123456789abcdefghijkl";

class recorded_watch final : public watch_listener {
public:
    std::vector<wire::watch_answer> seen;
    std::vector<errc> troubles;

private:
    void on_sight(const wire::watch_answer& what) override { seen.push_back(what); }
    void on_trouble(const failure& why) override { troubles.push_back(why.code); }
};

class EngineWatch : public engine_fixture {  // R55
protected:
    lock_watch& watch() { return subject.watch(keys, told, now); }
    /// The question that is sent; its id is that of the watcher.
    question asked() {
        question one = send_one();
        EXPECT_EQ(one.script, "mutex/watch");
        id = one.arguments.at(0);
        return one;
    }
    static std::string held_by(const std::string& who, const std::string& token, const std::string& left = "5000",
                               const std::string& note = "") {
        return list({"1", who, left, token, note});
    }
    static std::string free_after(const std::string& token) { return list({"0", token}); }
    void see(const std::string& answer) {
        asked();
        receive(answer);
    }
    void changed() { push("changed " + id); }

    std::shared_ptr<recorded_watch> told = std::make_shared<recorded_watch>();
    std::string id;
};

TEST_F(EngineWatch, SubscribesAndAsks) {
    watch();
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+hf:wake:" + subject.id().text()));
    const question first_one = asked();
    EXPECT_EQ(first_one.arguments.at(1), "hf:wake:" + subject.id().text());
    receive(held_by(ann, "42", "5000", "nightly backup"));
    ASSERT_THAT(told->seen, SizeIs(1));
    EXPECT_EQ(told->seen[0].holder, ann);
    EXPECT_EQ(told->seen[0].token, 42U);
    EXPECT_EQ(told->seen[0].note, "nightly backup");
}

TEST_F(EngineWatch, AsksWhenItIsToldThatSomethingChanged) {
    watch();
    see(held_by(ann, "42"));
    changed();
    see(held_by(bob, "43"));
    changed();
    see(free_after("43"));
    ASSERT_THAT(told->seen, SizeIs(3));
    EXPECT_EQ(told->seen[1].holder, bob);
    EXPECT_TRUE(told->seen[2].is_free());
}

TEST_F(EngineWatch, AsksAgainIfSomethingChangedWhileAQuestionWasInFlight) {
    watch();
    see(held_by(ann, "42"));
    changed();
    asked();
    changed();
    changed();
    EXPECT_THAT(send(), IsEmpty());
    receive(held_by(ann, "42"));
    see(held_by(bob, "43"));
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, TellsTheSameOnce) {
    watch();
    see(held_by(ann, "42"));
    changed();
    see(held_by(ann, "42", "3000"));
    changed();
    see(free_after("42"));
    changed();
    see(free_after("42"));
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, TellsTwoHoldsOfOneIdAsTwo) {
    watch();
    see(held_by(ann, "42"));
    changed();
    see(held_by(ann, "44"));
    EXPECT_THAT(told->seen, SizeIs(2));
    changed();
    see(held_by(ann, "42"));
    EXPECT_THAT(told->seen, SizeIs(2)) << "of a server that took over and lacks the second";
}

TEST_F(EngineWatch, AsksWhenTheLeaseIsOver) {
    watch();
    see(held_by(ann, "42", "900"));
    later(900ms);
    EXPECT_THAT(send(), IsEmpty());
    later(2ms);
    see(free_after("42"));
    EXPECT_TRUE(told->seen.back().is_free());
}

TEST_F(EngineWatch, AsksFromTimeToTime) {
    watch();
    see(free_after("0"));
    later(10s);
    see(held_by(ann, "42"));
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, AsksOnTheNextLink) {
    watch();
    see(held_by(ann, "42"));
    break_link();
    see(held_by(bob, "43"));
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, AsksAgainWhatALinkLost) {
    watch();
    asked();
    break_link();
    see(held_by(ann, "42"));
    EXPECT_THAT(told->seen, SizeIs(1));
    EXPECT_THAT(told->troubles, IsEmpty());
}

TEST_F(EngineWatch, TellsNoHolderAfterOneWithAGreaterToken) {
    watch();
    see(held_by(bob, "43"));
    break_link();
    see(held_by(ann, "42"));  // of a server that took over and lacks the last grant
    EXPECT_THAT(told->seen, SizeIs(1));
    changed();
    see(free_after("42"));
    EXPECT_TRUE(told->seen.back().is_free());
    EXPECT_EQ(told->seen.back().token, 43U);
}

// It expired, or was evicted, while the holder goes on.
TEST_F(EngineWatch, TellsNothingIfTheNodeForgetsTheTokenOfAHolder) {
    watch();
    see(held_by(ann, "42"));
    later(5002ms);
    see(held_by(ann, "0"));
    EXPECT_THAT(told->seen, SizeIs(1));
    changed();
    see(held_by(ann, "0", "5000", "new note"));
    ASSERT_THAT(told->seen, SizeIs(2));
    EXPECT_EQ(told->seen[1].token, 42U);
    changed();
    see(free_after("0"));
    ASSERT_THAT(told->seen, SizeIs(3));
    EXPECT_EQ(told->seen[2].token, 42U);
}

TEST_F(EngineWatch, RemembersTheGreatestTokenThroughAnswersWithoutOne) {
    watch();
    see(held_by(bob, "43"));
    changed();
    see(held_by(bob, "0"));
    changed();
    see(free_after("0"));
    changed();
    see(held_by(bob, "0"));  // its token is not known any more
    EXPECT_THAT(told->seen, SizeIs(3));
    changed();
    see(held_by(ann, "42"));
    EXPECT_THAT(told->seen, SizeIs(3)) << "older than what was told";
    changed();
    see(held_by(ann, "44"));
    EXPECT_THAT(told->seen, SizeIs(4));
}

TEST_F(EngineWatch, RemembersTheTokensOfAKeptHoldThatAreNotTold) {
    const std::string kept = "hf_fedcba9876543210.01.0123456789abcdefghijkl";
    watch();
    see(held_by(kept, "42"));
    changed();
    see(held_by(kept, "50"));
    EXPECT_THAT(told->seen, SizeIs(1)) << "a renewal moves it";
    changed();
    see(held_by(ann, "49"));
    EXPECT_THAT(told->seen, SizeIs(1));
    changed();
    see(held_by(ann, "51"));
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, SeveralOfALockAreToldByOneMessage) {
    watch();
    see(free_after("0"));
    const std::string one = id;
    watch();
    see(free_after("0"));
    push("changed " + one + " " + id);
    EXPECT_THAT(send(), SizeIs(2));
}

TEST_F(EngineWatch, AsksMoreOftenWhereTheNodeHasNoRoomForIt) {
    watch();
    see(list({"0", "41", "untold"}));
    later(1s);
    see(list({"1", ann, "5000", "42", "", "untold"}));
    later(1s);
    see(held_by(ann, "42"));
    later(1s);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, TellsARefusedSubscriptionOnceAndAsksMoreOften) {
    const failure why{errc::no_permission, "no right to the channel"};
    server.confirm_subscriptions(false);
    watch();
    asked();
    subject.node(0).on_subscription_refused(why, all_locks(), now);
    receive(held_by(ann, "42"));
    EXPECT_THAT(told->troubles, ElementsAre(errc::no_permission));
    for (int i = 0; i < 3; ++i) {
        server.take_subscriptions();
        later(1s);
        EXPECT_THAT(server.take_subscriptions(), SizeIs(1)) << "rights may have been given";
        EXPECT_EQ(asked().arguments.at(1), "-");
        subject.node(0).on_subscription_refused(why, all_locks(), now);
        receive(held_by(ann, "42"));
    }
    EXPECT_THAT(told->troubles, SizeIs(1));
    server.confirm_subscriptions(true);
    later(1s);
    see(held_by(ann, "42"));
    EXPECT_EQ(asked().arguments.at(1), "hf:wake:" + subject.id().text());
    receive(held_by(ann, "42"));
    later(1s);
    EXPECT_THAT(send(), IsEmpty());
    subject.node(0).on_subscription_refused(why, all_locks(), now);
    EXPECT_THAT(told->troubles, SizeIs(2));
}

// The subscription was refused, or its channel given up, while the question was in flight.
TEST_F(EngineWatch, SubscribesBeforeItAsksAgain) {
    watch();
    see(held_by(ann, "42"));
    changed();
    asked();
    changed();
    server.take_subscriptions();
    subject.node(0).on_subscription_refused({errc::no_permission, ""}, all_locks(), now);
    receive(held_by(ann, "42"));
    EXPECT_THAT(server.take_subscriptions(), SizeIs(1));
    asked();
}

TEST_F(EngineWatch, TellsATroubleOnceAndGoesOn) {
    watch();
    see("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    later(1s);
    see("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    EXPECT_THAT(told->troubles, ElementsAre(errc::wrong_type));
    later(1s);
    see(held_by(ann, "42"));
    EXPECT_THAT(told->seen, SizeIs(1));
}

TEST_F(EngineWatch, PollsWhereNobodyCanPush) {
    server.wake_by(woken_by::poll, now);
    watch();
    EXPECT_EQ(asked().arguments.at(1), "-");
    receive(held_by(ann, "42"));
    later(250ms);
    see(held_by(bob, "43"));
    EXPECT_THAT(told->seen, SizeIs(2));
}

TEST_F(EngineWatch, SaysThatItStopsAndHearsNothingMore) {
    lock_watch& one = watch();
    see(held_by(ann, "42"));
    subject.unwatch(one, now);
    const question last = asked();
    EXPECT_EQ(last.arguments.at(1), "");
    receive(free_after("42"));
    changed();
    later(20s);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(told->seen, SizeIs(1));
}

TEST_F(EngineWatch, StopsAlsoWhileAQuestionIsInFlight) {
    lock_watch& one = watch();
    asked();
    subject.unwatch(one, now);
    receive(held_by(ann, "42"));
    EXPECT_EQ(asked().arguments.at(1), "") << "what is in flight has written it down";
    receive(held_by(ann, "42"));
    later(20s);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_THAT(told->seen, IsEmpty());
}

}  // namespace
}  // namespace holdfast::engine::engine_watch_test
