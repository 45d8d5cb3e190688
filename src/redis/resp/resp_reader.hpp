// Parses the bytes of a link into replies, RESP2 and RESP3.
//
// Sans-I/O: the owner of the socket calls prepare(), reads into that room, calls commit(), and takes complete replies
// by next(). Pieces may end at any byte. Parsed bytes are not read again: the reader remembers the open aggregates, how
// far it has searched for the end of a line, and the length of the string that it waits for.
//
// The reader trusts nothing. It checks announced sizes against the limits before it reserves memory. Anything that
// Redis would not send ends the link: after one misread byte every later reply would answer the wrong request.
// Attributes (|) are read and dropped. Streamed strings and aggregates ($?, *?), which no Redis sends, are refused.
//
// Invariants:
//  (1) The result depends on the bytes alone, not on where the pieces end.
//  (2) A broken reader stays broken until reset(). The replies before the fault are delivered.
//  (3) Memory is at most about four times the received bytes, plus a node for each element that was begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/resp/resp_buffer.hpp"
#include "redis/resp/resp_reply.hpp"

namespace holdfast::redis {

struct resp_limits {
    std::size_t max_depth = 16;                            // nested aggregates, including the outermost
    std::size_t max_elements = 1 << 20;                    // in one reply, at all depths, including dropped attributes
    std::size_t max_bulk_bytes = std::size_t{64} << 20;    // one string
    std::size_t max_line_bytes = std::size_t{64} << 10;    // simple string, error or number
    std::size_t max_reply_bytes = std::size_t{256} << 20;  // one whole reply; at most 2 GiB
};

enum class resp_status {
    need_more,  // no complete reply yet
    reply,      // `out` has one
    broken,     // see fault(); no more replies
};

enum class resp_fault {
    none,
    malformed,
    too_deep,
    too_many_elements,
    bulk_too_long,
    line_too_long,
    reply_too_long,
};

class resp_reader {
public:
    explicit resp_reader(resp_limits limits = {});

    /// Room to read into. Invalidates the view of the last reply.
    std::span<char> prepare(std::size_t at_least);

    /// n bytes are in that room. A broken reader drops them.
    void commit(std::size_t n) {
        if (fault_ == resp_fault::none) buffer_.append(n);
    }

    /// Takes one complete reply, if there is one; `out` changes only then.
    resp_status next(reply_view& out);

    resp_fault fault() const noexcept { return fault_; }

    /// The fault, with the first offending bytes escaped. Empty if there is none.
    std::string fault_text() const { return fault_text_; }

    /// Starts anew for a new link. Keeps a bounded amount of memory.
    void reset();

    /// Received bytes of replies that are not delivered yet.
    std::size_t buffered() const noexcept { return buffer_.size() - (complete_ ? parsed_ : 0); }

    /// Bytes of memory reserved for received data.
    std::size_t capacity() const noexcept { return buffer_.capacity(); }

private:
    // An aggregate with missing children.
    struct open_aggregate {
        std::uint32_t node;
        std::uint32_t missing;
        enum : std::uint8_t { kept, dropped } fate;  // attributes are dropped
    };
    enum class progress { need_more, broken, element, opened };
    struct line {
        char type;
        std::string_view text;
    };

    progress step();
    progress take_line(line& out);
    progress take_element(const line& header);
    progress take_text(resp_type type, const line& from);
    progress take_integer(const line& from);
    progress open_bulk(resp_type type, const line& header);
    progress take_bulk_body();
    progress open_aggregate_of(resp_type type, const line& header);
    progress open_attribute(const line& header);
    progress announce(const line& header, std::int64_t length, std::uint32_t& children);
    bool close_element();
    detail::resp_node& add_node(resp_type type);
    void set_text(detail::resp_node& node, std::string_view text) const noexcept;
    bool read_length(const line& header, std::int64_t& out);
    void retire_reply();
    progress break_at(std::size_t offset, resp_fault fault, std::string_view why);
    progress break_here(resp_fault fault, std::string_view why) { return break_at(element_, fault, why); }

    resp_limits limits_;
    detail::resp_buffer buffer_;  // begins with the reply that is being read or was delivered last
    std::vector<detail::resp_node> nodes_;
    std::vector<open_aggregate> open_;

    // Offsets from the first byte of the reply.
    std::size_t parsed_ = 0;   // everything before this is in nodes_
    std::size_t scanned_ = 0;  // no line ends before this
    std::size_t element_ = 0;  // begin of the element that is being read

    std::size_t announced_ = 0;  // elements of this reply
    enum class waiting_for : std::uint8_t { header, bulk_body } waiting_for_ = waiting_for::header;
    resp_type bulk_type_ = resp_type::bulk_string;
    std::size_t bulk_bytes_ = 0;

    bool complete_ = false;  // the reply in nodes_ is delivered
    resp_fault fault_ = resp_fault::none;
    std::string fault_text_;
};

}  // namespace holdfast::redis
