// Scripts run on servers and services that look at their text, or answer a little differently (docs/protocol.md).
//
// Some managed services accept only literal command names, and keys only as KEYS[n]. The check reads every call of
// every script, also those that no test runs.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "wire/scripts.hpp"

namespace holdfast::wire::portable_scripts_test {
namespace {

// How many arguments in front are keys; -1: all of them.
const std::map<std::string, int, std::less<>> keys_of{
    {"DEL", -1},   {"EXISTS", -1}, {"GET", 1},      {"HDEL", 1},    {"HEXISTS", 1},       {"HGET", 1},  {"HGETALL", 1},
    {"HLEN", 1},   {"HMGET", 1},   {"HSET", 1},     {"PEXPIRE", 1}, {"PEXPIREAT", 1},     {"PTTL", 1},  {"SET", 1},
    {"TYPE", 1},   {"ZADD", 1},    {"ZCARD", 1},    {"ZRANGE", 1},  {"ZRANGEBYSCORE", 1}, {"ZRANK", 1}, {"ZREM", 1},
    {"ZSCORE", 1}, {"PUBLISH", 0}, {"SPUBLISH", 0}, {"PUBSUB", 0},  {"TIME", 0},
};

bool is_key(const std::string& argument) {
    static const std::regex form{R"(KEYS\[[1-9]\d?\])"};
    return std::regex_match(argument, form);
}

std::string without_comments(std::string_view text) {
    static const std::regex comment{"--[^\n]*"};
    return std::regex_replace(std::string{text}, comment, "");
}

// The arguments of the call whose opening parenthesis is at `open`, as they are written.
std::vector<std::string> arguments_at(const std::string& text, std::size_t open) {
    std::vector<std::string> all{""};
    int depth = 0;
    for (std::size_t at = open; at < text.size(); ++at) {
        const char one = text[at];
        if (one == '\'') {
            const std::size_t end = text.find('\'', at + 1);
            all.back() += text.substr(at, end - at + 1);
            at = end;
            continue;
        }
        if (one == '(' || one == '{' || one == '[') ++depth;
        if (one == ')' || one == '}' || one == ']') --depth;
        if (depth == 0) break;
        if (at == open || one == ' ' || one == '\n') continue;
        if (one == ',' && depth == 1)
            all.emplace_back();
        else
            all.back() += one;
    }
    return all;
}

// What is wrong with the calls of a script; empty: nothing.
std::string fault_of(std::string_view script) {
    const std::string text = without_comments(script);
    static const std::regex redis{R"(\bredis\b(\.(call|pcall|error_reply)\b\(?)?)"};
    std::string faults;
    for (std::sregex_iterator it{text.begin(), text.end(), redis}, end; it != end; ++it) {
        const std::string use = it->str();
        if (use == "redis.error_reply(") continue;
        if (use != "redis.call(" && use != "redis.pcall(") {
            faults += "redis without a call: " + use + "\n";
            continue;
        }
        const auto words = arguments_at(text, static_cast<std::size_t>(it->position()) + use.size() - 1);
        const std::string& name = words[0];
        const auto known = name.size() > 2 ? keys_of.find(name.substr(1, name.size() - 2)) : keys_of.end();
        if (name.front() != '\'' || known == keys_of.end()) {
            faults += "no literal command: " + name + "\n";
            continue;
        }
        const std::size_t keys = known->second < 0 ? words.size() - 1 : static_cast<std::size_t>(known->second);
        for (std::size_t i = 1; i <= keys; ++i) {
            if (i >= words.size() || !is_key(words[i])) faults += "no literal key: " + name + "\n";
        }
    }
    static const std::regex keys{R"(\bKEYS\b(?!\[[1-9]\d?\]))"};
    if (std::regex_search(text, keys)) faults += "KEYS is used as a list\n";
    return faults;
}

TEST(PortableScripts, NameEveryCommandAndEveryKeyLiterally) {
    std::size_t seen = 0;
    for (const auto list : {all(), tools()}) {
        for (const script& each : list) {
            EXPECT_EQ(fault_of(each.text), "") << each.name;
            ++seen;
        }
    }
    EXPECT_GT(seen, 12U);
}

// Redis 7.0 answers NOPERM to a command that is not allowed, newer servers "ERR ACL failure in script". So a script
// only asks whether a call failed.
TEST(PortableScripts, DoNotReadTheWordsOfAnError) {
    static const std::regex words{R"(\.err\b(?!\s*[~=]=\s*nil))"};
    for (const auto list : {all(), tools()}) {
        for (const script& each : list) {
            EXPECT_FALSE(std::regex_search(without_comments(each.text), words)) << each.name;
        }
    }
}

// That TIME may answer with integers is shown by Scenarios.AreTheSameWhereTimeIsToldInIntegers in tests/sim.
TEST(PortableScripts, CheckFindsWhatItLooksFor) {
    for (const char* const bad :
         {"redis.call(name, KEYS[1])", "redis.call('GET', key)", "redis.call('GET', KEYS[i])",
          "redis.call('DEL', KEYS[1], key)", "local call = redis.call", "redis.call(unpack(ARGV))",
          "redis.call('GET' .. 'SET', KEYS[1])", "for _, key in ipairs(KEYS) do end", "redis.sha1hex('x')",
          "redis.call(x and 'GET' or 'SET', KEYS[1])", "redis.call('ZADD', unpack(KEYS))", "redis.call('EVAL', 'x')"}) {
        EXPECT_NE(fault_of(bad), "") << bad;
    }
    EXPECT_EQ(fault_of("redis.call('SET', KEYS[1], f(a, 'b,c'), 'PX', 5) -- redis.call(x)"), "");
}

}  // namespace
}  // namespace holdfast::wire::portable_scripts_test
