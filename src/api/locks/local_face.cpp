#include "api/locks/local_face.hpp"

#include "api/locks/kept_hold.hpp"

namespace holdfast::api {

local_face::local_face(const std::shared_ptr<kept_lock>& of)
    : hold_face(of->where(), of->definition().options.kind, of->keys()), lock_(of), claim_(*this) {}

std::uint64_t local_face::token() noexcept {
    const std::uint64_t known = taken_token_.load(std::memory_order_relaxed);
    return known != 0 ? known : lock_->token_of(*this);
}

std::string local_face::id() const {
    return hold_ ? hold_->id() : std::string();
}

instant local_face::valid_until() const noexcept {
    return hold_ ? hold_->valid_until() : instant{};
}

}  // namespace holdfast::api
