#include "cli/commands/view_options.hpp"

#include "cli/server/config_file.hpp"
#include "redis/url/duration.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::cli {

void view_options::complete(const CLI::App& command) {
    const CLI::Option* const option = command.get_option_no_throw("--prefix");
    if (option != nullptr && option->count() == 0 && settings().prefix) prefix = *settings().prefix;
}

lock_ref view_options::lock() const {
    using wire::key_naming;
    if (keys != "tagged" && keys != "raw") throw trouble(fmt::format("--keys {}: it is tagged or raw", keys));
    return {wire::lock_name(name), keys == "raw" ? key_naming::raw : key_naming::tagged, prefix};
}

view_options::looked_at view_options::look() const {
    const server_choice choice = choose_servers(servers, notices::shown, local_start::never);
    if (!choice.runs) tell("the local server does not run, so nothing is locked there");
    return {server_set(choice.urls), choice.runs};
}

std::string view_options::only_url(const char* command) const {
    const server_choice choice = choose_servers(servers, notices::shown);
    if (choice.urls.size() > 1) {
        throw trouble(fmt::format("{} looks at one server; choose one of {} by --url", command, choice.identity));
    }
    return choice.urls.front();
}

void declare_servers(CLI::App& command, server_words& servers) {
    command.add_option("--url", servers.urls, "the server (several: again); else HOLDFAST_URL, else --local")
        ->type_name("URL")
        ->allow_extra_args(false);
    command.add_flag("--local", servers.local, "a server of your own, only for your commands on this machine");
}

void declare_server(CLI::App& command, view_options& options) {
    declare_servers(command, options.servers);
    command.add_option("--prefix", options.prefix, "prefix of tagged keys (hf:)")->type_name("TEXT");
}

void declare_json(CLI::App& command, view_options& options) {
    command.add_flag("--json", options.json, "for programs; docs/cli.md has the form");
}

void declare_lock(CLI::App& command, view_options& options) {
    command.add_option("NAME", options.name, "of the lock")->type_name("")->required();
    command.add_option("--keys", options.keys, "tagged, or raw: the key is NAME itself (tagged)")->type_name("FORM");
}

void declare_max_lease(CLI::App& command, std::string& max_lease) {
    command.add_option("--max-lease", max_lease, "the longest lease of all who use these servers (60s)")
        ->type_name("TIME");
}

client_options options_with(const std::string& max_lease, const std::string& fence_retention) {
    client_options chosen;
    std::string told = max_lease.empty() ? environment("HOLDFAST_MAX_LEASE") : max_lease;
    if (told.empty()) told = settings().max_lease.value_or("");
    if (!told.empty()) chosen.max_lease = duration_of(told, "--max-lease");
    chosen.fence_retention = std::max(chosen.fence_retention, chosen.max_lease);
    const std::string kept = fence_retention.empty() ? environment("HOLDFAST_FENCE_RETENTION") : fence_retention;
    if (!kept.empty()) chosen.fence_retention = duration_of(kept, "--fence-retention");
    return chosen;
}

std::chrono::milliseconds duration_of(const std::string& text, const char* option) {
    const auto duration = redis::parse_duration(text);
    if (!duration) {
        throw trouble(fmt::format("{} {}: not a duration; write a number and one of ms, s, m, h, as in 500ms or 1.5s",
                                  option, text));
    }
    return *duration;
}

}  // namespace holdfast::cli
