// Memory for Lua that can return to an earlier state.
//
// A script makes hundreds of closures, strings and tables that live for microseconds. Freeing them one by one is wasted
// work. So all of Lua's memory is one range of addresses, used from its beginning. keep() copies what is in use, and
// go_back() restores the copy: everything made since then is gone at once, and Lua's own state, which is in there too,
// is consistent with that.
//
// Lua passes the size of each block that it frees, so a block needs no header, and a freed block is reused for blocks
// of its size. Addresses are reused soon, so they stay in the processor's cache.
//
// Under the address sanitizer every block comes from malloc, so that the sanitizer sees it; then go_back() does
// nothing.
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

    /// Makes the present state the one that go_back() restores. Must not be called from Lua.
    void keep();
    /// Must not be called from Lua, and nothing that Lua made since keep() may be referenced.
    void go_back();
    /// Bytes used since keep() or go_back(); 0 where go_back() does nothing.
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

    // Size classes: small blocks in steps, large ones in powers of two.
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
