#include "support/redis_reply.hpp"

#include <ostream>

namespace holdfast::testing {

bool operator==(const redis_reply& left, const redis_reply& right) {
    return left.kind == right.kind && left.text == right.text && left.integer == right.integer &&
           left.elements == right.elements;
}

std::ostream& operator<<(std::ostream& out, const redis_reply& reply) {
    switch (reply.kind) {
        case redis_reply::type::nil:
            return out << "(nil)";
        case redis_reply::type::status:
            return out << reply.text;
        case redis_reply::type::error:
            return out << "(error) " << reply.text;
        case redis_reply::type::integer:
            return out << "(integer) " << reply.integer;
        case redis_reply::type::string:
            return out << '"' << reply.text << '"';
        case redis_reply::type::array:
            break;
    }
    out << '[';
    const char* separator = "";
    for (const redis_reply& element : reply.elements) {
        out << separator << element;
        separator = ", ";
    }
    return out << ']';
}

}  // namespace holdfast::testing
