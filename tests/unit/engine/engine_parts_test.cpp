// The engine on a node of many servers, as a Cluster is: what happens to one lock's server is nothing to another lock.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_parts_test {
namespace {

using namespace testing;

class EngineParts : public engine_fixture {
protected:
    EngineParts() : engine_fixture(channels::one_per_tag) {}

    acquire_terms terms(const std::string& name) const {
        return {.keys = keys_for(name), .options = {.lease = 3000ms}, .limit = {waiting::in_queue, now + 2s}};
    }
    /// Its hold id.
    std::string ask(recorded_request& request, const std::string& name) {
        subject.acquire(request, terms(name), now);
        return send_one().arguments.at(0);
    }
    /// The same, and waits in the queue; the last token given out was 41.
    std::string wait(recorded_request& request, const std::string& name) {
        const std::string id = ask(request, name);
        receive(queued);
        return id;
    }
    std::string channel_of(const std::string& tag) const { return "hf:wake:{" + tag + "}:" + subject.id().text(); }
    void push_to(const std::string& tag, const std::string& text) {
        server.push(pushed{"smessage", channel_of(tag), text}, now);
    }
    std::vector<std::string> ids_asked() {
        std::vector<std::string> ids;
        for (const question& each : send()) ids.push_back(each.arguments.at(0));
        return ids;
    }

    const std::string queued = list({"2", "900", "other", "77", "0", "41"});
    recorded_request second;
    recorded_request third;
};

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(EngineParts, AfterALossOnlyThoseWaitersPollWhoseLinkItWas) {
    const std::string x = wait(first, "x");
    wait(second, "y");
    server.lose_part("x", now);
    EXPECT_THAT(ids_asked(), IsEmpty());
    server.regain_part("x", now);
    EXPECT_THAT(ids_asked(), ElementsAre(x));
}

TEST_F(EngineParts, APushIsBelievedOnTheLinkOfThePollOfThatLock) {
    const std::string x = wait(first, "x");
    const std::string y = wait(second, "y");
    server.lose_part("x", now);
    push_to("x", "grant " + x + " 42");
    push_to("y", "grant " + y + " 43");
    EXPECT_EQ(first.held, nullptr) << "no poll was answered since its link broke";
    ASSERT_NE(second.held, nullptr);
    EXPECT_EQ(second.held->token(), 43U);
}

TEST_F(EngineParts, AtItsDeadlineAWaiterIsToldOfItsOwnLink) {
    wait(first, "x");
    wait(second, "y");
    server.lose_part("x", now);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::unreachable);
    EXPECT_EQ(second.refusal_code, errc::timed_out);
}

TEST_F(EngineParts, NothingIsAskedForWhereAServerIsMistrustedAndElsewhereItIs) {
    server.mistrust("x", now + 500ms);
    subject.acquire(first, terms("x"), now);
    EXPECT_THAT(ids_asked(), IsEmpty());
    ask(second, "y");
    receive(list({"1", "42"}));
    EXPECT_NE(second.held, nullptr);
    later(500ms);
    send_one();
    receive(list({"1", "43"}));
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineParts, WhatIsNotSentYetWaitsIfALinkComesUpToAServerThatIsMistrusted) {
    server.lose_part("x", now);
    subject.acquire(first, terms("x"), now);
    subject.acquire(second, terms("y"), now);
    server.mistrust("x", now + 500ms);
    server.regain_part("x", now);
    ASSERT_EQ(ids_asked().size(), 1U);
    receive(list({"1", "42"}));
    EXPECT_NE(second.held, nullptr);
    later(500ms);
    EXPECT_EQ(ids_asked().size(), 1U);
}

TEST_F(EngineParts, WhoDoesNotWaitIsToldWhenAServerThatIsMistrustedWillVote) {
    server.mistrust("x", now + 8s);
    subject.acquire(first, {.keys = keys, .limit = {waiting::not_at_all, now + 2s}}, now);
    EXPECT_EQ(first.refusal_code, errc::recovering);
    EXPECT_EQ(first.why.recovers_in, 8s);
    EXPECT_EQ(first.why.detail, "redis://h grants in 8s");
}

TEST_F(EngineParts, ADeadlineBeforeAServerThatIsMistrustedVotesTellsTheRest) {
    server.mistrust("x", now + 8s);
    subject.acquire(first, {.keys = keys, .limit = {waiting::in_queue, now + 2s}}, now);
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::recovering);
    EXPECT_EQ(first.why.recovers_in, 6s);
}

// The former server may have granted it. Whoever is asked now is not trusted yet, so nothing tells; in the end it is
// given back.
TEST_F(EngineParts, WhatTheFormerServerMayHaveGrantedIsGivenBackIfItsSuccessorIsMistrusted) {
    const std::string x = ask(first, "x");
    server.lose_part("x", now);
    server.mistrust("x", now + 60s);
    server.regain_part("x", now);
    EXPECT_THAT(ids_asked(), IsEmpty());
    later(2s);
    EXPECT_NE(first.refusal_code, std::nullopt);
    const question back = send_one();
    EXPECT_EQ(back.script, "mutex/release");
    EXPECT_EQ(back.arguments.at(0), x);
}

