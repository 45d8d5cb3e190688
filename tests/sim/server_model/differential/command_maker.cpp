#include "server_model/differential/command_maker.hpp"

#include <sstream>
#include <string_view>

namespace holdfast::sim {
namespace {

// Holes:  k key  f field or member  v text  i integer  s score  r bound of a score range  t duration, short or long
//         a absolute ms near now  A the same in s  x expire option  z ZADD option  w ZRANGE option  c channel
//         g glob; anything else is a word of the command.
constexpr std::string_view ordered_forms[] = {"GET %k",
                                              "GET %k",
                                              "SET %k %v",
                                              "SET %k %v PX %t",
                                              "SET %k %v NX PX %t",
                                              "SET %k %v XX",
                                              "SET %k %v EX %t",
                                              "SET %k %v PXAT %a",
                                              "SET %k %v EXAT %A",
                                              "SET %k %v KEEPTTL",
                                              "SET %k %v GET",
                                              "SET %k %v NX GET",
                                              "SET %k %v xx get px %t",
                                              "SET %k %i",
                                              "SET %k %v PX %t KEEPTTL",
                                              "SET %k %v PX %i",
                                              "SET %k %v EX %i NX XX",
                                              "DEL %k",
                                              "DEL %k %k",
                                              "UNLINK %k",
                                              "EXISTS %k",
                                              "EXISTS %k %k %k",
                                              "EXPIRE %k %t",
                                              "EXPIRE %k %t %x",
                                              "PEXPIRE %k %t",
                                              "PEXPIRE %k %t %x",
                                              "PEXPIRE %k %t %x %x",
                                              "PEXPIRE %k %i",
                                              "EXPIRE %k %i",
                                              "PEXPIREAT %k %a",
                                              "PEXPIREAT %k %a %x",
                                              "EXPIREAT %k %A",
                                              "PTTL %k",
                                              "PTTL %k",
                                              "TTL %k",
                                              "PEXPIRETIME %k",
                                              "EXPIRETIME %k",
                                              "PERSIST %k",
                                              "TYPE %k",
                                              "STRLEN %k",
                                              "GETDEL %k",
                                              "INCR %k",
                                              "INCRBY %k %i",
                                              "HSET %k %f %v",
                                              "HSET %k %f %v %f %i",
                                              "HSET %k %f %v %f",
                                              "HSETNX %k %f %v",
                                              "HGET %k %f",
                                              "HMGET %k %f %f %f",
                                              "HDEL %k %f",
                                              "HDEL %k %f %f",
                                              "HLEN %k",
                                              "HEXISTS %k %f",
                                              "HINCRBY %k %f %i",
                                              "HKEYS %k",
                                              "HVALS %k",
                                              "HGETALL %k",
                                              "HGETALL %k",
                                              "ZADD %k %s %f",
                                              "ZADD %k %s %f",
                                              "ZADD %k %s %f %s %f",
                                              "ZADD %k %z %s %f",
                                              "ZADD %k %z %z %s %f %s %f",
                                              "ZADD %k %s",
                                              "ZINCRBY %k %s %f",
                                              "ZREM %k %f",
                                              "ZREM %k %f %f",
                                              "ZSCORE %k %f",
                                              "ZCARD %k",
                                              "ZRANK %k %f",
                                              "ZRANGE %k %i %i",
                                              "ZRANGE %k 0 -1",
                                              "ZRANGE %k 0 0 WITHSCORES",
                                              "ZRANGE %k -1 -1 withscores",
                                              "ZRANGE %k %r %r BYSCORE",
                                              "ZRANGE %k %r %r BYSCORE REV",
                                              "ZRANGE %k %r %r BYSCORE LIMIT %i %i WITHSCORES",
                                              "ZRANGE %k %i %i %w %w",
                                              "ZREVRANGE %k %i %i WITHSCORES",
                                              "ZRANGEBYSCORE %k %r %r",
                                              "ZRANGEBYSCORE %k -inf %r WITHSCORES LIMIT %i %i",
                                              "ZREVRANGEBYSCORE %k %r %r LIMIT 0 %i",
                                              "ZRANGEBYSCORE %k -inf +inf",
                                              "ZCOUNT %k %r %r",
                                              "ZREMRANGEBYSCORE %k %r %r",
                                              "ZPOPMIN %k",
                                              "ZPOPMIN %k %i",
                                              "SADD %k %f",
                                              "SADD %k %f %i %v",
                                              "SREM %k %f",
                                              "SREM %k %f %f",
                                              "SCARD %k",
                                              "SISMEMBER %k %f",
                                              "TIME",
                                              "PUBLISH %c %v",
                                              "SPUBLISH %c %v",
                                              "PUBSUB NUMSUB %c %c",
                                              "PUBSUB NUMSUB",
                                              "PUBSUB SHARDNUMSUB %c",
                                              "PUBSUB NUMPAT",
                                              "PUBSUB %v",
                                              "PUBSUB",
                                              "DBSIZE",
                                              "PING",
                                              "PING %v",
                                              "ECHO %v",
                                              "%v %v"};

constexpr std::string_view unordered_forms[] = {"KEYS %g",
                                                "KEYS *",
                                                "SCAN 0 COUNT 1000",
                                                "SCAN x",
                                                "SCAN 0 COUNT 0",
                                                "SCAN 0 COUNT",
                                                "SCAN 0 COUNT x",
                                                "SMEMBERS %k",
                                                "SMEMBERS %k",
                                                "PUBSUB CHANNELS",
                                                "PUBSUB CHANNELS %g",
                                                "PUBSUB SHARDCHANNELS",
                                                "SCRIPT EXISTS %v %v",
                                                "SCRIPT %v",
                                                "EVALSHA %v 0",
                                                "EVAL return %i",
                                                "EVAL return %i %k"};

constexpr std::string_view keys[] = {"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};
constexpr std::string_view fields[] = {"a",  "b", "c",    "d",     "1",
                                       "22", "",  "mode", "r:abc", "long-member-name-0123456789"};
constexpr std::string_view texts[] = {"x",
                                      "owner-1",
                                      "owner-2",
                                      "",
                                      "10",
                                      "-3",
                                      "007",
                                      " 5",
                                      "3.5",
                                      "hello world",
                                      "9223372036854775807",
                                      "\xff\x01"
                                      "bin",
                                      "a\r\nb"};
constexpr std::string_view integers[] = {"0",
                                         "1",
                                         "2",
                                         "-1",
                                         "-2",
                                         "3",
                                         "5",
                                         "10",
                                         "100",
                                         "-100",
                                         "x",
                                         "",
                                         "1.5",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "+1",
                                         "01",
                                         "-0",
                                         " 1",
                                         "1 "};
constexpr std::string_view scores[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "1.5",
                                       "0.1",
                                       "1e3",
                                       "inf",
                                       "-inf",
                                       "+inf",
                                       "nan",
                                       "x",
                                       "",
                                       "1700000000000000",
                                       "1794781249637580",
                                       "3.0000000000000001",
                                       "-0",
                                       "0x10",
                                       " 1",
                                       "1 ",
                                       "123456789012345678",
                                       "1e-5",
                                       "1e17",
                                       "1e400",
                                       "1e-400"};
constexpr std::string_view bounds[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "(1",
                                       "(2",
                                       "(0",
                                       "-inf",
                                       "+inf",
                                       "inf",
                                       "(inf",
                                       "(-inf",
                                       "1.5",
                                       "x",
                                       "",
                                       "(",
                                       "1e3",
                                       "(1700000000000000",
                                       "nan",
                                       "((1"};
constexpr std::string_view durations[] = {"1",   "2",   "3",    "5",    "8",    "20",   "50",
                                          "200", "500", "1000", "1500", "2500", "60000"};
constexpr std::string_view expire_options[] = {"NX", "XX", "GT", "LT", "gt", "lt", "bad"};
constexpr std::string_view add_options[] = {"NX", "XX", "GT", "LT", "CH", "ch", "INCR", "nx"};
constexpr std::string_view range_options[] = {"WITHSCORES", "REV", "BYSCORE", "LIMIT", "bad", "rev"};
constexpr std::string_view channels[] = {"w:a", "w:b", "w:c"};
constexpr std::string_view globs[] = {"k?", "k[1-3]", "k[^1]", "*1*", "\\k1", "k*", "[", "w:[ab]", "?"};

}  // namespace

std::string command_maker::key() {
    return std::string{random_.pick(keys)};
}
std::string command_maker::text() {
    return std::string{random_.pick(texts)};
}
std::string command_maker::integer() {
    return std::string{random_.pick(integers)};
}
std::string command_maker::score() {
    return std::string{random_.pick(scores)};
}

std::string command_maker::fill(char hole) {
    const auto near_now_ms = [&] { return now_ms_ + static_cast<std::int64_t>(random_.below(60)) - 20; };
    switch (hole) {
        case 'k':
            return key();
        case 'f':
            return std::string{random_.pick(fields)};
        case 'v':
            return text();
        // Half of them are plain, so that most commands get past the parser.
        case 'i':
            return random_.one_in(2) ? std::to_string(random_.below(5)) : integer();
        case 's':
            return random_.one_in(2) ? std::to_string(random_.below(5)) : score();
        case 'r':
            return std::string{random_.pick(bounds)};
        case 't':
            return std::string{random_.pick(durations)};
        case 'a':
            return std::to_string(near_now_ms());
        case 'A':
            return std::to_string(near_now_ms() / 1000 + static_cast<std::int64_t>(random_.below(3)));
        case 'x':
            return std::string{random_.pick(expire_options)};
        case 'z':
            return std::string{random_.pick(add_options)};
        case 'w':
            return std::string{random_.pick(range_options)};
        case 'c':
            return std::string{random_.pick(channels)};
        default:
            return std::string{random_.pick(globs)};
    }
}

word_list command_maker::damaged(word_list command) {
    switch (random_.below(4)) {
        case 0:
            command.pop_back();
            break;
        case 1:
            command.push_back(text());
            break;
        case 2:
            command.push_back(command.back());
            break;
        default:
            command.back() = text();
    }
    if (command.empty()) command.push_back("GET");
    return command;
}

word_list command_maker::ordered() {
    std::istringstream form{std::string{random_.pick(ordered_forms)}};
    word_list command;
    for (std::string word; form >> word;) command.push_back(word[0] == '%' ? fill(word[1]) : word);
    return random_.one_in(40) ? damaged(std::move(command)) : command;
}

word_list command_maker::any() {
    if (random_.one_in(400)) return {"FLUSHALL"};
    if (!random_.one_in(12)) return ordered();
    std::istringstream form{std::string{random_.pick(unordered_forms)}};
    word_list command;
    for (std::string word; form >> word;) command.push_back(word[0] == '%' ? fill(word[1]) : word);
    return command;
}

}  // namespace holdfast::sim
