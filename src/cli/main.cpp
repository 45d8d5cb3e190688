// The holdfast command: words in, a subcommand, an exit status out.
#include "cli/commands/commands.hpp"
#include "cli/commands/habits.hpp"
#include "cli/terminal/system.hpp"

#include <holdfast/errors.hpp>

#include <fmt/format.h>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace holdfast::cli {
namespace {

const CLI::App* find_subcommand(const CLI::App& app, const std::string& name) {
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (each->get_name() == name) return each;
    }
    return nullptr;
}

// Options from before the subcommand, behind it. Which server and whose keys matters to every subcommand; how long
// leases are only to some, and the others do not mind.
std::vector<std::string> ordered(const CLI::App& app, const spoken_words& spoken) {
    std::vector<std::string> words = spoken.rest;
    if (words.empty()) return spoken.global;
    const CLI::App* const chosen = find_subcommand(app, words.front());
    std::vector<std::string> known;
    for (std::size_t i = 0; i < spoken.global.size(); ++i) {
        const std::string& option = spoken.global[i];
        const bool has_value = takes_a_value(option) && i + 1 < spoken.global.size();
        const std::string name = option.substr(0, option.find('='));
        const bool is_of_no_concern =
            name == "--max-lease" && chosen != nullptr && chosen->get_option_no_throw(name) == nullptr;
        if (!is_of_no_concern) known.push_back(option);
        if (has_value && !is_of_no_concern) known.push_back(spoken.global[i + 1]);
        if (has_value) ++i;
    }
    words.insert(words.begin() + 1, known.begin(), known.end());
    return words;
}

// Why the first word is no subcommand, and what to type instead; empty if it is one.
std::string misnomer(const CLI::App& app, const spoken_words& spoken, bool has_command) {
    if (spoken.rest.empty() || spoken.rest.front().starts_with('-')) return {};
    const std::string& word = spoken.rest.front();
    if (find_subcommand(app, word) != nullptr) return {};
    std::vector<std::string> known;
    for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
        known.push_back(each->get_name());
    }
    std::string meant = instead_of(word, known);
    if (meant.empty() && has_command) meant = "holdfast run " + word + " -- COMMAND";
    return fmt::format("there is no subcommand '{}'{}", word, meant.empty() ? "" : "; did you mean " + meant + "?");
}

int parse_and_run(CLI::App& app, std::vector<std::string> words) {
    const std::string first = words.empty() ? std::string() : words.front();
    const bool has_subcommand = !first.starts_with('-') && find_subcommand(app, first) != nullptr;
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& why) {
        if (why.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(why);
        tell(why.what());
        tell(has_subcommand ? "holdfast " + first + " --help tells more"
                            : "holdfast --help tells more, and so does holdfast run --help");
        return own_failure;
    }
    return all_well;
}

int command(int argc, char** argv) {
    CLI::App app("Locks for any program, across machines, kept in Redis.", "holdfast");
    int status = all_well;
    std::vector<std::string> words(argv + 1, argv + argc);
    const auto dashes = std::ranges::find(words, "--");
    // Another program's command and options.
    const bool has_dashes = dashes != words.end();
    const std::vector<std::string> behind_dashes(has_dashes ? dashes + 1 : dashes, words.end());
    words.erase(dashes, words.end());
    app.set_version_flag("-V,--version", "holdfast " HOLDFAST_VERSION);
    app.require_subcommand(1);
    add_run(app, has_dashes ? std::optional(behind_dashes) : std::nullopt, status);
    add_elect(app, has_dashes ? std::optional(behind_dashes) : std::nullopt, status);
    for (const auto add : {add_lock, add_unlock, add_ls, add_show, add_top, add_watch, add_wait, add_release,
                           add_metrics, add_web, add_doctor, add_bench, add_server}) {
        add(app, status);
    }
    app.footer("holdfast run NAME -- COMMAND acquires the lock NAME, runs COMMAND and releases the lock.");
    const spoken_words spoken = split(std::move(words));
    if (const std::string why = misnomer(app, spoken, !behind_dashes.empty()); !why.empty()) {
        tell(why);
        tell("holdfast --help lists the subcommands");
        return own_failure;
    }
    const int parsed = parse_and_run(app, ordered(app, spoken));
    return parsed == all_well ? status : parsed;
}

// Whether somebody has read, or the file has taken, what was written. A reader that has gone away does not mind.
bool is_output_lost() {
    std::cout.flush();
    if (std::cout.good()) return false;
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return ::poll(&output, 1, 0) <= 0 || (output.revents & POLLERR) == 0;
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
    try {
        const int status = holdfast::cli::command(argc, argv);
        if (!holdfast::cli::is_output_lost()) return status;
        holdfast::cli::tell("the output could not be written; is the disk full?");
        return holdfast::cli::own_failure;
    } catch (const std::exception& why) {
        holdfast::cli::tell(why.what());
        return holdfast::cli::own_failure;
    }
}