// Its answer tells where it stood at the former server, whose word of its turn would not be heard any more.
TEST_F(EngineParts, AfterAnAnswerOfTheFormerServerTheWaiterAsksTheNewOne) {
    const std::string x = wait(first, "x");
    later(1s);
    EXPECT_THAT(ids_asked(), ElementsAre(x)) << "a poll is under way";
    server.lose_part("x", now);
    server.regain_part("x", now);
    EXPECT_THAT(ids_asked(), IsEmpty());
    receive(queued);
    push_to("x", "grant " + x + " 42");
    EXPECT_EQ(first.held, nullptr) << "not proved by a poll since";
    later(0ms);
    EXPECT_THAT(ids_asked(), ElementsAre(x));
    receive(queued);
    push_to("x", "grant " + x + " 43");
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineParts, WhoeverWaitsToTrustAServerAsksTheTrustedOneThatTheLockHasMovedTo) {
    server.mistrust("x", now + 60s);
    subject.acquire(first, terms("x"), now);
    EXPECT_THAT(ids_asked(), IsEmpty());
    server.lose_part("x", now);
    server.mistrust("x", now);
    server.regain_part("x", now);
    EXPECT_EQ(ids_asked().size(), 1U);
    receive(list({"1", "42"}));
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineParts, AChannelIsSubscribedWhileAnybodyOfItsTagWaits) {
    wait(first, "t");
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+" + channel_of("t")));
    acquire_terms same_tag = terms("t");
    same_tag.keys =
        std::make_shared<const lock_keys>(wire::make_keys(wire::lock_name("other:{t}"), wire::key_naming::raw, ""));
    subject.acquire(second, same_tag, now);
    send();
    receive(queued);
    wait(third, "x");
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+" + channel_of("x")));
    subject.cancel(first, errc::cancelled, now);
    EXPECT_THAT(server.take_subscriptions(), IsEmpty()) << "the other one of this tag still waits";
    subject.cancel(second, errc::cancelled, now);
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("-" + channel_of("t")));
}

TEST_F(EngineParts, AChannelIsNamedByTheQuestionAndLeftWhenTheLockIsAcquired) {
    subject.acquire(first, terms("x"), now);
    const question asked = send_one();
    EXPECT_THAT(asked.arguments, ::testing::Contains(channel_of("x")));
    receive(list({"1", "42"}));
    ASSERT_NE(first.held, nullptr);
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+" + channel_of("x"), "-" + channel_of("x")));
}

TEST_F(EngineParts, APushOnAnotherChannelThanTheLocksOwnIsNotBelieved) {
    const std::string x = wait(first, "x");
    push_to("y", "grant " + x + " 42");
    server.push(pushed{"message", channel_of("x"), "grant " + x + " 42"}, now);
    EXPECT_EQ(first.held, nullptr);
    push_to("x", "grant " + x + " 42");
    EXPECT_NE(first.held, nullptr);
}

TEST_F(EngineParts, ARefusedChannelEndsTheWaitOfThoseWhoseItIsAndIsTriedAgainByTheNext) {
    wait(first, "x");
    wait(second, "y");
    server.take_subscriptions();
    subject.node(0).on_subscription_refused({errc::no_permission, "no"}, only("x"), now);
    EXPECT_EQ(first.refusal_code, errc::no_permission);
    EXPECT_EQ(second.refusal_code, std::nullopt);
    EXPECT_THAT(server.take_subscriptions(), IsEmpty()) << "it is not subscribed: there is nothing to leave";
    send();
    receive(list({"0"}));  // nothing of it is left there
    wait(third, "x");
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+" + channel_of("x")));
}

// A copy of its request may still be on its way: what that gets is pushed to this id, and given back.
TEST_F(EngineParts, AChannelIsKeptForAnIdThatMayYetBeGrantedSomething) {
    const std::string x = wait(first, "x");
    later(1s);  // polls
    send();
    break_link();
    send();
    receive(queued);
    server.take_subscriptions();
    subject.cancel(first, errc::cancelled, now);
    send();
    receive(list({"0"}));
    EXPECT_THAT(server.take_subscriptions(), IsEmpty());
    push_to("x", "grant " + x + " 50");
    const question back = send_one();
    EXPECT_EQ(back.script, "mutex/release");
    EXPECT_EQ(back.arguments.at(0), x);
    receive(list({"1", "0"}));
    later(10s);
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("-" + channel_of("x")));
}

class EngineOnOneServer : public engine_fixture {};

TEST_F(EngineOnOneServer, SubscribesOneChannelForAllItsLocksAndKeepsIt) {
    for (const char* const name : {"x", "y"}) {
        recorded_request request;
        subject.acquire(request, {.keys = keys_for(name), .options = {.lease = 3000ms}}, now);
        send();
        receive(list({"1", "42"}));
        ASSERT_NE(request.held, nullptr);
    }
    EXPECT_THAT(server.take_subscriptions(), ElementsAre("+hf:wake:" + subject.id().text()));
}

}  // namespace
}  // namespace holdfast::engine::engine_parts_test
