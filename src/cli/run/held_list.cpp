#include "cli/run/held_list.hpp"

#include "cli/inspect/servers/ask.hpp"
#include "redis/url/url_text.hpp"
#include "wire/kind.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::cli {
namespace {

constexpr std::string_view plain = "/:@{}";

// Cuts off what is in front of the first `separator`, and the separator.
std::string_view cut(std::string_view& text, char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return piece;
}

std::optional<held_lock> parse_entry(std::string_view text) {
    std::array<std::string, 4> fields;
    for (std::string& field : fields) {
        const auto decoded = redis::percent_decode(cut(text, '|'));
        if (!decoded || decoded->empty()) return std::nullopt;
        field = *decoded;
    }
    held_lock entry{{fields[0], fields[1]}, 0, fields[3]};
    const char* const end = fields[2].data() + fields[2].size();
    const auto [stop, trouble] = std::from_chars(fields[2].data(), end, entry.token);
    if (trouble != std::errc() || stop != end || !text.empty()) return std::nullopt;
    return entry;
}

// The key does not say its kind before it is read: a request of the wrong kind is answered WRONGTYPE.
wire::shape shape_of(const client& server, const lock_ref& lock, const std::string& hold_id) {
    failure why{errc::protocol_error, server.server()};
    bool is_known = false;  // of some kind, which has nothing for this id
    for (const wire::kind* const kind : wire::all_kinds()) {
        std::optional<wire::shape> held;
        const auto refused = ask_script(
            server, [&](redis::command& out) { kind->write_standing(out, lock.keys, hold_id); },
            [&](const redis::reply_view& reply) { held = kind->read_standing(reply, hold_id); });
        if (held && *held != wire::shape::nothing) return *held;
        is_known = is_known || held;
        if (held) continue;
        if (refused) why = *refused;
        if (why.code != errc::wrong_type) break;
    }
    if (is_known) return wire::shape::nothing;
    throw error(why.code, why.detail);
}

}  // namespace

held_list held_list::parse(std::string_view text) {
    held_list list;
    while (!text.empty()) {
        if (auto entry = parse_entry(cut(text, ' '))) list.add(std::move(*entry));
    }
    return list;
}

std::string held_list::text() const {
    std::string result;
    for (const held_lock& entry : entries_) {
        if (!result.empty()) result += ' ';
        result += redis::percent_encode(entry.where.server, plain) + '|' +
                  redis::percent_encode(entry.where.key, plain) + '|' + std::to_string(entry.token) + '|' +
                  redis::percent_encode(entry.hold_id, plain);
    }
    return result;
}

std::optional<held_lock> held_list::find(const lock_location& where) const {
    const auto latest =
        std::find_if(entries_.rbegin(), entries_.rend(), [&](const held_lock& entry) { return entry.where == where; });
    return latest == entries_.rend() ? std::nullopt : std::optional(*latest);
}

standing standing_of(server_set& servers, const lock_ref& lock, const std::string& hold_id) {
    std::size_t alone = 0;
    std::size_t some = 0;
    for (const auto& held : servers.ask_each([&](const client& one) { return shape_of(one, lock, hold_id); })) {
        if (!held || *held == wire::shape::nothing) continue;
        ++some;
        if (*held != wire::shape::reading) ++alone;
    }
    if (alone >= servers.majority()) return standing::holds_alone;
    if (some >= servers.majority()) return standing::reads;
    if (some + servers.silent().size() < servers.majority()) return standing::none;
    throw error(errc::no_quorum, servers.text());
}

}  // namespace holdfast::cli
