#include "cli/inspect/output/json_form.hpp"

#include "cli/terminal/text.hpp"

namespace holdfast::cli {
namespace {

constexpr auto replacing = json::error_handler_t::replace;

json ms(std::optional<microseconds> span) {
    return span ? json(std::chrono::floor<milliseconds>(*span).count()) : json();
}

template <typename Optional>
json or_null(const Optional& value) {
    return value ? json(*value) : json();
}

json to_json(const std::optional<client_facts>& client) {
    if (!client) return {};
    json pid = client->pid;
    if (const auto number = json::parse(client->pid, nullptr, false); number.is_number_unsigned()) pid = number;
    return {{"host", client->host}, {"pid", pid}, {"program", client->program}, {"user", client->user}};
}

json backing(std::size_t servers, const lock_state& lock) {
    return {{"servers", servers}, {"of", lock.servers}};
}

json to_json(const lock_waiter& waiter, const lock_state& lock) {
    json row{{"id", waiter.id},
             {"wants", name_of(waiter.wants)},
             {"client", to_json(waiter.client)},
             {"since", utc(lock.server_time - waiter.waited)},
             {"waited_ms", ms(waiter.waited)},
             {"last_seen_ms", ms(waiter.unseen)},
             {"silent", waiter.is_silent},
             {"backing", backing(waiter.backing, lock)}};
    if (lock.limit) row["permits"] = waiter.permits;
    if (!waiter.note.empty()) row["note"] = waiter.note;
    return row;
}

}  // namespace

std::string one_line(const json& value) {
    return value.dump(-1, ' ', false, replacing) + "\n";
}

std::string indented(const json& value) {
    return value.dump(2, ' ', false, replacing) + "\n";
}

json document(const server_set& servers, const char* what, json content) {
    json silent = json::array();
    for (const silence& one : servers.all_silent()) silent.push_back({{"server", one.server}, {"error", one.why}});
    return {{"servers", servers.names()}, {"silent", std::move(silent)}, {what, std::move(content)}};
}

json to_json(const lock_holder& holder, const lock_state& lock) {
    const auto since = holder.held ? json(utc(lock.server_time - *holder.held)) : json();
    json row{{"id", holder.id},
             {"mode", name_of(holder.mode)},
             {"count", holder.count},
             {"kept", is_kept(holder)},
             {"foreign", holder.is_foreign},
             {"client", to_json(holder.client)},
             {"token", or_null(holder.token)},
             {"since", since},
             {"held_ms", ms(holder.held)},
             {"lease_left_ms", holder.left ? json(holder.left->count()) : json()},
             {"backing", backing(holder.backing, lock)}};
    if (lock.limit) row["permits"] = holder.permits;
    if (!holder.note.empty()) row["note"] = holder.note;
    return row;
}

json to_json(const lock_state& lock) {
    json holders = json::array();
    json waiters = json::array();
    for (const lock_holder& holder : lock.holders) holders.push_back(to_json(holder, lock));
    for (const lock_waiter& waiter : lock.waiters) waiters.push_back(to_json(waiter, lock));
    json all{
        {"name", lock.where.name.text()},      {"keys", lock.where.naming == wire::key_naming::raw ? "raw" : "tagged"},
        {"key", lock.where.keys.lock()},       {"mode", mode_of(lock)},
        {"last_token", or_null(lock.fence)},   {"holders", std::move(holders)},
        {"waiters", std::move(waiters)},       {"oldest_wait_ms", ms(lock.oldest_wait())},
        {"server_time", utc(lock.server_time)}};
    if (lock.limit) {
        all["semaphore"] = {
            {"limit", lock.limit->present}, {"declared", lock.limit->declared}, {"out", lock.permits_out()}};
    }
    return all;
}

json to_json(const std::vector<lock_state>& locks) {
    json rows = json::array();
    for (const lock_state& lock : locks) rows.push_back(to_json(lock));
    return rows;
}

json to_json(const lock_event& event, const lock_ref& lock) {
    const auto text_or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
    return {{"time", utc(event.when)},          {"event", name_of(event.what)},    {"name", lock.name.text()},
            {"id", text_or_null(event.id)},     {"client", to_json(event.client)}, {"mode", text_or_null(event.mode)},
            {"token", or_null(event.token)},    {"waited_ms", ms(event.waited)},   {"held_ms", ms(event.held)},
            {"place", or_null(event.position)}, {"from", text_or_null(event.from)}};
}

}  // namespace holdfast::cli
