// Which command gets which reply, and what happens to commands when a link is lost.
#include "redis/session/multiplexer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/redis/session/multiplexer_fixture.hpp"

namespace holdfast::redis::multiplexer_test {
namespace {

using namespace std::chrono_literals;
using testing::bulk;
using ::testing::ElementsAre;
using testing::encoded;
using ::testing::IsEmpty;
using testing::multiplexer_fixture;
using testing::recorded_command;
using testing::say;
using life = command::state;

class Multiplexer : public multiplexer_fixture {};

TEST_F(Multiplexer, ACommandWaitsIsWrittenAndIsDone) {
    auto a = make("a");
    EXPECT_EQ(a.life(), life::idle);
    wires.submit(a);
    EXPECT_EQ(a.life(), life::waiting);
    EXPECT_EQ(wires.waiting(), 1U);
    EXPECT_TRUE(wires.has_output());
    now += 5ms;
    EXPECT_EQ(wires.begin_write(now), encoded({"a"}));
    EXPECT_EQ(a.life(), life::written) << "from the beginning of the write on the server may have seen it";
    EXPECT_EQ(a.written_at(), now);
    EXPECT_EQ(wires.oldest_unanswered(), now);
    wires.end_write();
    EXPECT_FALSE(wires.has_output());
    EXPECT_FALSE(receive("+ok\r\n"));
    EXPECT_EQ(a.life(), life::done);
    EXPECT_EQ(wires.oldest_unanswered(), never);
    EXPECT_THAT(log, ElementsAre("a=ok"));
}

TEST_F(Multiplexer, WhateverWaitsGoesOutInOneWriteInOrder) {
    auto a = make("a");
    auto b = make("b");
    auto c = make("c");
    wires.submit(a);
    wires.submit(b);
    const std::string first(wires.begin_write(now));
    wires.submit(c);  // during that write
    wires.end_write();
    EXPECT_EQ(first, encoded({"a"}) + encoded({"b"}));
    EXPECT_EQ(write(), encoded({"c"}));
    receive("+1\r\n+2\r\n+3\r\n");
    EXPECT_THAT(log, ElementsAre("a=1", "b=2", "c=3"));
}

TEST_F(Multiplexer, PushesAreHandedOutWhereTheyStoodOnTheWire) {
    auto a = make("a");
    auto b = make("b");
    wires.submit(a);
    wires.submit(b);
    write();
    const std::string bytes = ">2\r\n+first\r\n+x\r\n+1\r\n>1\r\n+between\r\n*1\r\n:7\r\n>1\r\n+last\r\n";
    for (const char byte : bytes) receive(std::string_view(&byte, 1));
    EXPECT_THAT(log, ElementsAre("push: first x", "a=1", "push: between", "b=[1]", "push: last"));
}

TEST_F(Multiplexer, ACallbackMaySubmitItsCommandAgain) {
    auto a = make("a");
    a.afterwards = [&](instant) {
        if (log.size() == 1) wires.submit(a);
    };
    wires.submit(a);
    write();
    receive("+1\r\n");
    EXPECT_EQ(write(), encoded({"a"}));
    receive("+2\r\n");
    EXPECT_THAT(log, ElementsAre("a=1", "a=2"));
}

TEST_F(Multiplexer, AClosedGateLetsOnlyTheGreetingThrough) {
    multiplexer closed;
    auto a = make("a");
    auto hello = make("hello");
    closed.submit(a);
    EXPECT_FALSE(closed.has_output());
    closed.submit_first(hello);
    EXPECT_EQ(closed.begin_write(now), encoded({"hello"}));
    closed.end_write();
    EXPECT_FALSE(closed.has_output());
    closed.open_gate();
    EXPECT_EQ(closed.begin_write(now), encoded({"a"}));
}

TEST_F(Multiplexer, TheGreetingOvertakesWhatWaits) {
    auto a = make("a");
    auto first = make("first");
    wires.submit(a);
    wires.submit_first(first);
    EXPECT_EQ(write(), encoded({"first"}) + encoded({"a"}));
}

TEST_F(Multiplexer, AScriptTheServerForgotIsSentOnceMoreWithItsText) {
    auto a = make_script("a");
    wires.submit(a);
    EXPECT_EQ(write(), evalsha("a"));
    receive("-NOSCRIPT No matching script.\r\n");
    EXPECT_EQ(a.life(), life::waiting);
    EXPECT_THAT(log, IsEmpty()) << "its owner does not notice";
    EXPECT_EQ(write(), eval("a"));
    receive("-NOSCRIPT from inside of the script\r\n");
    EXPECT_THAT(log, ElementsAre("a=NOSCRIPT from inside of the script")) << "once, not for ever";
}

TEST_F(Multiplexer, ACommandUsedAnewTriesTheHashFirstAgain) {
    auto a = make_script("a");
    wires.submit(a);
    write();
    receive("-NOSCRIPT x\r\n");
    write();
    receive("+1\r\n");
    a.script_payload(say, 2) = bulk("0") + bulk("a");
    wires.submit(a);
    EXPECT_EQ(write(), evalsha("a"));
}

// An undo must never overtake what it undoes: acquire and release that were both answered NOSCRIPT stay in order.
TEST_F(Multiplexer, ScriptsSentAgainKeepTheirOrder) {
    auto a = make_script("a");
    auto b = make_script("b");
    auto c = make_script("c");
    auto d = make("d");
    wires.submit(a);
    wires.submit(b);
    wires.submit(c);
    write();
    wires.submit(d);
    receive("-NOSCRIPT x\r\n-NOSCRIPT x\r\n");
    receive("-NOSCRIPT x\r\n");
    EXPECT_EQ(write(), eval("a") + eval("b") + eval("c") + encoded({"d"}));
}

TEST_F(Multiplexer, TheFirstOfItsScriptOnALinkBringsTheTextIfOthersMustNotOvertakeIt) {
    auto a = make_script("a");
    auto b = make_script("b");
    for (auto* each : {&a, &b}) {
        each->send_text_at_first();
        wires.submit(*each);
    }
    EXPECT_EQ(write(), eval("a") + evalsha("b"));
    receive("-BUSY later\r\n");
    a.script_payload(say, 2) = bulk("0") + bulk("a");
    a.send_text_at_first();
    wires.submit(a);
    EXPECT_EQ(write(), eval("a")) << "it may not have been kept";
    wires.link_down({errc::unreachable, "gone"}, now);
    wires.link_up();
    wires.open_gate();
    b.script_payload(say, 2) = bulk("0") + bulk("b");
    b.send_text_at_first();
    wires.submit(b);
    EXPECT_EQ(write(), eval("b")) << "the next link may go to another server";
}

TEST_F(Multiplexer, AScriptNobodyWantsAnyMoreIsNotSentAgain) {
    auto a = make_script("a");
    wires.submit(a);
    write();
    a.abandon();
    receive("-NOSCRIPT x\r\n");
    EXPECT_FALSE(wires.has_output());
    EXPECT_THAT(log, ElementsAre("a=NOSCRIPT x"));
    EXPECT_EQ(a.life(), life::done);
}

TEST_F(Multiplexer, LosingTheLinkLeavesWrittenCommandsUnknownAndWaitingOnesQueued) {
    auto a = make("a");
    auto b = make("b");
    wires.submit(a);
    write();
    wires.submit(b);
    wires.link_down({errc::unreachable, "gone"}, now);
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown"));
    EXPECT_EQ(a.last.detail, "gone");
    EXPECT_EQ(b.life(), life::waiting);
    EXPECT_FALSE(wires.has_output()) << "the gate is closed until the next link is greeted";
    wires.link_up();
    wires.open_gate();
    EXPECT_EQ(write(), encoded({"b"}));
    receive("+2\r\n");
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown", "b=2"));
}

TEST_F(Multiplexer, ACommandCaughtInTheMiddleOfItsWriteIsUnknownToo) {
    auto a = make("a");
    wires.submit(a);
    wires.begin_write(now);
    lose_link();
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown"));
    EXPECT_FALSE(wires.has_output());
}

TEST_F(Multiplexer, NothingOfALostLinkIsHandedOut) {
    auto a = make("a");
    auto b = make("b");
    wires.submit(a);
    wires.submit(b);
    write();
    receive("+1");  // half a reply
    lose_link();
    auto c = make("c");
    wires.submit(c);
    write();
    receive("+3\r\n");
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown", "b!outcome_unknown", "c=3"));
}

TEST_F(Multiplexer, WhatFollowsIsVoidIfACallbackGivesTheLinkUp) {
    auto a = make("a");
    auto b = make("b");
    a.afterwards = [&](instant) { wires.link_down({errc::unreachable, "given up"}, now); };
    wires.submit(a);
    wires.submit(b);
    write();
    EXPECT_FALSE(receive("+1\r\n+2\r\n>1\r\n+push\r\n"));
    EXPECT_THAT(log, ElementsAre("a=1", "b!outcome_unknown"));
}

TEST_F(Multiplexer, ACommandRepeatedWhenItsLinkDiesGoesOutOnTheNextOne) {
    auto a = make("a");
    a.afterwards = [&](instant) {
        if (log.size() == 1) wires.submit(a);
    };
    wires.submit(a);
    write();
    lose_link();
    EXPECT_EQ(write(), encoded({"a"}));
    receive("+again\r\n");
    EXPECT_THAT(log, ElementsAre("a!outcome_unknown", "a=again"));
}

TEST_F(Multiplexer, OnlyAWaitingCommandCanBeWithdrawn) {
    auto a = make("a");
    auto b = make("b");
    wires.submit(a);
    wires.submit(b);
    EXPECT_TRUE(wires.withdraw(a));
    EXPECT_EQ(a.life(), life::idle);
    EXPECT_EQ(write(), encoded({"b"}));
    EXPECT_FALSE(wires.withdraw(b));
    receive("+2\r\n");
    EXPECT_FALSE(wires.withdraw(b));
    EXPECT_THAT(log, ElementsAre("b=2"));
}

TEST_F(Multiplexer, AWaitingCommandEndsAtItsDeadlineAWrittenOneDoesNot) {
    auto a = make("a");
    auto b = make("b");
    auto c = make("c");
    for (auto* each : {&a, &b, &c}) each->give_up_at(now + 10ms);
    b.give_up_at(now + 20ms);
    wires.submit(a);
    write();
    wires.submit(b);
    wires.submit(c);
    EXPECT_EQ(wires.earliest_deadline(), now + 10ms);
    wires.expire({errc::timed_out, ""}, now + 10ms - 1ns);
    EXPECT_THAT(log, IsEmpty());
    wires.expire({errc::timed_out, ""}, now + 10ms);
    EXPECT_THAT(log, ElementsAre("c!timed_out"));
    EXPECT_EQ(wires.earliest_deadline(), now + 20ms);
    wires.expire({errc::timed_out, ""}, now + 20ms);
    EXPECT_THAT(log, ElementsAre("c!timed_out", "b!timed_out"));
    EXPECT_EQ(wires.earliest_deadline(), never);
    EXPECT_EQ(wires.unanswered(), 1U);
}

TEST_F(Multiplexer, FailingAllThatWaitsSparesWhatIsSubmittedMeanwhile) {
    auto a = make("a");
    auto b = make("b");
    a.afterwards = [&](instant) {
        if (log.size() == 1) wires.submit(a);
    };
    wires.submit(a);
    wires.submit(b);
    wires.fail_waiting({errc::unreachable, ""}, now);
    EXPECT_THAT(log, ElementsAre("a!unreachable", "b!unreachable"));
    EXPECT_EQ(write(), encoded({"a"}));
}

TEST_F(Multiplexer, AReplyNobodyAskedForEndsTheLink) {
    auto a = make("a");
    wires.submit(a);
    write();
    const auto why = receive("+1\r\n+2\r\n");
    EXPECT_THAT(log, ElementsAre("a=1"));
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::protocol_error);
}

TEST_F(Multiplexer, WhatIsNotRespEndsTheLink) {
    auto a = make("a");
    wires.submit(a);
    write();
    const auto why = receive("HTTP/1.1 400 Bad Request\r\n");
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::protocol_error);
}

