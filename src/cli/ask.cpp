#include "cli/ask.hpp"

#include "api/blocking_command.hpp"

namespace holdfast::cli {
namespace {

answer copy(const redis::reply_view& reply) {
    answer result;
    result.is_null = reply.is_null();
    if (reply.is_aggregate()) {
        for (const redis::reply_view item : reply) result.items.push_back(copy(item));
        return result;
    }
    result.text = reply.text();
    result.integer = reply.to_integer();
    return result;
}

}  // namespace

answer ask(const client& server, std::initializer_list<std::string_view> command) {
    answer result;
    api::ask_server(*server.shared_core(), command,
                    [&result](const redis::reply_view& reply) { result = copy(reply); });
    return result;
}

}  // namespace holdfast::cli
