#include "server_model/lua_memory.hpp"

#include <sys/mman.h>

namespace holdfast::sim {
namespace {

// Reserves addresses only: untouched pages cost nothing. A script that needs more gets an out-of-memory error.
constexpr std::size_t addresses = std::size_t{256} << 20;

}  // namespace

lua_memory::lua_memory() {
    if constexpr (!can_go_back) return;
    void* const begin =
        mmap(nullptr, addresses, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(begin);
    limit_ = begin_ + addresses;
    now_.end = begin_;
    at_keep_ = now_;
}

lua_memory::~lua_memory() {
    if (begin_ != nullptr) munmap(begin_, addresses);
}

void lua_memory::keep() {
    if constexpr (!can_go_back) return;
    at_keep_ = now_;
    const auto used = static_cast<std::size_t>(now_.end - begin_);
    copy_ = std::make_unique_for_overwrite<std::byte[]>(used);
    std::memcpy(copy_.get(), begin_, used);
}

void lua_memory::go_back() {
    if constexpr (!can_go_back) return;
    now_ = at_keep_;
    std::memcpy(begin_, copy_.get(), static_cast<std::size_t>(now_.end - begin_));
}

}  // namespace holdfast::sim
