// rw/acquire and rw/release begin with a short way for the common cases. It must do what the long way does, which comes
// after it and can do everything: the same answer, the same keys, the same expiries. So there are two servers here, by
// one clock, in one state: one has the scripts as they are, the other has them without their short way.
//
// A short way that is never taken would pass as well. So the rows say which way is taken: only the long one counts the
// line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "node/differential/command_maker.hpp"
#include "node/differential/real_server.hpp"
#include "script/foreign_rw.hpp"
#include "script/rw_rows.hpp"

namespace holdfast::testing {
namespace {

using words = std::vector<std::string>;

enum class way { is_short, is_long };

class both_ways : public ::testing::Test {
protected:
    static constexpr std::int64_t start_us = 1'800'000'000'123'456;
    static constexpr std::int64_t minute = 60'000;

    const std::string lock = "hf:{stock}", queue = "hf:{stock}:queue", waiters = "hf:{stock}:waiters",
                      fence = "hf:{stock}:fence", leases = "hf:{stock}:leases", grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid"), dan = hold_id("dan");

    both_ways() {
        for (const char* name : {"rw/acquire", "rw/release", "rw/renew"}) {
            const std::string text{scripts::find(name).text};
            as_it_is_[name] = load(real_, text);
            long_way_[name] = load(other_, text.substr(text.find("--@from common/line.lua\n")));
        }
    }

    void start_again() {
        tell({"CONFIG", "SET", "maxmemory", "0"});
        tell({"FLUSHALL"});
        tokens_.clear();
        pass_us(start_us - now_us_);
    }
    void pass_us(std::int64_t us) {
        now_us_ += us;
        real_.set_time(now_us_);
        other_.set_time(now_us_);
    }
    void pass(std::int64_t ms) { pass_us(ms * 1000); }
    void moves_to_clock_ahead_by(std::int64_t ms) {
        now_us_ += ms * 1000;
        real_.move_to_clock(now_us_);
        other_.move_to_clock(now_us_);
    }
    std::int64_t now_ms() const { return now_us_ / 1000; }

    // Another's command, or another program's script, to both servers.
    sim::value tell(const words& command) {
        sim::value answer = real_.link().call(command);
        EXPECT_EQ(other_.link().call(command), answer);
        return answer;
    }
    void foreign(std::string_view script, std::int64_t ttl_ms) {
        tell({"EVAL", std::string{script}, "1", lock, "b7c0-1d", text(ttl_ms)});
    }
    void server_is_full() { tell({"CONFIG", "SET", "maxmemory", "1"}); }

    struct outcome {
        sim::value answer;
        way taken;
    };

    // One of our scripts, by both ways.
    outcome give(const std::string& name, const words& arguments) {
        words command{"EVALSHA", "", "6", lock, queue, waiters, fence, leases, grants};
        command.insert(command.end(), arguments.begin(), arguments.end());
        real_.link().call({"CONFIG", "RESETSTAT"});
        command[1] = as_it_is_.at(name);
        const sim::value answer = without_place(real_.link().call(command));
        const bool counted =
            real_.link().call({"INFO", "commandstats"}).text.find("cmdstat_zcard:") != std::string::npos;
        command[1] = long_way_.at(name);
        const sim::value expected = without_place(other_.link().call(command));
        EXPECT_EQ(answer, expected);
        EXPECT_EQ(real_.dump(), other_.dump());
        if (name == "rw/acquire" && answer.items.size() == 2) tokens_[arguments.at(0)] = answer.items[1].text;
        return {answer, counted ? way::is_long : way::is_short};
    }

    words to_acquire(const std::string& id, const std::string& wants, std::int64_t lease = minute) const {
        return {id, "3600000", "arrival", wants, text(lease), "0", "", "0", "10000", "61000", "0", "0", "0"};
    }
    words to_release(const std::string& id) const {
        const auto token = tokens_.find(id);
        return {id, "3600000", "arrival", token == tokens_.end() ? "7" : token->second, "", "60000", "0"};
    }
    static words with(std::size_t argument, const std::string& instead, words arguments) {
        arguments.at(argument - 1) = instead;
        return arguments;
    }

    outcome read(const std::string& id, std::int64_t lease = minute) {
        return give("rw/acquire", to_acquire(id, "r", lease));
    }
    outcome write(const std::string& id) { return give("rw/acquire", to_acquire(id, "w")); }
    outcome release(const std::string& id) { return give("rw/release", to_release(id)); }
    void all_read(const std::vector<std::string>& ids) {
        for (const std::string& id : ids) read(id), pass(10);
    }

