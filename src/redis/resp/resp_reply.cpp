#include "redis/resp/resp_reply.hpp"

#include <charconv>
#include <limits>
#include <system_error>

namespace holdfast::redis {

std::string_view to_string(resp_type type) noexcept {
    switch (type) {
        case resp_type::simple_string:
            return "simple string";
        case resp_type::simple_error:
            return "error";
        case resp_type::integer:
            return "integer";
        case resp_type::bulk_string:
            return "string";
        case resp_type::array:
            return "array";
        case resp_type::null:
            return "null";
        case resp_type::double_number:
            return "double";
        case resp_type::boolean:
            return "boolean";
        case resp_type::blob_error:
            return "blob error";
        case resp_type::verbatim_string:
            return "verbatim string";
        case resp_type::big_number:
            return "big number";
        case resp_type::map:
            return "map";
        case resp_type::set:
            return "set";
        case resp_type::push:
            return "push";
    }
    return "unknown type";
}

namespace {

// The whole text as a Number; none if it is not one.
template <class Number>
std::optional<Number> whole_number(std::string_view text) noexcept {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

}  // namespace

std::optional<std::int64_t> reply_view::to_integer() const noexcept {
    switch (type()) {
        case resp_type::integer:
            return node().integer;
        case resp_type::simple_string:
        case resp_type::bulk_string:
        case resp_type::verbatim_string:
        case resp_type::big_number:
            return whole_number<std::int64_t>(text());
        default:
            return std::nullopt;
    }
}

double reply_view::as_double() const noexcept {
    switch (type()) {
        case resp_type::integer:
            return static_cast<double>(node().integer);
        case resp_type::double_number:
        case resp_type::simple_string:
        case resp_type::bulk_string:
        case resp_type::verbatim_string:
        case resp_type::big_number:
            return whole_number<double>(text()).value_or(std::numeric_limits<double>::quiet_NaN());
        default:
            return std::numeric_limits<double>::quiet_NaN();
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
