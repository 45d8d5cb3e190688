#include "cli/inspect/ask.hpp"

#include "api/operations/blocking_command.hpp"
#include "api/runtime/client_access.hpp"
#include "redis/resp/error_reply.hpp"
#include "redis/session/command_writer.hpp"

#include <algorithm>
#include <span>

namespace holdfast::cli {
namespace {

// So many at a time: the server answers that many well within a request timeout, and others get in between.
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

void encode(const question& what, redis::command& out) {
    const std::vector<redis::argument> words(what.words.begin(), what.words.end());
    if (what.script != nullptr) {
        const auto count = static_cast<std::uint32_t>(words.size());
        redis::append_arguments(out.script_payload(*what.script, count), words);
    } else {
        std::string plain;
        redis::append_command(plain, words);
        out.set_payload(std::move(plain));
    }
    if (what.if_moving == question::moving::told) out.tell_if_moving();
}

// Tells `read` of every answer. Throws in the end of a burst of which one could not be asked.
template <typename Read>
void ask_in_bursts(const client& server, const std::vector<question>& questions, const Read& read) {
    std::vector<api::question> burst;
    for (std::size_t first = 0; first < questions.size(); first += burst.size()) {
        burst.clear();
        for (const question& what :
             std::span(questions).subspan(first, std::min(largest_burst, questions.size() - first))) {
            burst.emplace_back([&what](redis::command& out) { encode(what, out); });
        }
        api::ask_server(*api::core_of(server), burst,
                        [&](std::size_t i, const redis::reply_view& reply) { read(first + i, copy(reply)); });
    }
}

}  // namespace

answer ask(const client& server, std::initializer_list<redis::argument> command) {
    answer result;
    api::ask_server(*api::core_of(server), command,
                    [&result](const redis::reply_view& reply) { result = copy(reply); });
    return result;
}

std::vector<answer> ask_all(const client& server, const std::vector<question>& questions) {
    std::vector<answer> answers(questions.size());
    ask_in_bursts(server, questions, [&](std::size_t i, answer told) { answers[i] = std::move(told); });
    return answers;
}

// One burst that fails costs a request timeout: those after it are not asked.
std::vector<std::optional<answer>> ask_what_can_be(const client& server, const std::vector<question>& questions) {
    std::vector<std::optional<answer>> answers(questions.size());
    try {
        ask_in_bursts(server, questions, [&](std::size_t i, answer told) { answers[i] = std::move(told); });
    } catch (const error&) {
        return answers;
    }
    return answers;
}

answer ask(const client& server, const question& only) {
    answer result = std::move(ask_all(server, {only}).front());
    if (result.is_error) {
        const failure why = redis::classify_error(result.text, server.server());
        throw error(why.code, why.detail);
    }
    return result;
}

std::optional<std::string> info_field(std::string_view info, std::string_view field) {
    const std::string head = "\n" + std::string(field) + ":";  // a title is always before it
    const std::size_t line = info.find(head);
    if (line == std::string_view::npos) return std::nullopt;
    const std::string_view value = info.substr(line + head.size());
    return std::string(value.substr(0, value.find_first_of("\r\n")));
}

}  // namespace holdfast::cli
