// Memory for Lua: small blocks from lists of free ones, by size.
//
// A script makes hundreds of closures, strings and tables that live for microseconds, and Lua says the size of
// what it gives back, so a block needs no header and giving it back is two writes. Memory goes back to the
// system with the engine. Under the address sanitizer every block comes from malloc, so that it sees them all.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace holdfast::sim {

class small_blocks {
public:
    /// As lua_Alloc: null if there is no memory, or if `wanted` is 0.
    void* resize(void* block, std::size_t had, std::size_t wanted) {
        if (is_large(had) && is_large(wanted) && block != nullptr && wanted != 0) return std::realloc(block, wanted);
        if (block != nullptr && class_of(had) == class_of(wanted) && had != 0 && wanted != 0) return block;
        void* const fresh = wanted == 0 ? nullptr : take(wanted);
        if (block == nullptr || (wanted != 0 && fresh == nullptr)) return fresh;
        if (fresh != nullptr) std::memcpy(fresh, block, std::min(had, wanted));
        give_back(block, had);
        return fresh;
    }

private:
    static constexpr std::size_t step = 16;
#if defined(__SANITIZE_ADDRESS__)
    static constexpr std::size_t largest = 0;
#else
    static constexpr std::size_t largest = 512;
#endif
    static constexpr std::size_t slab = 32'768;

    struct free_block {
        free_block* next;
    };

    static bool is_large(std::size_t size) {
        return size > largest;
    }
    static std::size_t class_of(std::size_t size) {
        return is_large(size) ? size : (size + step - 1) / step;
    }

    void* take(std::size_t size) {
        if (is_large(size)) return std::malloc(size);
        free_block*& first = free_[class_of(size)];
        if (first == nullptr) return cut(class_of(size) * step);
        return std::exchange(first, first->next);
    }

    void give_back(void* block, std::size_t size) {
        if (is_large(size)) return std::free(block);
        free_block*& first = free_[class_of(size)];
        first = new (block) free_block{first};
    }

    void* cut(std::size_t size) {
        if (left_ < size) {
            slabs_.push_back(std::make_unique_for_overwrite<std::byte[]>(slab));
            at_ = slabs_.back().get();
            left_ = slab;
        }
        left_ -= size;
        return std::exchange(at_, at_ + size);
    }

    std::array<free_block*, largest / step + 1> free_{};
    std::vector<std::unique_ptr<std::byte[]>> slabs_;
    std::byte* at_ = nullptr;
    std::size_t left_ = 0;
};

}  // namespace holdfast::sim
