// Turns the bytes of a link into replies, RESP2 and RESP3.
//
// Sans-I/O: the owner of the socket asks for room, reads into it, says how much came, and takes complete
// replies until there are none. Pieces may end at any byte. What was parsed is never looked at again: the
// reader remembers which aggregates are open, how far it has looked for the end of a line, and how long the
// string is that it waits for.
//
// It believes nothing. Whatever a server announces is held against the limits before memory is reserved for
// it, and anything that Redis would not send ends the link: after one misread byte every later reply would
// answer the wrong request. Attributes (|) are read and dropped wherever they occur. Streamed strings and
// aggregates ($?, *?), which no Redis sends, are refused.
//
// Invariants:
//  (1) The outcome depends on the bytes alone, never on where the pieces ended.
//  (2) A broken reader stays broken until reset(); the replies before the fault were given out.
//  (3) Memory is at most about four times the bytes received, plus a node for each element announced and
//  begun.
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
    std::size_t max_depth = 16;                            // aggregates within each other, the outermost included
    std::size_t max_elements = 1 << 20;                    // in one reply, at all depths, dropped attributes included
    std::size_t max_bulk_bytes = std::size_t{64} << 20;    // one string
    std::size_t max_line_bytes = std::size_t{64} << 10;    // simple string, error or number
    std::size_t max_reply_bytes = std::size_t{256} << 20;  // one reply with all its parts; at most 2 GiB
};

enum class resp_status {
    need_more,  // no complete reply yet
    reply,      // one was taken
    broken,     // see fault(); nothing will come any more
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

    /// Room to read into. Ends the life of the last reply's view.
    std::span<char> prepare(std::size_t at_least);

    /// n bytes were read into that room. A broken reader drops them.
    void commit(std::size_t n);

    /// Takes one complete reply, if there is one; `out` changes only then.
    resp_status next(reply_view& out);

    resp_fault fault() const noexcept { return fault_; }

    /// What was wrong, with the first offending bytes in escaped form. Empty if nothing is.
    std::string fault_text() const { return fault_text_; }

    /// Forgets everything, for a new link; keeps memory, but not too much of it.
    void reset();

    /// Bytes received that belong to no reply given out yet.
    std::size_t buffered() const noexcept { return buffer_.size() - (complete_ ? parsed_ : 0); }

    /// Bytes of memory reserved for received data.
    std::size_t capacity() const noexcept { return buffer_.capacity(); }

private:
    // An aggregate whose children are not all there yet.
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
    progress take_boolean(const line& from);
    progress take_double(const line& from);
    progress take_big_number(const line& from);
    progress take_null(const line& from);
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
    detail::resp_buffer buffer_;  // begins with the reply that is being read, or was given out last
    std::vector<detail::resp_node> nodes_;
    std::vector<open_aggregate> open_;

    // Offsets from the reply's first byte.
    std::size_t parsed_ = 0;   // everything before is in nodes_
    std::size_t scanned_ = 0;  // no line ends before
    std::size_t element_ = 0;  // where the element began that is being read

    std::size_t announced_ = 0;  // elements of this reply
    enum class waiting_for : std::uint8_t { header, bulk_body } waiting_for_ = waiting_for::header;
    resp_type bulk_type_ = resp_type::bulk_string;
    std::size_t bulk_bytes_ = 0;

    bool complete_ = false;  // the reply in nodes_ was given out
    resp_fault fault_ = resp_fault::none;
    std::string fault_text_;
};

}  // namespace holdfast::redis
