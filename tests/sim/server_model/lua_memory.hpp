// Memory for Lua that can go back to an earlier moment.
//
// A script makes hundreds of closures, strings and tables that live for microseconds, and leaves none of them behind.
// To find and free them one by one is work for nothing. So all of Lua's memory is one stretch of addresses, cut from
// its beginning; keep() copies what is in use, and go_back() puts the copy back: everything made since then is gone at
// once, and Lua's own state, which is in there too, never knew of it.
//
// Lua says the size of what it gives back, so a block needs no header; what is given back is used again for blocks of
// its size. Addresses are used again soon, so they stay in the processor's cache.
//
// Under the address sanitizer every block comes from malloc, so that it sees them all; then there is no way back.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace holdfast::sim {

class lua_memory {
public:
    lua_memory();
    ~lua_memory();
    lua_memory(const lua_memory&) = delete;
    lua_memory& operator=(const lua_memory&) = delete;

#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool can_go_back = false;
#else
    static constexpr bool can_go_back = true;
#endif

    /// As lua_Alloc: null if there is no memory, or if `wanted` is 0.
    void* resize(void* block, std::size_t had, std::size_t wanted) {
        if constexpr (!can_go_back) return from_malloc(block, wanted);
        if (block == nullptr) return wanted == 0 ? nullptr : take(class_of(wanted));
        if (wanted == 0) return give_back(block, class_of(had)), nullptr;
        if (class_of(had) == class_of(wanted)) return block;
        void* const fresh = take(class_of(wanted));
        if (fresh == nullptr) return nullptr;
        std::memcpy(fresh, block, std::min(had, wanted));
        give_back(block, class_of(had));
        return fresh;
    }

    /// What is in use now is what go_back() returns to. Whoever calls it must not be called by Lua.
    void keep();
    /// The same; and nothing that Lua has made since keep() may be known to anybody.
    void go_back();
    /// Since keep() or go_back(), in bytes; 0 where there is no way back.
    std::size_t grown() const {
        return static_cast<std::size_t>(now_.end - at_keep_.end);
    }

private:
    static constexpr std::size_t step = 16;
    static constexpr std::size_t largest_small = 512;
    static constexpr std::size_t small_classes = largest_small / step + 1;

    struct free_block {
        free_block* next;
    };
    struct extent {
        std::byte* end = nullptr;
        std::array<free_block*, small_classes + 64> free{};
    };

    // Small blocks in steps, large ones in powers of two.
    static std::size_t class_of(std::size_t size) {
        if (size <= largest_small) return (size + step - 1) / step;
        return small_classes + static_cast<std::size_t>(std::bit_width(size - 1));
    }
    static std::size_t size_of(std::size_t size_class) {
        return size_class < small_classes ? size_class * step : std::size_t{1} << (size_class - small_classes);
    }

    static void* from_malloc(void* block, std::size_t wanted) {
        if (wanted != 0) return std::realloc(block, wanted);
        std::free(block);
        return nullptr;
    }

    void* take(std::size_t size_class) {
        free_block*& first = now_.free[size_class];
        if (first != nullptr) return std::exchange(first, first->next);
        const std::size_t size = size_of(size_class);
        if (static_cast<std::size_t>(limit_ - now_.end) < size) return nullptr;
        return std::exchange(now_.end, now_.end + size);
    }

    void give_back(void* block, std::size_t size_class) {
        free_block*& first = now_.free[size_class];
        first = new (block) free_block{first};
    }

    std::byte* begin_ = nullptr;
    std::byte* limit_ = nullptr;
    extent now_;
    extent at_keep_;
    std::unique_ptr<std::byte[]> copy_;
};

}  // namespace holdfast::sim
