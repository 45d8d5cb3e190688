// The loop of effects: what the outside does while an effect is carried out.

#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::testing::engine_effects_test {
namespace {

using ::testing::IsEmpty;

class EngineEffects : public engine_fixture {
protected:
    acquire_terms terms(owner_id owner = owner_id{7}) const {
        return {.keys = keys, .options = {.lease = 3000ms}, .owner = owner, .limit = {waiting::in_queue, never}};
    }
};

// Releases at once, and asks for another lock, inside acquired().
class restless final : public acquire_completion {
public:
    restless(engine& subject, acquire_completion& next, acquire_terms wanted, instant now)
        : subject_(subject), next_(next), wanted_(std::move(wanted)), now_(now) {}
    bool is_inside = false;

private:
    void acquired(hold& held) override {
        is_inside = true;
        subject_.release(held, access::exclusive, nullptr, never, now_);
        subject_.acquire(next_, wanted_, now_);
        is_inside = false;
    }
    void refused(const refusal&) override {}

    engine& subject_;
    acquire_completion& next_;
    acquire_terms wanted_;
    instant now_;
};

TEST_F(EngineEffects, ACompletionMayReleaseAndAcquireAgain) {
    recorded_request next;
    restless eager(subject, next, terms(owner_id{8}), now);
    subject.acquire(eager, terms(), now);
    const std::string id = send_one().arguments.at(0);
    receive(list({"1", "42"}));
    const std::vector<question> sent = send();
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0].script, "mutex/release");
    EXPECT_EQ(sent[0].arguments.at(0), id);
    EXPECT_EQ(sent[1].script, "mutex/acquire");
    receive(list({"1", "0"}));
    receive(list({"1", "43"}));
    ASSERT_NE(next.held, nullptr);
    EXPECT_EQ(next.held->token(), 43U);
    EXPECT_EQ(subject.holds(), 1U);
}

// What a refusal leads to is carried out after it, never inside it.
class nested final : public acquire_completion {
public:
    nested(engine& subject, acquire_terms wanted, instant now)
        : subject_(subject), wanted_(std::move(wanted)), now_(now) {}
    int depth = 0;
    int deepest = 0;
    int refusals = 0;

private:
    void acquired(hold&) override {}
    void refused(const refusal&) override {
        ++depth;
        deepest = std::max(deepest, depth);
        if (++refusals < 3) subject_.acquire(*this, wanted_, now_);
        --depth;
    }

    engine& subject_;
    acquire_terms wanted_;
    instant now_;
};

TEST_F(EngineEffects, NoCompletionRunsWithinAnother) {
    subject.acquire(first, terms(), now);
    send_one();
    receive(list({"1", "42"}));
    acquire_terms other_kind = terms();
    other_kind.options.kind = lock_kind::read_write;
    nested stubborn(subject, other_kind, now);
    subject.acquire(stubborn, other_kind, now);
    EXPECT_EQ(stubborn.refusals, 3);
    EXPECT_EQ(stubborn.deepest, 1);
}

// The call was taken back before the loop came to send it: it is not sent, and its memory serves the next one.
class impatient final : public acquire_completion {
public:
    std::optional<errc> code;

private:
    void acquired(hold&) override {}
    void refused(const refusal& why) override { code = why.code; }
};

TEST_F(EngineEffects, AnAcquisitionThatIsCancelledBeforeItIsWrittenSendsNothing) {
    impatient one;
    subject.acquire(one, terms(), now);
    subject.cancel(one, errc::cancelled, now);
    EXPECT_EQ(one.code, errc::cancelled);
    EXPECT_THAT(send(), IsEmpty());
    EXPECT_EQ(subject.holds(), 0U);
    subject.acquire(first, terms(), now);
    EXPECT_EQ(send_one().script, "mutex/acquire");
}

TEST_F(EngineEffects, TheChannelIsSubscribedBeforeTheFirstRequestThatNamesIt) {
    subject.acquire(first, terms(), now);
    EXPECT_THAT(server.take_subscriptions(), ::testing::ElementsAre("+hf:wake:" + subject.id().text()));
    EXPECT_EQ(send_one().script, "mutex/acquire");
}

// The answer ends the link. The release has not run, so the acquire before it may have left something at the server:
// the client listens for a lease, and gives back what is granted to the id.
TEST_F(EngineEffects, AReleaseThatNeverRanKeepsListeningForWhatItShouldHaveUndone) {
    subject.acquire(first, terms(), now);
    const std::string id = send_one().arguments.at(0);
    subject.cancel(first, errc::cancelled, now);
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"2", "900", "somebody", "77", "0", "41"}));
    receive("-NOAUTH Authentication required.\r\n");
    EXPECT_EQ(subject.holds(), 1U);
    push("grant " + id + " 42");
    const question undone = send_one();
    EXPECT_EQ(undone.script, "mutex/release");
    EXPECT_EQ(undone.arguments.at(1), "42");
}

}  // namespace
}  // namespace holdfast::engine::testing::engine_effects_test
