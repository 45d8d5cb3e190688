// The fast path of the read-write scripts, row by row: see rw_both_paths.hpp. A fast path that is never taken would
// pass, too, so the rows say which path is taken: only the general path counts the queue.
#include "script/rw/rw_both_paths.hpp"

namespace holdfast::testing::rw_fast_path_test {
namespace {

class RwFastPath : public both_paths {
protected:
    struct row {
        const char* name;
        std::function<void()> state;
        std::function<outcome()> step;
    };

    void expect(path taken, const std::vector<row>& rows) {
        for (const row& each : rows) {
            SCOPED_TRACE(each.name);
            start_again();
            each.state();
            ASSERT_FALSE(HasFailure());
            EXPECT_EQ(each.step().taken, taken)
                << (taken == path::general ? "not by the general path" : "by the general path");
        }
    }
    // Both refuse such a request before they read a key, or both do the same.
    void expect_the_same(const std::vector<row>& rows) {
        for (const row& each : rows) {
            SCOPED_TRACE(each.name);
            start_again();
            each.state();
            each.step();
            ASSERT_FALSE(HasFailure());
        }
    }

    outcome dan_reads() { return read(dan); }
    outcome dan_writes() { return write(dan); }
    std::function<outcome()> dan_asks(std::size_t argument, const std::string& instead,
                                      const std::string& wants = "r") {
        return [=, this] { return give("rw/acquire", with(argument, instead, to_acquire(dan, wants))); };
    }
    std::function<outcome()> ann_releases(std::size_t argument, const std::string& instead) {
        return [=, this] { return give("rw/release", with(argument, instead, to_release(ann))); };
    }
    std::function<void()> read_by(std::vector<std::string> ids) {
        return [=, this] { all_read(ids); };
    }
    std::function<void()> read_by(std::vector<std::string> ids, words then) {
        return [=, this] { all_read(ids), tell(then); };
    }
    std::function<void()> mark_is(const std::string& mark) {
        return [=, this] { tell({"SET", fence, mark}); };
    }
    std::function<void()> written_by_ann() {
        return [this] { write(ann); };
    }