    static std::string text(std::int64_t number) { return std::to_string(number); }

    std::int64_t now_us_ = start_us;
    std::map<std::string, std::string> tokens_;  // what each was granted last

private:
    static std::string load(sim::real_server& server, const std::string& script) {
        return server.link().call({"SCRIPT", "LOAD", script}).text;
    }
    // An error says in which script, and where in it.
    static sim::value without_place(sim::value answer) {
        if (answer.is_error()) answer.text = answer.text.substr(0, answer.text.find(" script: "));
        return answer;
    }

    sim::real_server real_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    sim::real_server other_{HOLDFAST_SIM_CLOCK_MODULE, start_us};
    std::map<std::string, std::string> as_it_is_, long_way_;
};

// --- rows ------------------------------------------------------------------------------------------------

class RwShortWay : public both_ways {
protected:
    struct row {
        const char* name;
        std::function<void()> state;
        std::function<outcome()> step;
    };

    void expect(way taken, const std::vector<row>& rows) {
        for (const row& each : rows) {
            SCOPED_TRACE(each.name);
            start_again();
            each.state();
            ASSERT_FALSE(HasFailure());
            EXPECT_EQ(each.step().taken, taken) << (taken == way::is_long ? "not by the long way" : "by the long way");
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

TEST_F(RwShortWay, IsTakenToReadOrWriteWhatIsFree) {  // R20, R45
    expect(way::is_short,
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

TEST_F(RwShortWay, TakesTheProposedTokenWhereTheLongOneDoes) {
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

TEST_F(RwShortWay, IsTakenToReadBesideOthersOfOurs) {  // R20, R28
    expect(way::is_short, {{"a second one", read_by({ann}), reads},
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

TEST_F(RwShortWay, IsTakenToReleaseWhatIsPlain) {  // R23, R24, R28
    expect(way::is_short,
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

TEST_F(RwShortWay, IsNotTakenByTheOthersWhoAskOrLeave) {
    expect(way::is_long, {{"the one who reads asks again", read_by({dan}), reads},
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

TEST_F(RwShortWay, IsNotTakenPastTheLine) {  // R29, R30
    const auto in_line = [this](std::function<void()> before, const std::string& wants) {
        return [=, this] { before(), give("rw/acquire", with(7, "wake:bob", to_acquire(bob, wants))); };
    };
    const auto only = [this](std::function<void()> before, const words& what) {
        return [=, this] { before(), tell(what); };
    };
    const words a_queue{"ZADD", queue, "5", bob}, entries{"HSET", waiters, bob, "60000 10000 1 0 w wake:bob"};
    expect(way::is_long, {{"read", in_line(read_by({ann}), "w"), reads},
                          {"release of a reader", in_line(read_by({ann}), "w"), leaves},
                          {"release of the writer", in_line(written_by_ann(), "r"), leaves},
                          {"read, a queue alone", only(read_by({ann}), a_queue), reads},
                          {"read, entries alone", only(read_by({ann}), entries), reads},
                          {"read what is free, a queue alone", only(nothing, a_queue), reads},
                          {"read what is free, entries alone", only(nothing, entries), reads},
                          {"write what is free, a queue alone", only(nothing, a_queue), writes},
                          {"release of a reader, a queue alone", only(read_by({ann}), a_queue), leaves},
                          {"release of the writer, entries alone", only(written_by_ann(), entries), leaves}});
}

TEST_F(RwShortWay, IsNotTakenBesideOtherPrograms) {  // R33
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
    expect(way::is_long, {{"read, it reads alone", came_before({}), reads},
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

TEST_F(RwShortWay, IsNotTakenWhereALeaseIsOver) {  // R28, R46
    const auto first_is_over = [this](const std::string& first, std::vector<std::string> others) {
        return [=, this] { read(first, 500), all_read(others), pass(500 - 10 * static_cast<int>(others.size())); };
    };
    expect(way::is_long, {{"read, one of two", first_is_over(ann, {bob}), reads},
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
    expect(way::is_long, {{"read", outlives(read_by({ann})), reads},
                          {"release of the reader", outlives(read_by({ann})), leaves},
                          {"release of the writer", outlives(written_by_ann()), leaves}});
}

TEST_F(RwShortWay, IsNotTakenWhereTheExpiryIsNotOurs) {  // R28, R33
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
            expect(way::is_long, {{"later by 2 ms", moved(each, 2), step},
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

TEST_F(RwShortWay, IsNotTakenWhereHashAndLeasesDisagree) {  // R33
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
        expect(way::is_long, {{"read", read_by({ann, bob, cid}, change), reads},
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
        expect(way::is_long, {{"a writer", instead(by_three, cid_lost, {"HSET", lock, "writer", "b7c0-1d"}), step},
                              {"a writer's count", instead(by_three, cid_lost, {"HSET", lock, "wcount", "1"}), step},
                              {"a lease in the middle", read_by({ann, bob, cid}, another), step},
                              {"a lease beside the only one", read_by({ann}, another), step}});
    }
    expect(way::is_long,
           {{"a writer, and a reader with a lease", instead(written_by_ann(), {"HSET", lock, "r:" + eve, "1"}, another),
             leaves},
            {"a writer, and a reader instead of its count",
             instead(written_by_ann(), {"HDEL", lock, "wcount"}, {"HSET", lock, "r:" + eve, "1"}), leaves}});

    const words ann_lost{"HDEL", lock, "r:" + ann};
    const std::string read_again = "r:" + dan;
    expect(way::is_long, {{"the caller is not in the hash, and its count is right",
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

TEST_F(RwShortWay, IsNotTakenWhereTheClockIsNotTheNextToken) {  // R45
    const auto beside = [this](const std::string& mark) {
        return [=, this] { all_read({ann}), tell({"SET", fence, mark}); };
    };
    for (const std::string& mark : {text(start_us), text(start_us + 1), std::string{"9007199254740991"},
                                    std::string{"9007199254740992"}, std::string{"none"}, std::string{"0"},
                                    std::string{"007"}, std::string{"0x10"}, std::string{"1e3"}, std::string{}}) {
        SCOPED_TRACE(mark);
        expect(way::is_long,
               {{"read what is free", mark_is(mark), reads}, {"write what is free", mark_is(mark), writes}});
        if (mark.size() != 16 || mark[0] == '9') expect(way::is_long, {{"read", beside(mark), reads}});
    }
    expect(way::is_long, {{"floor", nothing, dan_asks(6, "4000000000000000")}});
}

TEST_F(RwShortWay, IsNotTakenByQuestionsThatMakeNoSense) {
    for (const std::size_t argument : {2U, 5U, 6U, 8U, 9U, 12U}) {
        for (const char* odd : {"", "-1", "x", "1.5", " 1", "1 ", "1 1", "0x10", "1e3", "9007199254740992"}) {
            if (argument == 12 && std::string_view{odd} == "9007199254740992")
                continue;  // far from the clock, and no more
            SCOPED_TRACE(text(static_cast<std::int64_t>(argument)) + ": '" + odd + "'");
            expect(way::is_long,
                   {{"free", nothing, dan_asks(argument, odd)}, {"read", read_by({ann}), dan_asks(argument, odd)}});
        }
    }
    for (const char* odd : {"", "0", "-1", "x", "9007199254740992"}) {
        SCOPED_TRACE(odd);
        expect(way::is_long, {{"kept in line", nothing, [=, this] {
                                   return give("rw/acquire", with(10, odd, with(7, "wake:dan", to_acquire(dan, "r"))));
                               }}});
        for (const std::size_t argument : {2U, 6U}) {
            if (argument == 6 && std::string_view{odd} == "0") continue;  // that is a lease of nothing
            expect(way::is_long, {{"release", read_by({ann}), ann_releases(argument, odd)}});
        }
    }
    expect(way::is_long,
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
            EXPECT_EQ(give("rw/acquire", few).taken, way::is_short)
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

TEST_F(RwShortWay, TellsOfAKeyOfAnotherTypeAndChangesNothing) {
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

TEST_F(RwShortWay, IsRefusedByAFullServerLikeTheLongOne) {
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

// --- random sequences ------------------------------------------------------------------------------------

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RwShortWayRandom : public both_ways {
protected:
    std::string any_number() {
        static const std::string odd[] = {
            "", "0", "-1", "007", "1e3", "0x10", "x", "9007199254740991", "9007199254740992"};
        return random_.pick(odd);
    }

    outcome acquire() {
        static constexpr std::int64_t lives_ms[] = {20, 500, 3000, 10'000};
        words all = to_acquire(random_.pick(ids_),
                               random_.one_in(6)    ? "w"
                               : random_.one_in(12) ? "u"
                                                    : "r",
                               random_.pick(lives_ms));
        if (random_.one_in(8)) all[6] = "wake:nobody";
        if (random_.one_in(10)) all[5] = text(now_us_ - 50 + static_cast<int>(random_.below(100)));
        if (random_.one_in(5)) all[11] = text(now_us_ - 1'100'000 + static_cast<int>(random_.below(2'200'000)));
        if (random_.one_in(5)) all[12] = tokens_[all[0]];
        if (all[3] == "u") all[10] = tokens_[all[0]];
        if (random_.one_in(30)) all[1 + random_.below(12)] = any_number();
        return give("rw/acquire", all);
    }
    outcome release() {
        words all = to_release(random_.pick(ids_));
        if (random_.one_in(12)) all[3] = "0";
        if (random_.one_in(12)) all[4] = random_.one_in(2) ? "r" : "w";
        if (random_.one_in(30)) all[1 + random_.below(6)] = any_number();
        return give("rw/release", all);
    }
    void disturb() {
        const std::string id = random_.pick(ids_);
        const std::string some_ms = text(static_cast<std::int64_t>(1 + random_.below(4000)));
        const std::vector<std::function<void()>> all = {
            [&] { foreign(foreign_rw::lock_to_read, 1 + static_cast<std::int64_t>(random_.below(4000))); },
            [&] { foreign(foreign_rw::unlock_from_reading, 1000); },
            [&] { foreign(foreign_rw::lock_to_write, 1005); },
            [&] { foreign(foreign_rw::unlock_from_writing, 1005); },
            [&] {
                tell({"PEXPIRE", random_.one_in(2) ? lock : leases, some_ms});
            },
            [&] {
                tell({"PEXPIREAT", lock, text(tell({"PEXPIRETIME", lock}).integer + (random_.one_in(2) ? 1 : -1))});
            },
            [&] {
                tell({"PERSIST", random_.one_in(2) ? lock : grants});
            },
            [&] {
                tell({"DEL", random_.one_in(3) ? lock : random_.one_in(2) ? leases : grants});
            },
            [&] {
                tell({"ZREM", leases, id});
            },
            [&] {
                tell({"HDEL", grants, id});
            },
            [&] {
                tell({"HDEL", lock, "r:" + id});
            },
            [&] {
                tell({"SET", fence, random_.one_in(2) ? "none" : text(now_us_ + 20)});
            },
            [&] { moves_to_clock_ahead_by(random_.one_in(2) ? 700 : -700); },
        };
        random_.pick(all)();
    }

    sim::random_source random_{from_environment("HOLDFAST_RW_SEED", 20261117)};
    const std::string ids_[5] = {hold_id("a1"), hold_id("a2"), hold_id("a3"), hold_id("b1"), hold_id("b2")};
};

TEST_F(RwShortWayRandom, DoesWhatTheLongWayDoes) {  // R20-R33, R45
    const std::uint64_t steps = from_environment("HOLDFAST_RW_STEPS", 100'000) / 40;
    std::uint64_t acquired = 0, released = 0;
    static constexpr std::int64_t pauses_us[] = {0, 0, 1, 700, 1000, 9'000, 20'000, 300'000, 600'000};
    for (std::uint64_t step = 0; step < steps; ++step) {
        if (random_.one_in(40)) start_again();
        SCOPED_TRACE("step " + std::to_string(step));
        if (random_.one_in(12)) disturb();
        if (random_.one_in(25)) give("rw/renew", {random_.pick(ids_), "3600000", "arrival", "3000", "0"});
        const bool is_full = random_.one_in(25);
        if (is_full) server_is_full();
        if (random_.one_in(2)) {
            acquired += acquire().taken == way::is_short ? 1U : 0U;
        } else {
            released += release().taken == way::is_short ? 1U : 0U;
        }
        if (is_full) tell({"CONFIG", "SET", "maxmemory", "0"});
        ASSERT_FALSE(HasFailure());
        pass_us(random_.pick(pauses_us));
    }
    EXPECT_GT(acquired * 10, steps) << "too few to mean much";
    EXPECT_GT(released * 20, steps) << "too few to mean much";
}

}  // namespace
}  // namespace holdfast::testing
