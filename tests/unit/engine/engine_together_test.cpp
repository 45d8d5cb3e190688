// Several mutexes asked for, or released, together: one call, and each lock answered by its own part.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_together_test {
namespace {

using namespace testing;

std::string list_of(std::initializer_list<std::string> parts) {
    std::string out = "*" + std::to_string(parts.size()) + "\r\n";
    for (const std::string& part : parts) out += part;
    return out;
}

const std::string nothing = "_\r\n";
const std::string refused = "*3\r\n:0\r\n:-1\r\n$0\r\n\r\n";

class Together : public engine_fixture {
protected:
    static constexpr std::size_t count = 3;

    acquire_terms terms(const std::string& name) const {
        return {.keys = keys_for(name),
                .options = {.lease = 1000ms},
                .limit = {.wait = waiting::not_at_all, .deadline = now + 2s}};
    }
    void try_all() {
        subject.begin_together();
        for (std::size_t i = 0; i < count; ++i) subject.acquire(asked[i], terms("lock" + std::to_string(i)), now);
        subject.end_together(now);
    }
    void acquire_all() {
        try_all();
        send();
        receive(list_of({list({"1", "41"}), list({"1", "42"}), list({"1", "43"})}));
    }
    void release_all() {
        subject.begin_together();
        for (std::size_t i = 0; i < count; ++i)
            subject.release(*asked[i].held, access::exclusive, &done[i], now + 2s, now);
        subject.end_together(now);
    }
    static std::vector<std::string> scripts_of(const std::vector<question>& all) {
        std::vector<std::string> names;
        for (const question& one : all) names.push_back(one.script);
        return names;
    }

    std::array<recorded_request, count> asked;
    std::array<recorded_answer, count> done;
};

TEST_F(Together, TriesGoOutAsOneCallAndEachIsAnswered) {
    try_all();
    const instant sent = now;
    EXPECT_EQ(send_one().script, "mutex/acquire_all");
    now += 100ms;
    receive(list_of({list({"1", "41"}), list({"1", "42"}), list({"1", "43"})}));
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_NE(asked[i].held, nullptr);
        EXPECT_EQ(asked[i].held->token(), 41 + i);
        EXPECT_EQ(asked[i].held->valid_until(), sent + 1000ms - 12ms) << "counted from before the call was written";
    }
}

TEST_F(Together, AllAreRefusedTogether) {
    try_all();
    send();
    receive(list_of({refused, refused, refused}));
    for (const recorded_request& each : asked) EXPECT_EQ(each.refusal_code, errc::busy);
    EXPECT_TRUE(send().empty()) << "nothing is to be undone";
    EXPECT_EQ(subject.holds(), 0U);
}

