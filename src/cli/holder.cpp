#include "cli/holder.hpp"

#include "cli/ask.hpp"
#include "engine/hold_id.hpp"
#include "redis/duration.hpp"

#include <fmt/format.h>

#include <chrono>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
    }
    constexpr std::size_t enough = 80;
    return text.size() <= enough ? text : text.substr(0, enough) + "...";
}

}  // namespace

bool still_holds(const client& server, const held_lock& claim) {
    const answer holder = ask(server, {"GET", claim.where.key});
    return !holder.is_null && holder.text == claim.hold_id;
}

std::string describe_holder(const client& server, const std::string& key) {
    try {
        const answer holder = ask(server, {"GET", key});
        if (holder.is_null) return " (free by now)";
        const answer left = ask(server, {"PTTL", key});
        std::string text = fmt::format(": held by {}", printable(holder.text));
        if (!engine::is_ours(holder.text)) text += " (another program)";
        const auto left_ms = left.integer.value_or(0);
        if (left_ms > 0)
            text += fmt::format(", {} of its lease left", redis::format_duration(milliseconds(left_ms)));
        if (left_ms == -1) text += ", without a time limit";
        return text;
    } catch (const error&) {
        return {};  // it is only a courtesy
    }
}

}  // namespace holdfast::cli
