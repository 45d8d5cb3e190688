// Links to members of a Cluster: ASKING, sharded channels, and refusals that the filter takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/multiplexer_fixture.hpp"

namespace holdfast::redis::multiplexer_cluster_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::IsEmpty;
using testing::multiplexer_fixture;
using testing::recorded_command;
using life = command::state;

class listed_refusals : public refusal_filter {
public:
    explicit listed_refusals(testing::event_log& log) : log_(log) {}
    bool takes(command& request, const reply_view& refusal, instant) override {
        log_.push_back("refused: " + std::string(refusal.text()));
        EXPECT_EQ(request.life(), life::idle);
        taken = &request;
        return refusal.text().starts_with("MOVED");
    }
    command* taken = nullptr;

private:
    testing::event_log& log_;
};

class MultiplexerRefusals : public multiplexer_fixture {
protected:
    MultiplexerRefusals() { wires.filter_refusals(&filter); }

    listed_refusals filter{log};
    recorded_command a{log, "a"};
    recorded_command b{log, "b"};
};

TEST_F(MultiplexerRefusals, WhatTheFilterTakesItsOwnerDoesNotSee) {
    wires.submit(a);
    wires.submit(b);
    write();
    receive("-MOVED 1 h:1\r\n+fine\r\n");
    EXPECT_THAT(log, ElementsAre("refused: MOVED 1 h:1", "b=fine"));
    EXPECT_EQ(a.life(), life::idle);
    wires.submit(a);
    EXPECT_EQ(write(), encoded({"a"})) << "it may be submitted anew";
}

TEST_F(MultiplexerRefusals, WhatTheFilterDoesNotTakeIsAnswered) {
    wires.submit(a);
    write();
    receive("-ERR no\r\n");
    EXPECT_THAT(log, ElementsAre("refused: ERR no", "a=ERR no"));
    EXPECT_EQ(a.life(), life::done);
}

TEST_F(MultiplexerRefusals, AnAbandonedCommandIsNotTheFilters) {
    wires.submit(a);
    write();
    a.abandon();
    receive("-MOVED 1 h:1\r\n");
    EXPECT_THAT(log, ElementsAre("a=MOVED 1 h:1"));
}

TEST_F(MultiplexerRefusals, WhatBelongsToTheLinkIsNotTheFilters) {
    wires.submit_first(a);
    write();
    receive("-MOVED 1 h:1\r\n");
    EXPECT_THAT(log, ElementsAre("a=MOVED 1 h:1"));
    wires.submit(a);
    write();
    receive("-MOVED 1 h:1\r\n");
    EXPECT_EQ(filter.taken, &a) << "used anew it is as any other";
}

TEST_F(MultiplexerRefusals, AForgottenScriptIsNoRefusal) {
    auto script = make_script("s");
    wires.submit(script);
    write();
    receive("-NOSCRIPT x\r\n");
    EXPECT_EQ(write(), eval("s"));
    receive("-MOVED 1 h:1\r\n");
    EXPECT_THAT(log, ElementsAre("refused: MOVED 1 h:1"));
}

TEST_F(MultiplexerRefusals, WhatFollowsIsVoidIfTheFilterGivesTheLinkUp) {
    class quitter : public refusal_filter {
    public:
        explicit quitter(multiplexer& wires) : wires_(wires) {}
        bool takes(command&, const reply_view&, instant now) override {
            wires_.link_down({errc::read_only, "no primary"}, now);
            return true;
        }

    private:
        multiplexer& wires_;
    } quits(wires);
    wires.filter_refusals(&quits);
    wires.submit(a);
    wires.submit(b);
    write();
    EXPECT_FALSE(receive("-READONLY x\r\n+2\r\n"));
    EXPECT_THAT(log, ElementsAre("b!outcome_unknown"));
}

TEST_F(MultiplexerRefusals, WhatIsNotWrittenCanBeTakenBack) {
    wires.submit(a);
    write();
    wires.submit(b);
    EXPECT_TRUE(wires.is_waiting(b));
    EXPECT_THAT(wires.take_waiting(), ElementsAre(&b));
    EXPECT_EQ(b.life(), life::idle);
    EXPECT_EQ(a.life(), life::written);
    EXPECT_FALSE(wires.is_waiting(b));
    EXPECT_FALSE(wires.has_output());
}

class MultiplexerAsking : public multiplexer_fixture {
protected:
    const std::string asking = encoded({"ASKING"});
};

TEST_F(MultiplexerAsking, GoesInFrontAndItsAnswerIsNobodys) {
    auto a = make("a");
    auto b = make("b");
    routing::set_asking(a);
    wires.submit(a);
    wires.submit(b);
    EXPECT_EQ(write(), asking + encoded({"a"}) + encoded({"b"}));
    const std::string answers = "+OK\r\n+1\r\n+2\r\n";
    for (const char byte : answers) receive(std::string_view(&byte, 1));
    EXPECT_THAT(log, ElementsAre("a=1", "b=2"));
    EXPECT_TRUE(a.was_redirected());
    EXPECT_FALSE(b.was_redirected());
}

