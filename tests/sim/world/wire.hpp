// The server's half of RESP: encodes answers and decodes commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "redis/resp/resp_reader.hpp"
#include "server_model/channels.hpp"
#include "server_model/value.hpp"

namespace holdfast::sim {

void append_resp(std::string& out, const value& what);
std::string bulk(std::string_view text);
/// ["message", channel, payload] as a RESP3 push; for a sharded channel an "smessage".
std::string message_push(const message& what);

/// Splits the byte stream into commands, each an array of strings.
class command_reader {
public:
    void add(std::string_view bytes);
    /// Views into the reader, valid until the next call; empty: no complete command yet.
    const std::vector<std::string_view>& next();

private:
    redis::resp_reader reader_;
    std::vector<std::string_view> words_;
};

}  // namespace holdfast::sim
