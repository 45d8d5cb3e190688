#include "cli/view_options.hpp"

#include "cli/exit_code.hpp"
#include "cli/text.hpp"
#include "redis/duration.hpp"

#include <fmt/format.h>

namespace holdfast::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr auto replacing = json::error_handler_t::replace;

json ms(microseconds span) {
    return std::chrono::floor<milliseconds>(span).count();
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

std::string person(const std::string& id, const std::optional<client_facts>& client) {
    if (!client) return excerpt(id);
    return excerpt(fmt::format("{}@{} {}[{}]", client->user, client->host, client->program, client->pid));
}

}  // namespace

lock_ref view_options::lock() const {
    using scripts::key_naming;
    if (keys != "tagged" && keys != "raw") throw trouble(fmt::format("--keys {}: it is tagged or raw", keys));
    return {scripts::lock_name(name), keys == "raw" ? key_naming::raw : key_naming::tagged, prefix};
}

void declare_server(CLI::App& command, view_options& options) {
    command.add_option("--url", options.url, "the server; else HOLDFAST_URL, else one on this machine")
        ->type_name("URL");
    command.add_option("--prefix", options.prefix, "stands before tagged keys (hf:)")->type_name("TEXT");
}

void declare_json(CLI::App& command, view_options& options) {
    command.add_flag("--json", options.json, "for programs; docs/cli.md has the form");
}

void declare_lock(CLI::App& command, view_options& options) {
    command.add_option("NAME", options.name, "of the lock")->type_name("")->required();
    command.add_option("--keys", options.keys, "tagged, or raw: the key is NAME itself (tagged)")->type_name("FORM");
}

milliseconds duration_of(const std::string& text, const char* option) {
    const auto duration = redis::parse_duration(text);
    if (!duration) {
        throw trouble(fmt::format("{} {}: not a duration; write a number and one of ms, s, m, h, as in 500ms or 1.5s",
                                  option, text));
    }
    return *duration;
}

std::string one_line(const json& value) {
    return value.dump(-1, ' ', false, replacing) + "\n";
}

std::string indented(const json& value) {
    return value.dump(2, ' ', false, replacing) + "\n";
}

json document(const client& server, const char* what, json content) {
    return {{"servers", json::array({server.server()})}, {what, std::move(content)}};
}

json to_json(const lock_holder& holder, microseconds server_time) {
    json out{{"id", holder.id},
             {"mode", name_of(holder.mode)},
             {"count", holder.count},
             {"foreign", holder.is_foreign},
             {"client", to_json(holder.client)},
             {"token", or_null(holder.token)},
             {"since", nullptr},
             {"held_ms", nullptr},
             {"lease_left_ms", nullptr}};
    if (holder.held) out["since"] = utc(server_time - *holder.held);
    if (holder.held) out["held_ms"] = ms(*holder.held);
    if (holder.left) out["lease_left_ms"] = holder.left->count();
    return out;
}

json to_json(const lock_waiter& waiter, microseconds server_time) {
    json out{{"id", waiter.id},
             {"wants", name_of(waiter.wants)},
             {"client", to_json(waiter.client)},
             {"since", utc(server_time - waiter.waited)},
             {"waited_ms", ms(waiter.waited)},
             {"last_seen_ms", nullptr},
             {"silent", waiter.is_silent}};
    if (waiter.unseen) out["last_seen_ms"] = ms(*waiter.unseen);
    return out;
}

json to_json(const lock_state& lock) {
    json holders = json::array();
    json waiters = json::array();
    for (const lock_holder& holder : lock.holders) holders.push_back(to_json(holder, lock.server_time));
    for (const lock_waiter& waiter : lock.waiters) waiters.push_back(to_json(waiter, lock.server_time));
    return {{"name", lock.where.name.text()},
            {"keys", lock.where.naming == scripts::key_naming::raw ? "raw" : "tagged"},
            {"key", lock.where.keys.lock},
            {"mode", mode_of(lock)},
            {"last_token", or_null(lock.fence)},
            {"holders", std::move(holders)},
            {"waiters", std::move(waiters)},
            {"oldest_wait_ms", ms(lock.oldest_wait())},
            {"server_time", utc(lock.server_time)}};
}

std::string person(const lock_holder& holder) {
    return person(holder.id, holder.client) + (holder.is_foreign ? " (another program)" : "");
}

std::string person(const lock_waiter& waiter) {
    return person(waiter.id, waiter.client);
}

}  // namespace holdfast::cli
