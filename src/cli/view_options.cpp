#include "cli/view_options.hpp"

#include "cli/exit_code.hpp"
#include "redis/duration.hpp"

#include <fmt/format.h>

namespace holdfast::cli {

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

std::chrono::milliseconds duration_of(const std::string& text, const char* option) {
    const auto duration = redis::parse_duration(text);
    if (!duration) {
        throw trouble(fmt::format("{} {}: not a duration; write a number and one of ms, s, m, h, as in 500ms or 1.5s",
                                  option, text));
    }
    return *duration;
}

}  // namespace holdfast::cli
