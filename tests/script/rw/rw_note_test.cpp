// Notes of a read-write lock: each holder and each waiter may have one.
#include <algorithm>

#include "script/rw/rw_rows.hpp"

namespace holdfast::testing::rw_note_test {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string noted(const std::string& name) {
    return client_named(name) + ".1000000000000000007.0123456789abcdefghijkl";
}

class RwNote : public rw_rows {  // R54
protected:
    const std::string notes = "hf:{stock}:notes";
    const std::string eve = noted("eve"), fay = noted("fay"), gus = noted("gus");

    RwNote() : rw_rows{{"hf:{stock}:notes"}} {}

    std::vector<std::string> all_keys() const {
        std::vector<std::string> all = keys();
        all.insert(all.end(), {lock, notes});
        return all;
    }
    redis_reply ask(const std::string& id, const std::string& wants, const std::string& note,
                    const std::string& channel = "", const std::string& ticket = "0") {
        std::vector<std::string> words{id,     text(hour), prefer,  wants, text(minute), "0", channel,
                                       ticket, "10000",    "61000", "0",   "0",          "0"};
        if (!note.empty()) words.insert(words.end(), {"1", note});
        return run("rw/acquire", all_keys(), words);
    }
    std::string gets(const std::string& id, const std::string& wants, const std::string& note) {
        const redis_reply reply = ask(id, wants, note);
        EXPECT_EQ(code(reply), 1);
        return reply.elements.at(1).text;
    }
    redis_reply wait_saying(const std::string& id, const std::string& wants, const std::string& note) {
        return ask(id, wants, note, "wake:" + id);
    }
    redis_reply leave_noted(const std::string& id, const std::string& token, const std::string& rest = "") {
        return run("rw/release", all_keys(), {id, text(hour), prefer, token, rest, text(minute)});
    }
    std::vector<std::string> noted_ids() {
        auto ids = texts(must({"HKEYS", notes}));
        std::ranges::sort(ids);
        return ids;
    }
};

TEST_F(RwNote, OfEachReaderIsStoredAndGoesWithItsRelease) {
    const std::string first = gets(eve, "r", "report");
    gets(fay, "r", "backup");
    EXPECT_EQ(hash(notes), (fields{{eve, "report"}, {fay, "backup"}}));
    expect_all_keys_expire();
    EXPECT_EQ(code(leave_noted(eve, first)), 1);
    EXPECT_THAT(noted_ids(), ElementsAre(fay));
}

TEST_F(RwNote, OfTheHolderThatIsToldIsTold) {
    gets(eve, "w", "rebuild");
    const redis_reply refused = ask(bob, "r", "");
    ASSERT_THAT(refused.elements, SizeIs(6));
    EXPECT_EQ(refused.elements[2].text, eve);
    EXPECT_EQ(refused.elements[3].text, "writing");
    EXPECT_EQ(refused.elements[5].text, "rebuild");
    const redis_reply queued = ask(bob, "r", "", "wake:bob");
    ASSERT_THAT(queued.elements, SizeIs(10));
    EXPECT_EQ(queued.elements[0].integer, 2);
    EXPECT_EQ(queued.elements[9].text, "rebuild");
    EXPECT_THAT(read(cid), IsRefusedFor("writing", minute, eve)) << "who does not ask is answered as ever";
}

TEST_F(RwNote, OfAWaiterComesWithTheHandOver) {
    const std::string token = writes(ann);
    const listener ear = listens(eve);
    wait_saying(eve, "w", "rebuild");
    release(ann, token);
    EXPECT_EQ(held(), written_by(eve));
    EXPECT_EQ(ask(bob, "r", "").elements.at(5).text, "rebuild");
}

TEST_F(RwNote, StaysThroughUpgradeAndDowngrade) {
    const std::string read_token = gets(eve, "r", "report");
    const redis_reply upgraded = run("rw/acquire", all_keys(),
                                     {eve, text(hour), prefer, "u", text(minute), "0", "", "0", "10000", "61000",
                                      read_token, "0", "0", "1", "report"});
    ASSERT_EQ(code(upgraded), 1);
    EXPECT_THAT(noted_ids(), ElementsAre(eve));
    EXPECT_EQ(code(leave_noted(eve, upgraded.elements.at(1).text, "r")), 1);
    EXPECT_THAT(noted_ids(), ElementsAre(eve));
}

TEST_F(RwNote, OfAWaiterGoesWhenItGivesUp) {
    writes(ann);
    wait_saying(eve, "r", "report");
    EXPECT_THAT(noted_ids(), ElementsAre(eve));
    leave_noted(eve, "0");
    EXPECT_EQ(must({"EXISTS", notes}).integer, 0);
}

TEST_F(RwNote, IsKeptWithTheLeaseByARenewal) {
    gets(eve, "r", "report");
    pass(minute / 2);
    EXPECT_EQ(code(run("rw/renew", all_keys(), {eve, text(hour), prefer, text(minute)})), 1);
    EXPECT_EQ(left(notes), minute);
}

TEST_F(RwNote, OfTheDeadAreSweptOutByTheLiving) {
    gets(gus, "r", "reads on");
    for (int i = 0; i < 200; ++i) must({"HSET", notes, "dead" + text(i), "was here"});
    gets(eve, "r", "report");
    EXPECT_THAT(noted_ids(), ElementsAre(eve, gus));
}

}  // namespace
}  // namespace holdfast::testing::rw_note_test
