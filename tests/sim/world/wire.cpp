#include "world/wire.hpp"

#include <algorithm>
#include <stdexcept>

namespace holdfast::sim {

std::string bulk(std::string_view text) {
    std::string out = "$" + std::to_string(text.size()) + "\r\n";
    out += text;
    return out += "\r\n";
}

void append_resp(std::string& out, const value& what) {
    switch (what.type) {
        case value::kind::nil:
            out += "_\r\n";
            break;
        case value::kind::status:
            out += "+" + what.text + "\r\n";
            break;
        case value::kind::error:
            out += "-" + what.text + "\r\n";
            break;
        case value::kind::integer:
            out += ":" + std::to_string(what.integer) + "\r\n";
            break;
        case value::kind::bulk:
            out += bulk(what.text);
            break;
        case value::kind::array:
            out += "*" + std::to_string(what.items.size()) + "\r\n";
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
