// The engine against a server played by the test: when it believes, and when it must not. Longer stories are the
// simulator's.
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "redis/multiplexer.hpp"

namespace holdfast::engine {
namespace {

using namespace std::chrono_literals;

class counting_random final : public random_source {
public:
    std::uint64_t next() override { return ++count_ * 0x9e3779b97f4a7c15U; }

private:
    std::uint64_t count_ = 0;
};

class silent_observer final : public observer {
    void on_acquired(std::chrono::nanoseconds, how) override {}
    void on_reentered() override {}
    void on_refused() override {}
    void on_released(std::chrono::nanoseconds) override {}
    void on_renewed() override {}
    void on_renewal_failed(const failure&) override {}
    void on_lost(const std::string&, errc) override {}
};

class recorded_request final : public acquire_request {
public:
    hold* held = nullptr;
    std::optional<errc> refusal_code;

private:
    void acquired(hold& got) override { held = &got; }
    void refused(const refusal& why) override { refusal_code = why.code; }
};

// The engine with a real multiplexer for a wire.
class Engine : public ::testing::Test, public outbox, public redis::push_listener {
protected:
    Engine() { wires.open_gate(); }

    void submit(redis::command& request) override { wires.submit(request); }
    bool withdraw(redis::command& request) override { return wires.withdraw(request); }
    void distrust(const failure&) override {}
    void subscribe(const std::string&) override {}
    bool link_is_up() const override { return true; }
    void on_push(const redis::reply_view& message, instant at) override { subject.node(0).on_push(message, at); }

    void send() {
        wires.begin_write(now);
        wires.end_write();
    }
    void receive(std::string_view bytes) {
        const std::span<char> room = wires.prepare(bytes.size());
        std::copy(bytes.begin(), bytes.end(), room.begin());
        wires.commit(bytes.size());
        ASSERT_FALSE(wires.deliver(*this, now));
    }
    acquire_terms terms() const { return {.keys = keys, .owner = owner_id{7}, .lease = 1000ms}; }
    hold& acquired() {
        subject.acquire(first, terms(), now);
        send();
        receive("*2\r\n:1\r\n$2\r\n42\r\n");
        return *first.held;
    }
    void later(milliseconds by) { now += by; }

    counting_random random;
    silent_observer nobody;
    redis::multiplexer wires;
    engine subject{{}, {{this, "redis://h"}}, random, nobody};
    std::shared_ptr<const lock_keys> keys = std::make_shared<const lock_keys>(
        scripts::make_keys(scripts::lock_name("x"), scripts::key_naming::tagged, "hf:"));
    recorded_request first;
    instant now{1h};
};

TEST_F(Engine, CountsValidityFromBeforeTheRequestWasWritten) {
    subject.acquire(first, terms(), now);
    send();
    const instant sent = now;
    later(300ms);
    receive("*2\r\n:1\r\n$2\r\n42\r\n");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->valid_until(), sent + 1000ms - 12ms) << "lease less lease/100 + 2 ms";
}

TEST_F(Engine, DoesNotReEnterAHoldThatRanOutBeforeItsTimerRang) {
    acquired();
    later(5000ms);  // the machine slept; no timer has rung yet
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.held, nullptr);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, IsNotRevivedByALateAnswerToARenewal) {
    const hold& held = acquired();
    later(400ms);
    subject.on_timer(now);
    send();
    later(5000ms);
    const instant before = held.valid_until();
    receive("*1\r\n:1\r\n");
    EXPECT_EQ(held.valid_until(), before);
    recorded_request again;
    subject.acquire(again, terms(), now);
    EXPECT_EQ(again.refusal_code, errc::lost);
}

TEST_F(Engine, RefusesATokenThatNoScriptOfOursGives) {
    subject.acquire(first, terms(), now);
    send();
    receive("*2\r\n:1\r\n$16\r\n9007199254740992\r\n");
    EXPECT_EQ(first.held, nullptr);
    EXPECT_EQ(first.refusal_code, errc::protocol_error);
}

TEST_F(Engine, BelievesAPushOnlyAboveTheFenceOfItsLastAnsweredPoll) {
    subject.acquire(first, terms(), now);
    const std::string question(wires.begin_write(now));
    wires.end_write();
    receive("*6\r\n:2\r\n:900\r\n$5\r\nother\r\n$2\r\n50\r\n:0\r\n$2\r\n41\r\n");
    const auto at = question.find(subject.id().text() + ".1.");
    const std::string id = question.substr(at, question.find("\r\n", at) - at);
    const auto push = [&](const std::string& token) {
        const std::string channel = "hf:wake:" + subject.id().text();
        const std::string text = "grant " + id + " " + token;
        receive(">3\r\n$7\r\nmessage\r\n$" + std::to_string(channel.size()) + "\r\n" + channel + "\r\n$" +
                std::to_string(text.size()) + "\r\n" + text + "\r\n");
    };
    push("41");
    EXPECT_EQ(first.held, nullptr) << "a grant that was over before the poll";
    push("42");
    ASSERT_NE(first.held, nullptr);
    EXPECT_EQ(first.held->token(), 42U);
}

}  // namespace
}  // namespace holdfast::engine