TEST_F(Together, AnErrorIsToldForEach) {
    try_all();
    send();
    receive("-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    for (const recorded_request& each : asked) EXPECT_EQ(each.refusal_code, errc::wrong_type);
}

TEST_F(Together, AnAnswerOfAnotherFormIsNoGrant) {
    try_all();
    send();
    receive(list_of({list({"1", "41"}), list({"1", "42"})}));
    for (const recorded_request& each : asked) EXPECT_EQ(each.refusal_code, errc::protocol_error);
}

// Whether it ran is unknown: each asks again by itself, and a grant that it may have got is its own.
TEST_F(Together, ACallWhoseLinkBrokeIsAskedAgainOneByOne) {
    try_all();
    send();
    break_link();
    EXPECT_EQ(scripts_of(send()), std::vector<std::string>(count, "mutex/acquire"));
    for (const char* const token : {"41", "42", "43"}) receive(list({"1", token}));
    for (const recorded_request& each : asked) EXPECT_NE(each.held, nullptr);
}

TEST_F(Together, OneThatIsCancelledMeanwhileIsUndoneBehindTheCall) {
    try_all();
    send();
    subject.cancel(asked[1], errc::cancelled, now);
    EXPECT_EQ(asked[1].refusal_code, errc::cancelled);
    const question undo = send_one();
    EXPECT_EQ(undo.script, "mutex/release");
    EXPECT_EQ(undo.arguments.at(1), "0") << "any grant of that id";
    receive(list_of({list({"1", "41"}), list({"1", "42"}), list({"1", "43"})}));
    EXPECT_NE(asked[0].held, nullptr);
    EXPECT_NE(asked[2].held, nullptr);
    receive(list({"1", "0"}));
    EXPECT_EQ(subject.holds(), 2U);
}

TEST_F(Together, OneThatEndsByItsDeadlineIsUndone) {
    try_all();
    send();
    later(2s);
    for (const recorded_request& each : asked) EXPECT_EQ(each.refusal_code, errc::request_timed_out);
    EXPECT_EQ(scripts_of(send()), std::vector<std::string>(count, "mutex/release"));
}

TEST_F(Together, ReleasesGoOutAsOneCall) {
    acquire_all();
    release_all();
    EXPECT_EQ(send_one().script, "mutex/release_all");
    receive(list_of({list({"1", "0"}), list({"1", "0"}), list({"1", "0"})}));
    for (const recorded_answer& each : done) EXPECT_EQ(each.code, errc{});
    EXPECT_EQ(subject.holds(), 0U);
}

TEST_F(Together, AReleaseThatTheScriptLeftAloneGoesOutByItself) {
    acquire_all();
    release_all();
    send();
    receive(list_of({list({"1", "0"}), nothing, list({"1", "0"})}));
    EXPECT_EQ(done[0].code, errc{});
    EXPECT_FALSE(done[1].code);
    EXPECT_EQ(send_one().script, "mutex/release");
    receive(list({"1", "3"}));
    EXPECT_EQ(done[1].code, errc{});
}

// Seed 4296 of a mutant: the call was used again as if it were still in flight.
TEST_F(Together, AReleaseThatNobodyWaitsForAnyMoreEndsWithTheAnswer) {
    acquire_all();
    release_all();
    send();
    later(10s);
    EXPECT_EQ(subject.holds(), 0U);
    receive(list_of({nothing, nothing, nothing}));
    EXPECT_TRUE(send().empty());
    for (std::size_t i = 0; i < count; ++i) {
        subject.acquire(asked[i], terms("lock" + std::to_string(i)), now);
        send();
        receive(list({"1", "51"}));
        EXPECT_NE(asked[i].held, nullptr);
    }
}

TEST_F(Together, ReleasesWhoseLinkBrokeAreRepeatedOneByOne) {
    acquire_all();
    release_all();
    send();
    break_link();
    EXPECT_EQ(scripts_of(send()), std::vector<std::string>(count, "mutex/release"));
    for (int i = 0; i < 3; ++i) receive(list({"0"}));
    for (const recorded_answer& each : done) EXPECT_EQ(each.code, errc{}) << "not finding the hold is success";
}

TEST_F(Together, OneAloneUsesItsOwnScript) {
    subject.begin_together();
    subject.acquire(asked[0], terms("lock0"), now);
    subject.end_together(now);
    EXPECT_EQ(send_one().script, "mutex/acquire");
}

TEST_F(Together, WhatIsSpecialUsesItsOwnScript) {
    subject.begin_together();
    for (std::size_t i = 0; i < 2; ++i) subject.acquire(asked[i], terms("lock" + std::to_string(i)), now);
    acquire_terms reads = terms("catalog");
    reads.options.kind = wire::lock_kind::read_write;
    subject.acquire(asked[2], reads, now);
    subject.end_together(now);
    EXPECT_THAT(scripts_of(send()), ::testing::UnorderedElementsAre("rw/acquire", "mutex/acquire_all"));
}

// Its note has a key of its own, and goes with the release.
TEST_F(Together, AHoldWithANoteUsesItsOwnScript) {  // R54
    subject.begin_together();
    for (std::size_t i = 0; i < count; ++i) {
        acquire_terms noted = terms("lock" + std::to_string(i));
        noted.options.note = std::make_shared<const std::string>("report");
        subject.acquire(asked[i], noted, now);
    }
    subject.end_together(now);
    EXPECT_EQ(scripts_of(send()), std::vector<std::string>(count, "mutex/acquire"));
    for (const char* const token : {"41", "42", "43"}) receive(list({"1", token}));
    release_all();
    for (const question& one : send()) {
        EXPECT_EQ(one.script, "mutex/release");
        EXPECT_EQ(one.keys.back().substr(one.keys.back().size() - 6), ":notes");
    }
}

// A Cluster has its locks in different slots.
class TogetherInACluster : public engine_fixture {
protected:
    TogetherInACluster() : engine_fixture(channels::one_per_tag) {}
};

TEST_F(TogetherInACluster, EveryLockUsesItsOwnScript) {
    recorded_request other;
    subject.begin_together();
    for (recorded_request* const each : {&first, &other}) {
        subject.acquire(*each,
                        {.keys = keys_for(each == &first ? "a" : "b"),
                         .limit = {.wait = waiting::not_at_all, .deadline = now + 2s}},
                        now);
    }
    subject.end_together(now);
    for (const question& each : send()) EXPECT_EQ(each.script, "mutex/acquire");
}

}  // namespace
}  // namespace holdfast::engine::engine_together_test
