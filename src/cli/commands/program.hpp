// The whole command: its subcommands, and how the words of a command line are understood.
#pragma once

#include "cli/commands/habits.hpp"

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

class program {
public:
    // `words`: the arguments, without the program's name.
    explicit program(std::vector<std::string> words);
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    // Understands the words and runs the subcommand that they name. Returns the exit status; words that make no sense
    // are told, and end with own_failure. Throws what the subcommand throws.
    int run();

    // For tests, which stop run() when the words are understood.
    CLI::App& app() noexcept { return app_; }

private:
    const CLI::App* find_subcommand(const std::string& name) const;
    std::vector<std::string> names() const;
    std::vector<std::string> ordered() const;
    std::string misnomer() const;
    int parse_and_run(std::vector<std::string> words);

    CLI::App app_{"Locks for any program, across machines, kept in Redis.", "holdfast"};
    int status_ = 0;
    spoken_words spoken_;
    // Another program's command and options.
    std::optional<std::vector<std::string>> behind_dashes_;
};

}  // namespace holdfast::cli
