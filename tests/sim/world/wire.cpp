#include "world/wire.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

namespace holdfast::sim {

namespace {

struct header {
    char type;
    std::int64_t number;
};

void append(std::string& out, header what) {
    std::array<char, 24> line;
    line[0] = what.type;
    char* const end = std::to_chars(line.data() + 1, line.data() + line.size() - 2, what.number).ptr;
    end[0] = '\r';
    end[1] = '\n';
    out.append(line.data(), static_cast<std::size_t>(end + 2 - line.data()));
}

void append_bulk(std::string& out, std::string_view text) {
    append(out, {'$', static_cast<std::int64_t>(text.size())});
    out.append(text).append("\r\n");
}

}  // namespace

std::string bulk(std::string_view text) {
    std::string out;
    append_bulk(out, text);
    return out;
}

void append_resp(std::string& out, const value& what) {
    switch (what.type) {
        case value::kind::nil:
            out += "_\r\n";
            break;
        case value::kind::status:
            out.append("+").append(what.text).append("\r\n");
            break;
        case value::kind::error:
            out.append("-").append(what.text).append("\r\n");
            break;
        case value::kind::integer:
            append(out, {':', what.integer});
            break;
        case value::kind::bulk:
            append_bulk(out, what.text);
            break;
        case value::kind::array:
            append(out, {'*', static_cast<std::int64_t>(what.items.size())});
            for (const value& item : what.items) append_resp(out, item);
            break;
    }
}

std::string message_push(const message& what) {
    const char* const kind = what.kind == channel_kind::plain ? "message" : "smessage";
    return ">3\r\n" + bulk(kind) + bulk(what.channel) + bulk(what.payload);
}

void command_reader::add(std::string_view bytes) {
    const std::span<char> room = reader_.prepare(bytes.size());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    reader_.commit(bytes.size());
}

const std::vector<std::string_view>& command_reader::next() {
    words_.clear();
    redis::reply_view whole;
    switch (reader_.next(whole)) {
        case redis::resp_status::need_more:
            break;
        case redis::resp_status::broken:
            throw std::logic_error("a client sent what is no command: " + reader_.fault_text());
        case redis::resp_status::reply:
            for (const redis::reply_view word : whole) words_.push_back(word.text());
            break;
    }
    return words_;
}

}  // namespace holdfast::sim
