// Keeps freed blocks of small objects, per thread and size, for the next object.
//
// malloc caches a few blocks of a size per thread, fewer than a program with many operations in flight needs. Beyond
// that every allocation takes malloc's slow path. A thread may free a block that another thread allocated, and then
// keeps it. Under the address sanitizer nothing is kept, so that it sees every use after free.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace holdfast {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool blocks_are_kept = false;
#elif defined(__has_feature)
inline constexpr bool blocks_are_kept = !__has_feature(address_sanitizer);
#else
inline constexpr bool blocks_are_kept = true;
#endif

template <std::size_t Size>
class recycled {
public:
    static void* take() {
        if (store* const here = mine(); here != nullptr && here->count > 0) return here->blocks[--here->count];
        return ::operator new(Size);
    }

    static void give_back(void* block) noexcept {
        store* const here = mine();
        if (here == nullptr || here->count == here->blocks.size()) return ::operator delete(block);
        here->blocks[here->count++] = block;
    }

private:
    struct store {
        ~store() {
            while (count > 0) ::operator delete(blocks[--count]);
            is_gone = true;
        }
        std::array<void*, 64> blocks;
        std::size_t count = 0;
    };

    // Null: nothing is kept, or the thread is ending.
    static store* mine() noexcept {
        if (!blocks_are_kept || is_gone) return nullptr;
        static thread_local store here;
        return &here;
    }

    static inline thread_local bool is_gone = false;
};

/// Base of a final class T whose objects are made by new.
template <class T>
struct recycled_object {
    static void* operator new(std::size_t) { return recycled<sizeof(T)>::take(); }
    static void operator delete(void* block) noexcept { recycled<sizeof(T)>::give_back(block); }
};

/// For std::allocate_shared.
template <class T>
struct recycling_allocator {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    using value_type = T;

    recycling_allocator() = default;
    template <class Other>
    recycling_allocator(const recycling_allocator<Other>&) noexcept {}

    T* allocate(std::size_t count) {
        return static_cast<T*>(count == 1 ? recycled<sizeof(T)>::take() : ::operator new(count * sizeof(T)));
    }
    void deallocate(T* block, std::size_t count) noexcept {
        count == 1 ? recycled<sizeof(T)>::give_back(block) : ::operator delete(block);
    }

    bool operator==(const recycling_allocator&) const noexcept { return true; }
};

}  // namespace holdfast
