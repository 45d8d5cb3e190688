// Any bytes, as a server's: the reader must not crash, must keep the shape of its replies, and must not care
// where the pieces end. Compared with hiredis by tests/unit/redis/resp/resp_hiredis_test.cpp, which knows where the two
// differ.
//
// The first byte chooses the limits and seeds the pieces, the rest is what the server says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "redis/resp/resp_reader.hpp"

namespace {

using namespace holdfast::redis;

void require(bool holds) {
    if (!holds) std::abort();
}

// Writes the reply down, so that two can be compared, and checks its shape on the way. Returns how many elements.
std::size_t record(reply_view reply, std::string& out, std::size_t depth_left) {
    require(depth_left > 0);
    out += std::to_string(static_cast<int>(reply.type())) + '/' + std::to_string(reply.size()) + '/';
    out.append(reply.text()) += '/';
    if (reply.type() == resp_type::integer) out += std::to_string(reply.integer());
    if (reply.type() == resp_type::boolean) require(reply.integer() == 0 || reply.integer() == 1);
    if (reply.type() == resp_type::map) require(reply.size() % 2 == 0);
    require(reply.is_aggregate() || reply.size() == 0);
    static_cast<void>(reply.to_integer());
    std::size_t elements = 1;
    std::size_t children = 0;
    for (const reply_view child : reply) {
        if (children < 4) require(reply[children].type() == child.type() && reply[children].text() == child.text());
        elements += record(child, out, depth_left - 1);
        ++children;
    }
    require(children == reply.size());
    return elements;
}

// All replies and the fault, in writing.
template <class NextSize>
std::string parse(std::string_view bytes, const resp_limits& limits, NextSize next_size) {
    resp_reader reader{limits};
    std::string out;
    reply_view reply;
    while (!bytes.empty()) {
        const std::size_t size = std::min<std::size_t>(bytes.size(), next_size());
        std::memcpy(reader.prepare(size).data(), bytes.data(), size);
        reader.commit(size);
        bytes.remove_prefix(size);
        while (reader.next(reply) == resp_status::reply) {
            require(record(reply, out, limits.max_depth + 1) <= limits.max_elements + 1);
            out += '\n';
        }
    }
    require((reader.fault() == resp_fault::none) == reader.fault_text().empty());
    require(reader.fault_text().size() < 256);
    return out + std::to_string(static_cast<int>(reader.fault())) + '/' + std::to_string(reader.buffered());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    std::uint32_t state = data[0] + 1u;
    const auto random_size = [&state] {
        state = state * 1664525u + 1013904223u;
        return std::size_t{1} + (state >> 16) % 13;
    };
    const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const bool tight = data[0] % 2 == 1;
    const resp_limits limits = tight ? resp_limits{.max_depth = 3,
                                                   .max_elements = 10,
                                                   .max_bulk_bytes = 20,
                                                   .max_line_bytes = 12,
                                                   .max_reply_bytes = 60}
                                     : resp_limits{};
    const std::string at_once = parse(bytes, limits, [&] { return bytes.size(); });
    require(at_once == parse(bytes, limits, random_size));
    require(at_once == parse(bytes, limits, [] { return std::size_t{1}; }));
    return 0;
}
