#include "cli/commands/program.hpp"

#include "cli/commands/commands.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace holdfast::cli {

program::program(std::vector<std::string> words) {
    hide_passwords_of(words);
    const auto dashes = std::ranges::find(words, "--");
    if (dashes != words.end()) behind_dashes_.emplace(dashes + 1, words.end());
    words.erase(dashes, words.end());
    spoken_ = split(std::move(words));
    app_.set_version_flag("-V,--version", "holdfast " HOLDFAST_VERSION);
    app_.require_subcommand(1);
    add_run(app_, behind_dashes_, status_);
    add_elect(app_, behind_dashes_, status_);
    for (const auto add : {add_lock, add_unlock, add_ls, add_show, add_top, add_watch, add_wait, add_release,
                           add_metrics, add_web, add_doctor, add_bench, add_server}) {
        add(app_, status_);
    }
    app_.footer("holdfast run NAME -- COMMAND acquires the lock NAME, runs COMMAND and releases the lock.");
}

int program::run() {
    if (const std::string why = misnomer(); !why.empty()) {
        tell(why);
        tell("holdfast --help lists the subcommands");
        return own_failure;
    }
    const int parsed = parse_and_run(ordered());
    return parsed == all_well ? status_ : parsed;
}

const CLI::App* program::find_subcommand(const std::string& name) const {
    for (const CLI::App* each : app_.get_subcommands([](const CLI::App*) { return true; })) {
        if (each->get_name() == name) return each;
    }
    return nullptr;
}

std::vector<std::string> program::names() const {
    std::vector<std::string> known;
    for (const CLI::App* each : app_.get_subcommands([](const CLI::App*) { return true; })) {
        known.push_back(each->get_name());
    }
    return known;
}

// Options from before the subcommand, behind it. What does not matter to a subcommand (how long leases are, the prefix
// of the local server) it does not mind; but `server` at a URL would not be what was meant.
std::vector<std::string> program::ordered() const {
    std::vector<std::string> words = spoken_.rest;
    if (words.empty()) return spoken_.global;
    const CLI::App* const chosen = find_subcommand(words.front());
    std::vector<std::string> known;
    for (std::size_t i = 0; i < spoken_.global.size(); ++i) {
        const std::string& option = spoken_.global[i];
        const bool has_value = takes_a_value(option) && i + 1 < spoken_.global.size();
        const std::string name = option.substr(0, option.find('='));
        const bool is_of_no_concern =
            name != "--url" && chosen != nullptr && chosen->get_option_no_throw(name) == nullptr;
        if (!is_of_no_concern) known.push_back(option);
        if (has_value && !is_of_no_concern) known.push_back(spoken_.global[i + 1]);
        if (has_value) ++i;
    }
    words.insert(words.begin() + 1, known.begin(), known.end());
    return words;
}

// Why the first word is no subcommand, and what to type instead; empty if it is one.
std::string program::misnomer() const {
    if (spoken_.rest.empty() || spoken_.rest.front().starts_with('-')) return {};
    const std::string& word = spoken_.rest.front();
    if (find_subcommand(word) != nullptr) return {};
    std::string meant = instead_of(word, names());
    const bool has_command = behind_dashes_ && !behind_dashes_->empty();
    if (meant.empty() && has_command) meant = "holdfast run " + word + " -- COMMAND";
    return fmt::format("there is no subcommand '{}'{}", word, meant.empty() ? "" : "; did you mean " + meant + "?");
}

int program::parse_and_run(std::vector<std::string> words) {
    const std::string first = words.empty() ? std::string() : words.front();
    const bool has_subcommand = !first.starts_with('-') && find_subcommand(first) != nullptr;
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
        app_.parse(std::move(words));
    } catch (const CLI::ParseError& why) {
        if (why.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app_.exit(why);
        tell(why.what());
        tell(has_subcommand ? "holdfast " + first + " --help tells more"
                            : "holdfast --help tells more, and so does holdfast run --help");
        return own_failure;
    }
    return all_well;
}

}  // namespace holdfast::cli
