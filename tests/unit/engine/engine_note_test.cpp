// Notes: where the engine says its own, and when it asks for a holder's.
#include "unit/engine/engine_fixture.hpp"

namespace holdfast::engine::engine_note_test {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string plain_holder = "hf_0123456789abcdef.1.0123456789abcdefghijkl";
const std::string noted_holder = "hf_0123456789abcdef.1000000000000000001.0123456789abcdefghijkl";

class EngineNote : public engine_fixture {  // R54
protected:
    recorded_answer answer;

    acquire_terms terms(waiting wait, std::string note = {}, lock_kind kind = lock_kind::mutex) const {
        acquire_terms asked{.keys = keys, .options = {.lease = 3000ms, .kind = kind}, .limit = {wait, now + 2s}};
        if (!note.empty()) asked.options.note = std::make_shared<const std::string>(std::move(note));
        return asked;
    }
};

TEST_F(EngineNote, IsSaidWithEachRequestAndByAnIdThatTellsSo) {
    subject.acquire(first, terms(waiting::in_queue, "report"), now);
    const question asked = send_one();
    ASSERT_THAT(asked.arguments, SizeIs(12));
    EXPECT_EQ(asked.arguments[11], "report");
    EXPECT_TRUE(wire::is_noted(asked.arguments[0]));
    receive(list({"2", "900", plain_holder, "77", "0", "41"}));
    later(1000ms);
    EXPECT_EQ(send_one().arguments.at(11), "report") << "the server may have lost it";
}

TEST_F(EngineNote, OfAReadWriteLockNamesNoKeyThatIsNeverThere) {
    subject.acquire(first, terms(waiting::in_queue, "report", lock_kind::read_write), now);
    EXPECT_THAT(send_one().keys, ElementsAre("hf:{x}", "hf:{x}:queue", "hf:{x}:waiters", "hf:{x}:fence",
                                             "hf:{x}:leases", "hf:{x}:grants", "hf:{x}", "hf:{x}:notes"));
}

TEST_F(EngineNote, IsNowhereWhereThereIsNone) {
    subject.acquire(first, terms(waiting::in_queue), now);
    const question asked = send_one();
    EXPECT_THAT(asked.arguments, SizeIs(10));
    EXPECT_THAT(asked.keys, SizeIs(4));
    EXPECT_FALSE(wire::is_noted(asked.arguments[0]));
}

TEST_F(EngineNote, OfTheHolderIsAskedForOnceByATry) {
    subject.acquire(first, terms(waiting::not_at_all), now);
    send_one();
    receive(list({"0", "900", noted_holder}));
    EXPECT_FALSE(first.refusal_code);
    later(0ms);
    send_one();
    receive(list({"0", "890", noted_holder, "held", "", "nightly backup"}));
    EXPECT_EQ(first.refusal_code, errc::busy);
    EXPECT_EQ(first.why.holder, noted_holder);
    EXPECT_EQ(first.why.note, "nightly backup");
    later(1000ms);
    EXPECT_THAT(send(), IsEmpty());
}

TEST_F(EngineNote, ThatIsGoneIsAskedForOnceOnly) {
    subject.acquire(first, terms(waiting::not_at_all), now);
    send_one();
    receive(list({"0", "900", noted_holder}));
    later(0ms);
    send_one();
    receive(list({"0", "890", noted_holder}));
    EXPECT_EQ(first.refusal_code, errc::busy);
    EXPECT_EQ(first.why.note, "");
}

TEST_F(EngineNote, IsNotAskedForWhereTheHolderHasNone) {
    subject.acquire(first, terms(waiting::not_at_all), now);
    send_one();
    receive(list({"0", "900", plain_holder}));
    EXPECT_EQ(first.refusal_code, errc::busy);
}

TEST_F(EngineNote, OfTheHolderIsToldByATryWhoseTimeIsOverBeforeItIsKnown) {
    subject.acquire(first, terms(waiting::not_at_all), now);
    send_one();
    receive(list({"0", "900", noted_holder}));
    later(0ms);
    send_one();
    later(3s);
    EXPECT_EQ(first.refusal_code, errc::busy);
}

TEST_F(EngineNote, OfTheHolderIsKnownToAWaiterThatTimesOut) {
    subject.acquire(first, terms(waiting::in_queue), now);
    send_one();
    receive(list({"2", "9000", noted_holder, "77", "0", "41"}));
    later(10ms);
    send_one();
    receive(list({"2", "8990", noted_holder, "77", "0", "41", "8990", "", "", "nightly backup"}));
    later(2s);
    EXPECT_EQ(first.refusal_code, errc::timed_out);
    EXPECT_EQ(first.why.note, "nightly backup");
}

TEST_F(EngineNote, IsRenewedWithItsHoldButNotWhileTheSlotMoves) {
    subject.acquire(first, terms(waiting::in_queue, "report"), now);
    send_one();
    receive(list({"1", "42"}));
    later(1000ms);
    const question usual = send_one();
    EXPECT_EQ(usual.script, "mutex/renew");
    EXPECT_THAT(usual.keys, ElementsAre("hf:{x}", "hf:{x}:notes", "hf:{x}:fence"));
    receive("-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    const question alone = send_one();
    EXPECT_EQ(alone.script, "mutex/renew");
    EXPECT_THAT(alone.keys, ElementsAre("hf:{x}"));
    receive(list({"1"}));
    subject.release(*first.held, access::exclusive, &answer, now + 1s, now);
    EXPECT_THAT(send_one().keys,
                ElementsAre("hf:{x}", "hf:{x}:queue", "hf:{x}:waiters", "hf:{x}:fence", "hf:{x}", "hf:{x}:notes"))
        << "no key that is never there: it would stop the script while the slot moves";
}

}  // namespace
}  // namespace holdfast::engine::engine_note_test
