// Replies as plain values for comparison, and ways to feed bytes to a reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/resp/resp_reader.hpp"

namespace holdfast::redis::testing {

struct tree {
    resp_type type = resp_type::null;
    std::string text;
    std::int64_t integer = 0;
    std::vector<tree> children;

    bool operator==(const tree&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const tree& t) {
    out << static_cast<int>(t.type) << ' ' << t.integer << " '" << t.text << "'[";
    for (const tree& child : t.children) out << child << ',';
    return out << ']';
}

inline tree tree_of(reply_view reply) {
    tree t{reply.type(), std::string{reply.text()}, 0, {}};
    if (t.type == resp_type::integer || t.type == resp_type::boolean) t.integer = reply.integer();
    for (const reply_view child : reply) t.children.push_back(tree_of(child));
    return t;
}

/// The result of some bytes: the replies, then the fault or what is left.
struct outcome {
    std::vector<tree> replies;
    resp_fault fault = resp_fault::none;
    std::size_t left = 0;

    bool operator==(const outcome&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const outcome& o) {
    out << "fault " << static_cast<int>(o.fault) << ", " << o.left << " left, replies:\n";
    for (const tree& reply : o.replies) out << "  " << reply << '\n';
    return out;
}

inline void feed(resp_reader& reader, std::string_view bytes) {
    const std::span<char> room = reader.prepare(bytes.size());
    std::copy(bytes.begin(), bytes.end(), room.begin());
    reader.commit(bytes.size());
}

inline resp_status drain(resp_reader& reader, std::vector<tree>& into) {
    reply_view reply;
    for (;;) {
        const resp_status status = reader.next(reply);
        if (status != resp_status::reply) return status;
        into.push_back(tree_of(reply));
    }
}

/// Feeds the bytes in pieces; next_size() says how long each is.
template <class NextSize>
outcome parse_in_pieces(std::string_view bytes, NextSize next_size, resp_limits limits = {}) {
    resp_reader reader{limits};
    outcome result;
    while (!bytes.empty()) {
        const std::size_t size = std::clamp<std::size_t>(next_size(), 1, bytes.size());
        feed(reader, bytes.substr(0, size));
        bytes.remove_prefix(size);
        drain(reader, result.replies);
    }
    result.fault = reader.fault();
    result.left = reader.buffered();
    return result;
}

inline outcome parse(std::string_view bytes, resp_limits limits = {}) {
    return parse_in_pieces(
        bytes, [&] { return bytes.size(); }, limits);
}

/// The only reply in the bytes; a tree that equals no reply if there is not exactly one.
inline tree parse_one(std::string_view bytes) {
    const outcome result = parse(bytes);
    if (result.replies.size() == 1 && result.fault == resp_fault::none && result.left == 0) {
        return result.replies.front();
    }
    return {resp_type::null, "not exactly one reply", -1, {}};
}

inline tree leaf(resp_type type, std::string_view text) {
    return {type, std::string{text}, 0, {}};
}
inline tree number(std::int64_t value) {
    return {resp_type::integer, "", value, {}};
}
inline tree boolean(int value) {
    return {resp_type::boolean, "", value, {}};
}
inline tree null() {
    return {};
}
inline tree bulk_leaf(std::string_view text) {
    return leaf(resp_type::bulk_string, text);
}
inline tree aggregate(resp_type type, std::vector<tree> children) {
    return {type, "", 0, std::move(children)};
}
inline tree array(std::vector<tree> children) {
    return aggregate(resp_type::array, std::move(children));
}

}  // namespace holdfast::redis::testing
