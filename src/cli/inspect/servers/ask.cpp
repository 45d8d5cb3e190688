#include "cli/inspect/servers/ask.hpp"

#include "api/runtime/client_access.hpp"
#include "redis/resp/error_reply.hpp"

#include <algorithm>
#include <span>

namespace holdfast::cli {
namespace {

constexpr std::size_t largest_burst = 500;

answer copy(const redis::reply_view& reply) {
    answer result;
    result.is_null = reply.is_null();
    result.is_error = reply.is_error();
    if (reply.is_aggregate()) {
        for (const redis::reply_view item : reply) result.items.push_back(copy(item));
        return result;
    }
    result.text = reply.text();
    result.integer = reply.to_integer();
    return result;
}

std::vector<api::question> encoded(const std::vector<request>& requests) {
    std::vector<api::question> result;
    for (const request& one : requests) {
        result.emplace_back([&one](redis::command& out) {
            std::string plain;
            redis::append_command(plain, std::vector<redis::argument>(one.words.begin(), one.words.end()));
            out.set_payload(std::move(plain));
        });
    }
    return result;
}

}  // namespace

void ask_in_bursts(const client& server, const std::vector<api::question>& requests,
                   const std::function<void(std::size_t, const redis::reply_view&)>& read) {
    for (std::size_t first = 0; first < requests.size(); first += largest_burst) {
        const auto burst = std::span(requests).subspan(first, std::min(largest_burst, requests.size() - first));
        api::ask_server(*api::core_of(server), burst,
                        [&](std::size_t i, const redis::reply_view& reply) { read(first + i, reply); });
    }
}

answer ask(const client& server, std::initializer_list<redis::argument> command) {
    answer result;
    api::ask_server(*api::core_of(server), command,
                    [&result](const redis::reply_view& reply) { result = copy(reply); });
    return result;
}

std::vector<answer> ask_all(const client& server, const std::vector<request>& requests) {
    std::vector<answer> answers(requests.size());
    ask_in_bursts(server, encoded(requests),
                  [&](std::size_t i, const redis::reply_view& reply) { answers[i] = copy(reply); });
    return answers;
}

std::vector<std::optional<answer>> ask_what_can_be(const client& server, const std::vector<request>& requests) {
    std::vector<std::optional<answer>> answers(requests.size());
    try {
        ask_in_bursts(server, encoded(requests),
                      [&](std::size_t i, const redis::reply_view& reply) { answers[i] = copy(reply); });
    } catch (const error&) {
        return answers;
    }
    return answers;
}

std::optional<failure> ask_script(const client& server, const api::question& call,
                                  const std::function<void(const redis::reply_view&)>& read) {
    std::optional<failure> why;
    api::ask_server(*api::core_of(server), {&call, 1}, [&](std::size_t, const redis::reply_view& reply) {
        if (!reply.is_error()) return read(reply);
        why = redis::classify_error(reply.text(), server.server());
    });
    return why;
}

std::optional<std::string> info_field(std::string_view info, std::string_view field) {
    const std::string head = "\n" + std::string(field) + ":";  // a title is always before it
    const std::size_t line = info.find(head);
    if (line == std::string_view::npos) return std::nullopt;
    const std::string_view value = info.substr(line + head.size());
    return std::string(value.substr(0, value.find_first_of("\r\n")));
}

}  // namespace holdfast::cli
