#include "redis/resp/resp_buffer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace holdfast::redis::detail {

namespace {

constexpr std::size_t least_capacity = std::size_t{4} << 10;

}  // namespace

std::span<char> resp_buffer::make_room(std::size_t at_least) {
    const std::size_t live = size();
    if (live == 0) begin_ = end_ = 0;

    // Far below kept_capacity, so that replies of about that size do not reallocate each time.
    if (capacity_ > kept_capacity && live + at_least <= kept_capacity / 4) move_to(kept_capacity / 4);

    if (capacity_ - end_ < at_least) {
        const bool worth_moving = begin_ >= live && capacity_ - live >= at_least;
        if (worth_moving) {
            std::memmove(bytes_.get(), data(), live);
            begin_ = 0;
            end_ = live;
        } else {
            move_to(std::max({std::bit_ceil(live + at_least), capacity_ * 2, least_capacity}));
        }
    }
    return {bytes_.get() + end_, capacity_ - end_};
}

void resp_buffer::clear() {
    begin_ = end_ = 0;
    if (capacity_ <= kept_capacity) return;
    bytes_.reset();
    capacity_ = 0;
}

void resp_buffer::move_to(std::size_t new_capacity) {
    const std::size_t live = size();
    HOLDFAST_ASSERT(new_capacity >= live);
    auto moved = std::make_unique_for_overwrite<char[]>(new_capacity);
    if (live != 0) std::memcpy(moved.get(), data(), live);
    bytes_ = std::move(moved);
    capacity_ = new_capacity;
    begin_ = 0;
    end_ = live;
}

}  // namespace holdfast::redis::detail
