// The holdfast command: words in, a subcommand, an exit status out.
#include "cli/commands/commands.hpp"
#include "cli/terminal/system.hpp"

#include <holdfast/errors.hpp>

#include <algorithm>

namespace holdfast::cli {
namespace {

int parse_and_run(CLI::App& app, std::vector<std::string> words) {
    std::ranges::reverse(words);  // as CLI11 wants them
    try {
        app.parse(std::move(words));
    } catch (const CLI::ParseError& why) {
        if (why.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(why);
        tell(why.what());
        tell("holdfast --help tells more, and so does holdfast run --help");
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
    const std::vector<std::string> behind_dashes(dashes == words.end() ? dashes : dashes + 1, words.end());
    words.erase(dashes, words.end());
    app.set_version_flag("--version", "holdfast " HOLDFAST_VERSION);
    app.require_subcommand(1);
    add_run(app, behind_dashes, status);
    for (const auto add :
         {add_ls, add_show, add_top, add_watch, add_release, add_metrics, add_doctor, add_bench, add_server}) {
        add(app, status);
    }
    app.footer("holdfast run NAME -- COMMAND acquires the lock NAME, runs COMMAND and releases the lock.");
    const int parsed = parse_and_run(app, std::move(words));
    return parsed == all_well ? status : parsed;
}

}  // namespace
}  // namespace holdfast::cli

int main(int argc, char** argv) {
    try {
        return holdfast::cli::command(argc, argv);
    } catch (const std::exception& why) {
        holdfast::cli::tell(why.what());
        return holdfast::cli::own_failure;
    }
}