TEST_F(Multiplexer, AReplyBeyondTheLimitEndsTheLink) {
    auto a = make("a");
    wires.submit(a);
    write();
    const auto why = receive("$4611686018427387904\r\n");
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, errc::reply_too_large);
}

class MultiplexerSubscription : public Multiplexer {
protected:
    MultiplexerSubscription() { subscribe.set_subscription("c"); }

    recorded_command subscribe{log, "subscribe"};
    recorded_command after{log, "after"};
};

TEST_F(MultiplexerSubscription, IsConfirmedByItsPush) {
    wires.submit(subscribe);
    wires.submit(after);
    EXPECT_EQ(write(), encoded({"SUBSCRIBE", "c"}) + encoded({"after"}));
    receive(">3\r\n+message\r\n+c\r\n+early\r\n>3\r\n+subscribe\r\n+c\r\n:1\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("push: message c early", "subscribe=[3]", "after=1"));
}

TEST_F(MultiplexerSubscription, IsRefusedByAnError) {
    wires.submit(subscribe);
    wires.submit(after);
    write();
    receive("-NOPERM no\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("subscribe=NOPERM no", "after=1"));
}

TEST_F(MultiplexerSubscription, APushOfThatKindIsNobodyElsesAnswer) {
    wires.submit(after);
    write();
    receive(">3\r\n+subscribe\r\n+c\r\n:1\r\n+1\r\n");
    EXPECT_THAT(log, ElementsAre("push: subscribe c ", "after=1"));
}

}  // namespace
}  // namespace holdfast::redis::multiplexer_test
