// Rules of the script engine that a real server does not have: declared keys, endless loops, coverage, sharing.

#include <gtest/gtest.h>

#include "server_model/server_model.hpp"

namespace holdfast::sim::server_model_script_test {
namespace {

class scripts : public ::testing::Test {
protected:
    value eval(const std::string& text, const std::vector<std::string>& keys = {}) {
        std::vector<std::string> command{"EVAL", text, std::to_string(keys.size())};
        command.insert(command.end(), keys.begin(), keys.end());
        return model_.execute(command);
    }

    server_model model_;
};

using DeclaredKeys = scripts;

TEST_F(DeclaredKeys, AnyOtherKeyThrows) {
    EXPECT_THROW(eval("return redis.call('GET', 'other')", {"mine"}), undeclared_key);
    EXPECT_THROW(eval("return redis.call('DEL', KEYS[1], 'other')", {"mine"}), undeclared_key);
    EXPECT_THROW(eval("return redis.call('KEYS', '*')", {"mine"}), undeclared_key);
    EXPECT_NO_THROW(eval("return redis.call('DEL', KEYS[1], KEYS[2])", {"mine", "too"}));
}

TEST_F(DeclaredKeys, PcallCannotHideAnUndeclaredKey) {
    EXPECT_THROW(eval("redis.pcall('SET', 'other', 1) return 1"), undeclared_key);
    EXPECT_THROW(eval("pcall(redis.call, 'SET', 'other', 1) return 1"), undeclared_key);
    EXPECT_THROW(eval("pcall(redis.call, 'SET', 'x', 1) redis.call('SET', KEYS[1], 1)", {"mine"}), undeclared_key);
    EXPECT_EQ(model_.dump(), "");
}

TEST_F(DeclaredKeys, AreNotRequiredWhenTheCheckIsOff) {
    server_model lax{{.undeclared_keys = key_check::off, .engine = nullptr}};
    EXPECT_EQ(lax.execute({"EVAL", "return redis.call('SET', 'any', 1)", "0"}), value::make_status("OK"));
}

TEST_F(scripts, AfterAThrowTheNextRunIsClean) {
    EXPECT_THROW(eval("return redis.call('GET', 'other')"), undeclared_key);
    EXPECT_EQ(eval("return {#KEYS, redis.call('GET', KEYS[1])}", {"mine"}),
              value::make_array({value::make_integer(1), value::make_nil()}));
}

TEST_F(scripts, ThatDoNotEndThrow) {
    EXPECT_THROW(eval("while true do end"), runaway_script);
    EXPECT_THROW(eval("while true do pcall(function() while true do end end) end"), runaway_script);
}

TEST_F(scripts, ThatWouldKillTheServerThrow) {
    EXPECT_THROW(eval("error({})"), std::logic_error);
}

TEST_F(scripts, CannotLeaveAnythingBehind) {
    for (const char* text : {"leak = 1", "KEYS = 1", "string.leak = 1", "redis.leak = 1", "math.floor = nil",
                             "rawset(_G, 'leak', 1)", "rawset(string, 'leak', 1)", "setmetatable(_G, nil)"}) {
        const value reply = eval(text);
        EXPECT_TRUE(reply.is_error()) << text;
        EXPECT_NE(reply.text.find("Attempt to modify a readonly table"), std::string::npos) << reply;
    }
    EXPECT_EQ(eval("return {type(string.leak), type(redis.leak), math.floor(1.5)}"),
              value::make_array({value::make_bulk("nil"), value::make_bulk("nil"), value::make_integer(1)}));
}

TEST_F(scripts, CannotUseRandomNumbers) {
    EXPECT_TRUE(eval("return math.random()").is_error());
}

TEST_F(scripts, SeeOneInstant) {
    model_.set_time(1'000'000'000'000'999);
    EXPECT_EQ(eval("redis.call('SET', KEYS[1], 1, 'PX', 1) local a = redis.call('TIME') for i = 1, 100000 do end "
                   "local b = redis.call('TIME') return a[1] == b[1] and a[2] == b[2] and redis.call('PTTL', "
                   "KEYS[1])",
                   {"k"}),
              value::make_integer(1));
}

TEST(Engine, SharedByServersKeepsTheirScriptsApart) {
    const auto engine = std::make_shared<script_engine>();
    server_model one{{.engine = engine}};
    server_model two{{.engine = engine}};
    const std::string sha1 = one.execute({"SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])"}).text;
    EXPECT_TRUE(two.execute({"EVALSHA", sha1, "1", "k"}).is_error());
    two.execute({"SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])"});
    one.execute({"SET", "k", "of one"});
    two.execute({"SET", "k", "of two"});
    EXPECT_EQ(one.execute({"EVALSHA", sha1, "1", "k"}), value::make_bulk("of one"));
    EXPECT_EQ(two.execute({"EVALSHA", sha1, "1", "k"}), value::make_bulk("of two"));
}

constexpr const char* branching =
    "local function never()\n"  // 1
    "    return 'inner'\n"      // 2
    "end\n"                     // 3
    "-- a comment\n"            // 4
    "if ARGV[1] == 'a' then\n"  // 5
    "    return 1\n"            // 6
    "end\n"                     // 7
    "return 2\n";               // 8

TEST(Coverage, ListsLinesThatNeverRanIncludingInnerFunctions) {
    server_model covered{{.engine = std::make_shared<script_engine>(script_engine::coverage::on)}};
    const std::string sha1 = covered.execute({"SCRIPT", "LOAD", branching}).text;
    const auto missed = [&] { return covered.engine().lines_of(sha1).missed(); };
    EXPECT_EQ(missed(), (std::vector<int>{2, 3, 5, 6, 8}));
    covered.execute({"EVALSHA", sha1, "0", "b"});
    EXPECT_EQ(missed(), (std::vector<int>{2, 6}));
    covered.execute({"EVALSHA", sha1, "0", "a"});
    EXPECT_EQ(missed(), (std::vector<int>{2}));
    EXPECT_EQ(covered.engine().lines_of(sha1).hits.at(5), 2U);
}

}  // namespace
}  // namespace holdfast::sim::server_model_script_test
