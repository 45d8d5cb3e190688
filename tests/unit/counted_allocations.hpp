// Counts every allocation of a test program. It replaces the operators, so only one file of a program includes this.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace holdfast::redis::testing {

inline std::size_t allocations = 0;

inline void* counted_allocation(std::size_t size) {
    ++allocations;
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}

}  // namespace holdfast::redis::testing

void* operator new(std::size_t size) {
    return holdfast::redis::testing::counted_allocation(size);
}
void* operator new[](std::size_t size) {
    return holdfast::redis::testing::counted_allocation(size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
