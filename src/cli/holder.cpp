#include "cli/holder.hpp"

#include "cli/ask.hpp"
#include "cli/text.hpp"
#include "engine/hold_id.hpp"

#include <fmt/format.h>

#include <chrono>

namespace holdfast::cli {
namespace {

using std::chrono::milliseconds;

// What the holder's client says of itself on its card; without one, the hold id.
std::string owner_of(const client& server, const std::string& hold_id) {
    const std::string card = "hf:client:" + std::string(engine::client_of(hold_id));
    const answer told = ask(server, {"HMGET", card, "user", "host", "program", "pid"});
    if (told.items.size() != 4 || told.items[1].is_null) return hold_id;
    const auto field = [&told](std::size_t i) { return excerpt(told.items[i].text); };
    return fmt::format("{}@{} ({}, pid {})", field(0), field(1), field(2), field(3));
}

// The token of a grant is its time on the server, in microseconds, unless the clock was set back.
std::string held_since(const client& server, const scripts::lock_keys& keys) {
    const auto token = ask(server, {"GET", keys.fence}).integer;
    const answer time = ask(server, {"TIME"});
    if (!token || time.items.size() != 2) return {};
    const auto now_us = time.items[0].integer.value_or(0) * 1'000'000 + time.items[1].integer.value_or(0);
    if (now_us < *token) return {};
    return " for " + about(milliseconds((now_us - *token) / 1000));
}

}  // namespace

bool still_holds(const client& server, const held_lock& claim) {
    const answer holder = ask(server, {"GET", claim.where.key});
    return !holder.is_null && holder.text == claim.hold_id;
}

std::string describe_holder(const client& server, const scripts::lock_keys& keys) {
    try {
        const answer holder = ask(server, {"GET", keys.lock});
        if (holder.is_null) return "it is free by now";
        std::string text = "held by ";
        if (engine::is_ours(holder.text)) {
            text += owner_of(server, holder.text) + held_since(server, keys);
        } else {
            text += excerpt(holder.text) + " (another program)";
        }
        const auto left_ms = ask(server, {"PTTL", keys.lock}).integer.value_or(0);
        if (left_ms > 0) text += fmt::format(", {} of its lease left", about(milliseconds(left_ms)));
        if (left_ms == -1) text += ", without a time limit";
        return text;
    } catch (const error&) {
        return {};  // it is only a courtesy
    }
}

}  // namespace holdfast::cli
