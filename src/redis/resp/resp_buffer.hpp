// Received bytes that are not consumed yet, contiguous.
//
// A view of a reply needs contiguous bytes, but replies arrive in pieces of any size. A memmove per reply or per read
// would make a long reply or a long pipeline quadratic. So consume() only counts. make_room() removes consumed bytes
// when the room behind the live bytes is used up, and only if it moves no more bytes than it frees. Otherwise it
// doubles the buffer. Both cost a constant per received byte.
//
// Invariant: begin <= end <= capacity; live bytes are [begin, end). A large capacity is freed after use.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/assert.hpp"

namespace holdfast::redis::detail {

class resp_buffer {
public:
    /// Capacity that is kept for the next reply. More is freed once it is hardly used.
    static constexpr std::size_t kept_capacity = std::size_t{1} << 20;

    /// Room for at least that many bytes behind the live ones, which may move.
    std::span<char> make_room(std::size_t at_least);
    /// n bytes of the room are filled.
    void append(std::size_t n) {
        HOLDFAST_ASSERT(n <= capacity_ - end_);
        end_ += n;
    }
    /// The first n live bytes are no longer needed. They stay readable until the next make_room() or clear().
    void consume(std::size_t n) {
        HOLDFAST_ASSERT(n <= size());
        begin_ += n;
    }
    /// Drops the live bytes and keeps at most kept_capacity.
    void clear();

    const char* data() const noexcept { return bytes_.get() + begin_; }
    std::size_t size() const noexcept { return end_ - begin_; }
    std::size_t capacity() const noexcept { return capacity_; }

private:
    void move_to(std::size_t new_capacity);

    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace holdfast::redis::detail