    const std::function<void()> nothing = [] {};
    const std::function<outcome()> reads = [this] { return dan_reads(); };
    const std::function<outcome()> writes = [this] { return dan_writes(); };
    const std::function<outcome()> leaves = [this] { return release(ann); };
};

TEST_F(RwFastPath, IsTakenToReadOrWriteWhatIsFree) {  // R20, R45
    expect(path::fast,
           {{"read", nothing, reads},
            {"write", nothing, writes},
            {"wait to read", nothing, dan_asks(7, "wake:dan")},
            {"wait to write", nothing, dan_asks(7, "wake:dan", "w")},
            {"with a ticket", nothing, dan_asks(8, "1800000000000000")},
            {"without patience, for which nothing is kept", nothing, dan_asks(10, "0")},
            {"the longest lease there is", nothing, dan_asks(5, "9007199254740991")},
            {"after a token", mark_is("1700000000000000"), reads},
            {"after a token that is as old as the clock", mark_is(text(start_us - 1)), reads},
            {"above what the caller has seen", nothing, dan_asks(6, "1700000000000000")},
            {"in the first microsecond of a second", [this] { pass_us(1'000'000 - now_us_ % 1'000'000); }, reads}});
}

TEST_F(RwFastPath, TakesTheProposedTokenWhereTheGeneralPathDoes) {
    const std::vector<row> rows = {
        {"ahead", nothing, dan_asks(12, text(start_us + 500'001))},
        {"behind", nothing, dan_asks(12, text(start_us - 500'001))},
        {"just near enough", nothing, dan_asks(12, text(start_us + 1'000'000))},
        {"too far ahead", nothing, dan_asks(12, text(start_us + 1'000'001))},
        {"too far behind", nothing, dan_asks(12, text(start_us - 1'000'001))},
        {"with a zero in front", nothing, dan_asks(12, "0" + text(start_us + 1))},
        {"not above the mark", mark_is(text(start_us - 5)), dan_asks(12, text(start_us - 5))},
        {"above the mark", mark_is(text(start_us - 5)), dan_asks(12, text(start_us - 4))},
        {"beside a reader", [this] { read(ann), pass_us(1); }, dan_asks(12, text(start_us + 9))}};
    for (const row& each : rows) {
        SCOPED_TRACE(each.name);
        start_again();
        each.state();
        each.step();
    }
}

TEST_F(RwFastPath, IsTakenToReadBesideOthersOfOurs) {  // R20, R28
    expect(path::fast, {{"a second one", read_by({ann}), reads},
                        {"a third one", read_by({ann, bob}), reads},
                        {"a fourth one", read_by({ann, bob, cid}), reads},
                        {"one of many",
                         [this] {
                             for (char c = 'a'; c < 'a' + 24; ++c) read(hold_id(std::string(3, c))), pass(1);
                         },
                         reads},
                        {"for longer than the others", read_by({ann, bob}), dan_asks(5, "90000")},
                        {"for shorter than the others", read_by({ann, bob}), dan_asks(5, "10")},
                        {"in the last ms of the first lease",
                         [this] {
                             read(ann, 500), all_read({bob, cid}), pass(469);
                         },
                         reads},
                        {"when the grants were lost", read_by({ann, bob}, {"DEL", grants}), reads},
                        {"when the expiry was moved by 1 ms, which nobody can tell",
                         [this] {
                             all_read({ann}), tell({"PEXPIRE", lock, text(minute - 10 + 1)});
                         },
                         reads}});
}

TEST_F(RwFastPath, IsTakenToReleaseWhatIsPlain) {  // R23, R24, R28
    expect(path::fast,
           {{"the only reader", read_by({ann}), leaves},
            {"one of two", read_by({ann, bob}), leaves},
            {"one of two, who has the longest lease", read_by({bob, ann}), leaves},
            {"one of three", read_by({ann, bob, cid}), leaves},
            {"one of three, who has the longest lease", read_by({bob, cid, ann}), leaves},
            {"one of three, who has neither", read_by({bob, ann, cid}), leaves},
            {"one of four", read_by({bob, cid, dan, ann}), leaves},
            {"the writer", written_by_ann(), leaves},
            {"when the others' grants were lost", read_by({ann, bob}, {"HDEL", grants, bob}), leaves},
            {"the only reader, on a full server", [this] { all_read({ann}), server_is_full(); }, leaves},
            {"one of three, on a full server",
             [this] {
                 all_read({ann, bob, cid}), server_is_full();
             },
             leaves},
            {"the writer, on a full server", [this] { write(ann), server_is_full(); }, leaves},
            {"in the last ms of its lease", [this] { read(ann, 500), all_read({bob}), pass(489); }, leaves}});
}

TEST_F(RwFastPath, IsNotTakenByTheOthersWhoAskOrLeave) {
    expect(path::general, {{"the one who reads asks again", read_by({dan}), reads},
                           {"the one who writes asks again", [this] { write(dan); }, writes},
                           {"the writer reads, too", [this] { write(dan); }, reads},
                           {"the reader writes, too", read_by({dan}), writes},
                           {"upgrade", read_by({dan}),
                            [this] { return give("rw/acquire", with(11, tokens_[dan], to_acquire(dan, "u"))); }},
                           {"upgrade of what is over", nothing, dan_asks(11, "7", "u")},
                           {"read what is written", written_by_ann(), reads},
                           {"write what is read", read_by({ann}), writes},
                           {"a grant that is none", read_by({ann}, {"HSET", grants, dan, "none"}), reads},
                           {"a hold whose grant was lost", read_by({ann, dan}, {"HDEL", grants, dan}), reads},
                           {"a grant without a hold", read_by({ann}, {"HSET", grants, dan, "r 5"}), reads},
                           {"release by another token", read_by({ann}), ann_releases(4, "7")},
                           {"release by any token", read_by({ann}), ann_releases(4, "0")},
                           {"release of the writer by another token", written_by_ann(), ann_releases(4, "7")},
                           {"release of another one's", read_by({bob}), leaves},
                           {"downgrade", written_by_ann(), ann_releases(5, "r")},
                           {"stop to read", read_by({ann}), ann_releases(5, "w")},
                           {"release of one who reads and writes", [this] { write(ann), read(ann); }, leaves},
                           {"twice",
                            [this] {
                                all_read({ann, bob}), release(ann);
                            },
                            leaves}});
}

TEST_F(RwFastPath, IsNotTakenPastTheQueue) {  // R29, R30
    const auto in_queue = [this](std::function<void()> before, const std::string& wants) {
        return [=, this] { before(), give("rw/acquire", with(7, "wake:bob", to_acquire(bob, wants))); };
    };
    const auto only = [this](std::function<void()> before, const words& what) {
        return [=, this] { before(), tell(what); };
    };
    const words a_queue{"ZADD", queue, "5", bob}, entries{"HSET", waiters, bob, "60000 10000 1 0 w wake:bob"};
    expect(path::general, {{"read", in_queue(read_by({ann}), "w"), reads},
                           {"release of a reader", in_queue(read_by({ann}), "w"), leaves},
                           {"release of the writer", in_queue(written_by_ann(), "r"), leaves},
                           {"read, a queue alone", only(read_by({ann}), a_queue), reads},
                           {"read, entries alone", only(read_by({ann}), entries), reads},
                           {"read what is free, a queue alone", only(nothing, a_queue), reads},
                           {"read what is free, entries alone", only(nothing, entries), reads},
                           {"write what is free, a queue alone", only(nothing, a_queue), writes},
                           {"release of a reader, a queue alone", only(read_by({ann}), a_queue), leaves},
                           {"release of the writer, entries alone", only(written_by_ann(), entries), leaves}});
}

TEST_F(RwFastPath, IsNotTakenBesideOtherPrograms) {  // R33
    const auto came_before = [this](std::vector<std::string> ids) {
        return [=, this] { foreign(foreign_rw::lock_to_read, 90'005), all_read(ids); };
    };
    const auto goes_first = [this](std::vector<std::string> ids) {
        return [=, this] { foreign(foreign_rw::lock_to_read, 30'005), all_read(ids); };
    };
    const auto came_last = [this](std::vector<std::string> ids) {
        return [=, this] { all_read(ids), foreign(foreign_rw::lock_to_read, 90'005); };
    };
    const auto has_written = [this] { foreign(foreign_rw::lock_to_write, 90'005); };
    const auto is_left_alone = [this] { foreign(foreign_rw::lock_to_read, 90'005), all_read({bob}), release(bob); };
    expect(path::general, {{"read, it reads alone", came_before({}), reads},
                           {"read, it was left alone", is_left_alone, reads},
                           {"read, it came before one of ours", came_before({ann}), reads},
                           {"read, it came before two of ours", came_before({ann, bob}), reads},
                           {"read, it goes before one of ours", goes_first({ann}), reads},
                           {"read, it goes before two of ours", goes_first({ann, bob}), reads},
                           {"read, it came last", came_last({ann}), reads},
                           {"read, it writes", has_written, reads},
                           {"write, it writes", has_written, writes},
                           {"release, it came before one of ours", came_before({ann}), leaves},
                           {"release, it came before two of ours", came_before({ann, bob}), leaves},
                           {"release, it came before three of ours", came_before({ann, bob, cid}), leaves},
                           {"release, it goes before one of ours", goes_first({ann}), leaves},
                           {"release, it goes before two of ours", goes_first({ann, bob}), leaves},
                           {"release, it goes before three of ours", goes_first({ann, bob, cid}), leaves},
                           {"release, it came last", came_last({ann, bob}), leaves}});
}

TEST_F(RwFastPath, IsNotTakenWhereALeaseIsOver) {  // R28, R46
    const auto first_is_over = [this](const std::string& first, std::vector<std::string> others) {
        return [=, this] { read(first, 500), all_read(others), pass(500 - 10 * static_cast<int>(others.size())); };
    };
    expect(path::general, {{"read, one of two", first_is_over(ann, {bob}), reads},
                           {"read, one of three", first_is_over(ann, {bob, cid}), reads},
                           {"release, another's, one of two", first_is_over(bob, {ann}), leaves},
                           {"release, another's, one of three", first_is_over(bob, {cid, ann}), leaves},
                           {"release, its own, one of two", first_is_over(ann, {bob}), leaves},
                           {"release, its own, one of three", first_is_over(ann, {bob, cid}), leaves}});
    // The only one's: its keys go with it, unless another program has given them longer.
    const auto outlives = [this](std::function<void()> held) {
        return [=, this] {
            held();
            for (const std::string& key : {lock, leases, grants}) tell({"PERSIST", key});
            pass(minute);
        };
    };
    expect(path::general, {{"read", outlives(read_by({ann})), reads},
                           {"release of the reader", outlives(read_by({ann})), leaves},
                           {"release of the writer", outlives(written_by_ann()), leaves}});
}

TEST_F(RwFastPath, IsNotTakenWhereTheExpiryIsNotOurs) {  // R28, R33
    const auto moved = [this](std::function<void()> held, std::int64_t by_ms) {
        return [=, this] {
            held();
            tell({"PEXPIREAT", lock, text(tell({"PEXPIRETIME", lock}).integer + by_ms)});
        };
    };
    const auto has_moved = [this](std::function<void()> held, std::int64_t ahead_ms) {
        return [=, this] { held(), moves_to_clock_ahead_by(ahead_ms); };
    };
    const std::function<void()> held[] = {read_by({ann}), read_by({ann, bob}), read_by({ann, bob, cid}),
                                          written_by_ann()};
    for (const auto& each : held) {
        SCOPED_TRACE(&each - held);
        const words persist{"PERSIST", lock};
        for (const auto& step : {leaves, reads}) {
            expect(path::general, {{"later by 2 ms", moved(each, 2), step},
                                   {"later by a minute", moved(each, minute), step},
                                   {"earlier by 1 ms", moved(each, -1), step},
                                   {"earlier by 30 s", moved(each, -30'000), step},
                                   {"never", [=, this] { each(), tell(persist); }, step},
                                   {"a clock ahead", has_moved(each, 300'000), step},
                                   {"a clock just ahead", has_moved(each, 2), step},
                                   {"a clock behind", has_moved(each, -300'000), step},
                                   {"a clock just behind", has_moved(each, -1), step}});
        }
    }
}

TEST_F(RwFastPath, IsNotTakenWhereHashAndLeasesDisagree) {  // R33
    const std::vector<words> changes = {{"HSET", lock, "rcount", "9"},
                                        {"HSET", lock, "rcount", "0"},
                                        {"HSET", lock, "rcount", "03"},
                                        {"HSET", lock, "rcount", "0x3"},
                                        {"HDEL", lock, "rcount"},
                                        {"HSET", lock, "mode", "write"},
                                        {"HDEL", lock, "mode"},
                                        {"HSET", lock, "writer", "b7c0-1d"},
                                        {"HSET", lock, "wcount", "1"},
                                        {"HSET", lock, "r:b7c0-1d", "1"},
                                        {"HDEL", lock, "r:" + bob},
                                        {"ZREM", leases, bob},
                                        {"ZADD", leases, "5e12", "other"},
                                        {"ZADD", leases, text(2 * now_ms()), "foreign"},
                                        {"DEL", leases}};
    for (const words& change : changes) {
        SCOPED_TRACE(change.at(0) + ' ' + change.at(2 < change.size() ? 2 : 1) + ' ' + change.back());
        expect(path::general, {{"read", read_by({ann, bob, cid}, change), reads},
                               {"release", read_by({ann, bob, cid}, change), leaves}});
    }
    // The counts are right, and what they count is not.
    const std::string eve = hold_id("eve");
    const auto instead = [this](std::function<void()> held, const words& first, const words& second) {
        return [=, this] { held(), tell(first), tell(second); };
    };
    const auto by_three = read_by({ann, bob, cid});
    const words cid_lost{"HDEL", lock, "r:" + cid}, another{"ZADD", leases, text(now_ms() + 50'000), eve};
    for (const auto& step : {reads, leaves}) {
        expect(path::general, {{"a writer", instead(by_three, cid_lost, {"HSET", lock, "writer", "b7c0-1d"}), step},
                               {"a writer's count", instead(by_three, cid_lost, {"HSET", lock, "wcount", "1"}), step},
                               {"a lease in the middle", read_by({ann, bob, cid}, another), step},
                               {"a lease beside the only one", read_by({ann}, another), step}});
    }
    expect(path::general,
           {{"a writer, and a reader with a lease", instead(written_by_ann(), {"HSET", lock, "r:" + eve, "1"}, another),
             leaves},
            {"a writer, and a reader instead of its count",
             instead(written_by_ann(), {"HDEL", lock, "wcount"}, {"HSET", lock, "r:" + eve, "1"}), leaves}});

    const words ann_lost{"HDEL", lock, "r:" + ann};
    const std::string read_again = "r:" + dan;
    expect(path::general, {{"the caller is not in the hash, and its count is right",
                            [=, this] {
                                all_read({ann, bob}), tell(ann_lost), tell({"HSET", lock, read_again, "1"});
                            },
                            leaves},
                           {"free but for leases",
                            [this] {
                                tell({"ZADD", leases, text(now_ms() + 500), ann});
                            },
                            reads},
                           {"free but for grants",
                            [this] {
                                tell({"HSET", grants, ann, "r 5"});
                            },
                            reads},
                           {"free but for a field",
                            [this] {
                                tell({"HSET", lock, "r:" + ann, "1"});
                            },
                            reads},
                           {"a reader's lock that nobody reads",
                            [this] {
                                tell({"HSET", lock, "mode", "read", "rcount", "0"});
                            },
                            reads},
                           {"hash lost", read_by({ann}, {"DEL", lock}), leaves},
                           {"a writer with another's name",
                            [=, this] {
                                write(ann), tell({"HSET", lock, "writer", bob});
                            },
                            leaves},
                           {"a writer whose count is lost",
                            [=, this] {
                                write(ann), tell({"HDEL", lock, "wcount"});
                            },
                            leaves},
                           {"a writer beside whom somebody reads",
                            [=, this] {
                                write(ann), tell({"HSET", lock, "r:b7c0-1d", "1"});
                            },
                            leaves},
                           {"a writer beside whom somebody read",
                            [=, this] {
                                write(ann), tell({"HSET", lock, "rcount", "0"});
                            },
                            leaves},
                           {"a writer in reading mode",
                            [=, this] {
                                write(ann), tell({"HSET", lock, "mode", "read"});
                            },
                            leaves}});
}

TEST_F(RwFastPath, TakesTheSameTokenWhereTheClockIsNotTheNext) {  // R45
    const auto beside = [this](const std::string& mark) {
        return [=, this] { all_read({ann}), tell({"SET", fence, mark}); };
    };
    for (const std::string& mark : {text(start_us), text(start_us + 1), std::string{"9007199254740991"},
                                    std::string{"9007199254740992"}, std::string{"none"}, std::string{"0"},
                                    std::string{"007"}, std::string{"0x10"}, std::string{"1e3"}, std::string{}}) {
        SCOPED_TRACE(mark);
        expect(path::fast,
               {{"read what is free", mark_is(mark), reads}, {"write what is free", mark_is(mark), writes}});
        expect(path::fast, {{"read", beside(mark), reads}});
    }
    expect(path::fast, {{"floor", nothing, dan_asks(6, "4000000000000000")}});
}

TEST_F(RwFastPath, DoesWithRequestsThatMakeNoSenseWhatTheGeneralPathDoes) {
    for (const std::size_t argument : {2U, 5U, 6U, 8U, 9U, 12U}) {
        for (const char* odd : {"", "-1", "x", "1.5", " 1", "1 ", "1 1", "0x10", "1e3", "9007199254740992"}) {
            if (argument == 12 && std::string_view{odd} == "9007199254740992")
                continue;  // far from the clock, and no more
            SCOPED_TRACE(text(static_cast<std::int64_t>(argument)) + ": '" + odd + "'");
            expect_the_same(
                {{"free", nothing, dan_asks(argument, odd)}, {"read", read_by({ann}), dan_asks(argument, odd)}});
        }
    }
    for (const char* odd : {"", "0", "-1", "x", "9007199254740992"}) {
        SCOPED_TRACE(odd);
        expect_the_same({{"kept in the queue", nothing, [=, this] {
                              return give("rw/acquire", with(10, odd, with(7, "wake:dan", to_acquire(dan, "r"))));
                          }}});
        for (const std::size_t argument : {2U, 6U}) {
            if (argument == 6 && std::string_view{odd} == "0") continue;  // that is a lease of nothing
            expect_the_same({{"release", read_by({ann}), ann_releases(argument, odd)}});
        }
    }
    expect_the_same(
        {{"lease", nothing, dan_asks(5, "0")},
         {"retention", nothing, dan_asks(2, "0")},
         {"lease as nobody writes it", nothing, dan_asks(5, "060000")},
         {"wants nothing", nothing, dan_asks(4, "")},
         {"wants something else", nothing, dan_asks(4, "x")},
         {"left over", read_by({ann}), ann_releases(5, "x")},
         {"a grant whose token is none", read_by({ann}, {"HSET", grants, ann, "r x"}), ann_releases(4, "x")},
         {"a grant whose token is nothing", read_by({ann}, {"HSET", grants, ann, "r "}), ann_releases(4, "")}});
    for (std::size_t given = 4; given < 13; ++given) {
        SCOPED_TRACE(given);
        start_again();
        words few = to_acquire(dan, "r");
        few.resize(given);
        if (given < 9) {
            EXPECT_TRUE(give("rw/acquire", few).answer.is_error());
        } else {
            EXPECT_EQ(give("rw/acquire", few).taken, path::fast)
                << "the others are not needed by one who does not wait";
        }
    }
    for (std::size_t given = 4; given < 7; ++given) {
        SCOPED_TRACE(given);
        start_again();
        all_read({ann});
        words few = to_release(ann);
        few.resize(given);
        give("rw/release", few);
    }
}

TEST_F(RwFastPath, TellsOfAKeyOfAnotherTypeAndChangesNothing) {
    const std::vector<std::pair<const char*, std::function<void()>>> states = {
        {"free", nothing},
        {"read", read_by({ann})},
        {"read by three", read_by({ann, bob, cid})},
        {"written", written_by_ann()}};
    for (const auto& [name, state] : states) {
        for (const std::string& key : {lock, queue, waiters, fence, leases, grants}) {
            for (const auto& step : {reads, writes, leaves}) {
                SCOPED_TRACE(std::string{name} + ", " + key);
                start_again();
                state();
                const auto before = [&] {
                    std::string all;
                    for (const std::string& each : {lock, queue, waiters, fence, leases, grants})
                        all += tell({"DUMP", each}).text + tell({"PEXPIRETIME", each}).to_string();
                    return all;
                };
                tell({"DEL", key});
                tell({"SADD", key, "member"});
                const std::string was = before();
                EXPECT_TRUE(step().answer.text.starts_with("WRONGTYPE"));
                EXPECT_EQ(before(), was);
            }
        }
    }
}

TEST_F(RwFastPath, IsRefusedByAFullServerLikeTheGeneralPath) {
    for (const auto& state : std::vector<std::function<void()>>{nothing, read_by({ann}), read_by({ann, bob, cid})}) {
        start_again();
        state();
        server_is_full();
        EXPECT_TRUE(dan_reads().answer.text.starts_with("OOM"));
    }
    start_again();
    server_is_full();
    EXPECT_TRUE(dan_writes().answer.text.starts_with("OOM"));
}

}  // namespace
}  // namespace holdfast::testing::rw_fast_path_test
