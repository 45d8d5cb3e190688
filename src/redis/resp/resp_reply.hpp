// A view of one complete reply, without a copy.
//
// The reader stores a reply as a flat list of nodes in pre-order. An aggregate is followed by its children and knows
// the index one past its subtree, so the step to the next child takes constant time. The list is reused for the next
// reply: a warm reader does not allocate. Texts stay in the reader's buffer. A node has their offset from the first
// byte of the reply, because the buffer may move while a reply is incomplete.
//
// Invariants of a complete reply:
//  (1) node.end > its index, and children lie within [index + 1, end), one after the other, without gaps.
//  (2) Only aggregates have children; a map has an even number.
//  (3) Attributes leave no node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/assert.hpp"

namespace holdfast::redis {

enum class resp_type : std::uint8_t {
    simple_string,
    simple_error,
    integer,
    bulk_string,
    array,
    null,
    double_number,
    boolean,
    blob_error,
    verbatim_string,
    big_number,
    map,
    set,
    push,
};

namespace detail {

struct resp_node {
    std::int64_t integer = 0;       // integer; boolean as 0 or 1
    std::uint32_t children = 0;     // direct children; a map counts keys and values
    std::uint32_t end = 0;          // index one past the subtree
    std::uint32_t text_offset = 0;  // from the first byte of the reply
    std::uint32_t text_length = 0;
    resp_type type = resp_type::null;
};

}  // namespace detail

/// A cheap view of one complete reply or of a part of it. Valid until the reader's next next(), prepare() or reset().
class reply_view {
public:
    class iterator;

    /// Views nothing. Usable after assignment only.
    reply_view() = default;

    resp_type type() const { return node().type; }
    bool is_error() const { return type() == resp_type::simple_error || type() == resp_type::blob_error; }
    /// The null of RESP3, and the two of RESP2: $-1 and *-1.
    bool is_null() const { return type() == resp_type::null; }
    bool is_aggregate() const {
        return type() == resp_type::array || type() == resp_type::map || type() == resp_type::set ||
               type() == resp_type::push;
    }

    /// Strings, errors (without the '-'), doubles and big numbers as sent; a verbatim string without its
    /// "txt:". Empty for every other type.
    std::string_view text() const { return {base_ + node().text_offset, node().text_length}; }

    /// The value of an integer or boolean (0, 1). Asserts that it is one.
    std::int64_t integer() const {
        HOLDFAST_ASSERT(type() == resp_type::integer || type() == resp_type::boolean);
        return node().integer;
    }

    /// The value of an integer, or of a string that is entirely a decimal integer.
    std::optional<std::int64_t> to_integer() const noexcept;

    /// Number of direct children; a map counts keys and values.
    std::size_t size() const { return node().children; }

    /// The i-th direct child. Constant time if no child has children, otherwise it steps over those before.
    reply_view operator[](std::size_t i) const;

    iterator begin() const;
    iterator end() const;

private:
    friend class resp_reader;

    reply_view(const detail::resp_node* nodes, const char* base) noexcept : nodes_(nodes), base_(base) {}

    const detail::resp_node& node() const {
        HOLDFAST_ASSERT(nodes_ != nullptr);
        return nodes_[index_];
    }

    const detail::resp_node* nodes_ = nullptr;  // of the whole reply
    const char* base_ = nullptr;                // its first byte
    std::uint32_t index_ = 0;                   // of the viewed node
};

/// Iterates over the direct children of an aggregate.
class reply_view::iterator {
public:
    using value_type = reply_view;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using reference = reply_view;
    using pointer = void;

    iterator() = default;

    reply_view operator*() const { return at_; }
    iterator& operator++() {
        at_.index_ = at_.node().end;
        return *this;
    }
    iterator operator++(int) {
        iterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const iterator& other) const noexcept {
        return at_.index_ == other.at_.index_ && at_.nodes_ == other.at_.nodes_;
    }

private:
    friend class reply_view;
    explicit iterator(reply_view at) noexcept : at_(at) {}
    reply_view at_;
};

inline reply_view::iterator reply_view::begin() const {
    reply_view first = *this;
    first.index_ = size() == 0 ? node().end : index_ + 1;
    return iterator{first};
}

inline reply_view::iterator reply_view::end() const {
    reply_view past = *this;
    past.index_ = node().end;
    return iterator{past};
}

}  // namespace holdfast::redis
