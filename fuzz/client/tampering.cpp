#include "client/tampering.hpp"

#include <array>
#include <string_view>

namespace holdfast::fuzz {
namespace {

using std::string;
using std::string_view;

constexpr std::array<string_view, 18> numbers{"0",
                                              "1",
                                              "2",
                                              "-1",
                                              "3",
                                              "41",
                                              "42",
                                              "30000",
                                              "1000000",
                                              "1800000000000000",
                                              "007",
                                              "-2",
                                              "4503599627370496",
                                              "9007199254740991",
                                              "9007199254740992",
                                              "",
                                              "1.5e3",
                                              "9223372036854775807"};

constexpr std::array<string_view, 12> words{"held",  "reading", "writing", "reserved", "deadlock", "mode",
                                            "limit", "permits", "kept",    "",         "both",     "a b\r\nc"};

constexpr std::array<string_view, 32> errors{"ERR unknown command",
                                             "NOSCRIPT No matching script",
                                             "WRONGTYPE Operation against a key",
                                             "MOVED 5 member1:7001",
                                             "MOVED 16383 member0:7000",
                                             "MOVED 99999 member1:7001",
                                             "MOVED 5 :7001",
                                             "MOVED",
                                             "ASK 5 member1:7001",
                                             "ASK 5",
                                             "TRYAGAIN Multiple keys request",
                                             "CLUSTERDOWN Hash slot not served",
                                             "LOADING Redis is loading",
                                             "READONLY You can't write",
                                             "OOM command not allowed",
                                             "NOPERM no permissions",
                                             "NOAUTH Authentication required",
                                             "WRONGPASS invalid",
                                             "BUSY Redis is busy",
                                             "MASTERDOWN Link with MASTER is down",
                                             "MISCONF Redis is configured",
                                             "NOREPLICAS Not enough good replicas",
                                             "NOPROTO unsupported protocol version",
                                             "UNKILLABLE Sorry",
                                             "NOGOODSLAVE",
                                             "EXECABORT",
                                             "CROSSSLOT Keys in request",
                                             "ERR max number of clients reached",
                                             "ERR Script attempted to access a non local key in a cluster node",
                                             "ERR",
                                             "",
                                             "READONLY"};

constexpr std::array<string_view, 24> oddities{"_\r\n",
                                               "$-1\r\n",
                                               "*-1\r\n",
                                               "*0\r\n",
                                               "+OK\r\n",
                                               "+PONG\r\n",
                                               "+QUEUED\r\n",
                                               ":0\r\n",
                                               ":1\r\n",
                                               ":-1\r\n",
                                               ":9223372036854775807\r\n",
                                               "#t\r\n",
                                               ",1.5\r\n",
                                               ",nan\r\n",
                                               "(12345678901234567890123\r\n",
                                               "=8\r\ntxt:some\r\n",
                                               "!5\r\nERR x\r\n",
                                               "%1\r\n+a\r\n:1\r\n",
                                               "~1\r\n:1\r\n",
                                               "|1\r\n+ttl\r\n:3\r\n:1\r\n",
                                               "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
                                               "*1000000\r\n",
                                               "$536870912\r\n",
                                               "HTTP/1.1 400 Bad Request\r\n\r\n"};

string bulk(string_view text) {
    return sim::bulk(text);
}

string number(choices& choose) {
    return string(choose.of(numbers));
}

string any_id(choices& choose, const grant_record& seen) {
    if (seen.ids().empty() || choose.one_in(8)) return "another program";
    return seen.ids()[seen.ids().size() - 1 - choose.below(std::min<std::size_t>(seen.ids().size(), 4))];
}

string any_value(choices& choose, const grant_record& seen) {
    switch (choose.below(6)) {
        case 0:
            return bulk(number(choose));
        case 1:
            return ":" + number(choose) + "\r\n";
        case 2:
            return bulk(any_id(choose, seen));
        case 3:
            return bulk(choose.of(words));
        case 4:
            return string(choose.of(oddities));
        default:
            return bulk(choose.text(12));
    }
}

// Looks like the answer of a script, with values that are nearly right.
string script_answer(choices& choose, const grant_record& seen) {
    constexpr std::array<string_view, 6> codes{":1\r\n", ":0\r\n", ":2\r\n", ":-1\r\n", ":3\r\n", "$1\r\n1\r\n"};
    const std::size_t size = 1 + choose.below(10);
    string out = "*" + std::to_string(size) + "\r\n" + string(choose.of(codes));
    for (std::size_t i = 1; i < size; ++i) out += any_value(choose, seen);
    return out;
}

// Answers of several locks taken together have this form.
string nested_answer(choices& choose, const grant_record& seen) {
    const std::size_t size = choose.below(4);
    string out = "*" + std::to_string(size) + "\r\n";
    for (std::size_t i = 0; i < size; ++i) out += script_answer(choose, seen);
    return out;
}

std::vector<string> lines_of(const string& reply) {
    std::vector<string> lines;
    for (std::size_t at = 0; at < reply.size();) {
        const std::size_t end = std::min(reply.find("\r\n", at), reply.size() - 2) + 2;
        lines.push_back(reply.substr(at, end - at));
        at = end;
    }
    return lines;
}

// The same with one number, or one line, replaced.
string slightly_wrong(const string& reply, choices& choose, const grant_record& seen) {
    if (reply.size() < 2) return reply;
    std::vector<string> lines = lines_of(reply);
    string& line = lines[choose.below(std::min<std::size_t>(lines.size(), 256))];
    if (line[0] == ':' || line[0] == '*' || line[0] == '$') {
        line = line[0] + number(choose) + "\r\n";
    } else {
        line = choose.one_in(2) ? any_value(choose, seen) : number(choose) + "\r\n";
    }
    string out;
    for (const string& each : lines) out += each;
    return out;
}

// A list with one element more or fewer, of which only the count knows, or all.
string wrong_count(const string& reply, choices& choose, const grant_record& seen) {
    if (reply.empty() || (reply[0] != '*' && reply[0] != '>' && reply[0] != '%')) return reply + reply;
    std::vector<string> lines = lines_of(reply);
    const string more = any_value(choose, seen);
    lines.push_back(more);
    const int count = std::atoi(lines[0].c_str() + 1);
    lines[0] = lines[0][0] + std::to_string(count + 1) + "\r\n";
    string out;
    for (const string& each : lines) out += each;
    return out;
}

tampered in_pieces(const string& reply, choices& choose) {
    tampered out;
    string rest = reply;
    while (rest.size() > 1 && out.pieces.size() < 4) {
        const std::size_t size = 1 + choose.below(std::min<std::size_t>(rest.size() - 1, 255));
        out.pieces.push_back(rest.substr(0, size));
        rest.erase(0, size);
    }
    out.pieces.push_back(rest);
    return out;
}

}  // namespace

string invented_push(choices& choose, const grant_record& seen) {
    constexpr std::array<string_view, 10> verbs{"grant",       "poll",  "revoked", "recall", "wanted",
                                                "grant_block", "Grant", "",        "grant ", "recall  "};
    constexpr std::array<string_view, 8> kinds{"message",     "smessage",   "pmessage",     "subscribe",
                                               "unsubscribe", "ssubscribe", "sunsubscribe", "invalidate"};
    string text(choose.of(verbs));
    for (std::size_t parts = choose.below(4); parts > 0; --parts) {
        text += " " + any_id(choose, seen);
        for (std::size_t i = choose.below(4); i > 0; --i) text += " " + number(choose);
    }
    const string channel = "hf:wake:" + choose.text(8);
    const string kind(choose.of(kinds));
    if (choose.one_in(8)) return ">2\r\n" + bulk(kind) + bulk(channel);
    const string last = choose.one_in(8) ? any_value(choose, seen) : bulk(text);
    return ">3\r\n" + bulk(kind) + bulk(channel) + last;
}

tampered tamper(const string& reply, choices& choose, const grant_record& seen) {
    const std::size_t what = choose.byte();
    if (what < 96) return {{reply}};
    switch (what % 14) {
        case 0:
            return {{script_answer(choose, seen)}};
        case 1:
            return {{"-" + string(choose.of(errors)) + "\r\n"}};
        case 2:
            return {{string(choose.of(oddities))}};
        case 3:
            return {{slightly_wrong(reply, choose, seen)}};
        case 4:
            return {{wrong_count(reply, choose, seen)}};
        case 5:
            return {{reply, reply}};
        case 6:
            return {};
        case 7:
            return in_pieces(reply, choose);
        case 8:
            return {.pieces = {reply.substr(0, choose.below(std::min<std::size_t>(reply.size(), 256)))},
                    .ends_link = true};
        case 9:
            return {{invented_push(choose, seen) + reply}};
        case 10:
            return {{reply + invented_push(choose, seen)}};
        case 11:
            return {.pieces = {reply}, .is_late = true};
        case 12:
            return {{choose.text(24)}};
        default:
            return {{nested_answer(choose, seen)}};
    }
}

}  // namespace holdfast::fuzz