// ASKING is valid for one command only.
TEST_F(MultiplexerAsking, IsSaidAgainBeforeAScriptsText) {
    auto a = make_script("a");
    routing::set_asking(a);
    wires.submit(a);
    EXPECT_EQ(write(), asking + evalsha("a"));
    receive("+OK\r\n-NOSCRIPT x\r\n");
    EXPECT_EQ(write(), asking + eval("a"));
    receive("+OK\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("a=1"));
}

TEST_F(MultiplexerAsking, ThatItWasRefusedShowsInTheAnswer) {
    auto a = make("a");
    routing::set_asking(a);
    wires.submit(a);
    write();
    receive("-NOPERM asking\r\n-MOVED 1 h:1\r\n");
    EXPECT_THAT(log, ElementsAre("a=MOVED 1 h:1"));
}

TEST_F(MultiplexerAsking, ALinkThatIsLostBetweenTheTwoAnswersEndsItOnce) {
    auto a = make("a");
    routing::set_asking(a);
    wires.submit(a);
    write();
    receive("+OK\r\n");
    EXPECT_EQ(wires.unanswered(), 1U);
    lose_link();
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown"));
    wires.submit(a);
    EXPECT_EQ(write(), asking + encoded({"a"}));
    receive("+OK\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown", "a=1")) << "each ASKING has an answer of its own";
}

class MultiplexerShardedChannel : public multiplexer_fixture {
protected:
    recorded_command on{log, "on"};
    recorded_command off{log, "off"};
    recorded_command after{log, "after"};
};

TEST_F(MultiplexerShardedChannel, IsConfirmedByThePushOfThatChannel) {
    on.set_sharded_subscription("c");
    wires.submit(on);
    wires.submit(after);
    EXPECT_EQ(write(), encoded({"SSUBSCRIBE", "c"}) + encoded({"after"}));
    receive(">3\r\n+ssubscribe\r\n+other\r\n:1\r\n>3\r\n+sunsubscribe\r\n+c\r\n:1\r\n");
    EXPECT_THAT(log, ElementsAre("push: ssubscribe other ", "push: sunsubscribe c "));
    receive(">3\r\n+ssubscribe\r\n+c\r\n:1\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("push: ssubscribe other ", "push: sunsubscribe c ", "on=[3]", "after=1"));
}

TEST_F(MultiplexerShardedChannel, AskedForWhereTheSlotIsMovingTo) {
    on.set_sharded_subscription("c");
    routing::set_asking(on);
    wires.submit(on);
    EXPECT_EQ(write(), encoded({"ASKING"}) + encoded({"SSUBSCRIBE", "c"}));
    receive("+OK\r\n>3\r\n+ssubscribe\r\n+c\r\n:1\r\n");
    EXPECT_THAT(log, ElementsAre("on=[3]"));
}

// Answers of Redis 7.0.15 to SUNSUBSCRIBE: by the owner, for a channel without subscription, and after the slot has
// left, which it announces before.
TEST_F(MultiplexerShardedChannel, IsLeftWhateverTheServerSaysToThat) {
    const std::string push = ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n";
    const std::string echo = "$1\r\nc\r\n";
    for (const std::string& said : {push + echo, push + "-MOVED 7365 127.0.0.1:17002\r\n" + echo,
                                    "-MOVED 7365 127.0.0.1:17002\r\n" + push + echo}) {
        log.clear();
        off.set_unsubscription("c");
        wires.submit(off);
        wires.submit(after);
        EXPECT_EQ(write(), encoded({"SUNSUBSCRIBE", "c"}) + encoded({"PING", "c"}) + encoded({"after"}));
        for (const char byte : said + "+1\r\n") EXPECT_FALSE(receive(std::string_view(&byte, 1)));
        EXPECT_THAT(log, ElementsAre("push: sunsubscribe c ", "off=c", "after=1")) << said;
    }
}

TEST_F(MultiplexerShardedChannel, AUserWhoMayNotPingLosesTheLinkAndNoAnswerGoesAstray) {
    off.set_unsubscription("c");
    wires.submit(off);
    wires.submit(after);
    write();
    const auto why = receive("-NOPERM no ping\r\n+1\r\n");
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::protocol_error);
    EXPECT_THAT(log, IsEmpty());
    lose_link();
    EXPECT_THAT(log, ElementsAre("off!outcome_unknown", "after!outcome_unknown"));
}

TEST_F(MultiplexerShardedChannel, TheNextUseOfTheCommandIsAsAnyOther) {
    off.set_unsubscription("c");
    wires.submit(off);
    write();
    receive("$1\r\nc\r\n");
    off.set_payload(encoded({"x"}));
    wires.submit(off);
    write();
    receive("-ERR no\r\n");
    EXPECT_THAT(log, ElementsAre("off=c", "off=ERR no"));
}

}  // namespace
}  // namespace holdfast::redis::multiplexer_cluster_test
