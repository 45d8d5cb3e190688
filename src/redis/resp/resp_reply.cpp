#include "redis/resp/resp_reply.hpp"

#include "redis/resp/characters.hpp"

namespace holdfast::redis {

std::optional<std::int64_t> reply_view::to_integer() const noexcept {
    switch (type()) {
        case resp_type::integer:
            return node().integer;
        case resp_type::simple_string:
        case resp_type::bulk_string:
        case resp_type::verbatim_string:
        case resp_type::big_number:
            return number_in<std::int64_t>(text());
        default:
            return std::nullopt;
    }
}

reply_view reply_view::operator[](std::size_t i) const {
    HOLDFAST_ASSERT(i < size());
    const bool flat = node().end - index_ - 1 == node().children;
    reply_view child = *this;
    child.index_ = index_ + 1;
    if (flat) {
        child.index_ += static_cast<std::uint32_t>(i);
    } else {
        for (; i > 0; --i) child.index_ = child.node().end;
    }
    return child;
}

}  // namespace holdfast::redis
