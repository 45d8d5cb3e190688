// Runs a program and collects what it prints, for tests of the command. Killed by the destructor if it still runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/spawn.hpp"

namespace holdfast::testing {

enum class input_end { closed, open };

struct child_options {
    std::vector<std::string> arguments{};
    std::vector<std::pair<std::string, std::string>> environment{};  // added or replaced
    std::vector<std::string> unset{};                                // taken out of the environment
    std::filesystem::path directory{};                               // where it runs
    std::string input{};                                             // for its stdin
    input_end after_input = input_end::closed;                       // open: until close_input()
    process_group group = process_group::inherit;
};

struct exit_result {
    int status = -1;  // of exit(); -1 if a signal ended it
    int signal = 0;   // that ended it; 0 if it exited

    friend bool operator==(const exit_result&, const exit_result&) = default;
};

class child_process {
public:
    /// A program without a slash is looked up in PATH. Throws std::system_error if it cannot be run.
    explicit child_process(const std::filesystem::path& program, child_options options = {});
    ~child_process();
    child_process(child_process&&) noexcept;
    child_process& operator=(child_process&&) noexcept;

    pid_t pid() const;
    bool running();
    void signal(int number);

    void write_input(std::string_view more);
    void close_input();

    /// How it ended, all output collected; nothing if it still runs after `limit`.
    std::optional<exit_result> wait_for(std::chrono::milliseconds limit);

    /// The same, but a program that does not end in time is an error (std::runtime_error with its output).
    exit_result wait(std::chrono::milliseconds limit = std::chrono::seconds{30});

    /// What it has written so far.
    std::string output() const;
    std::string errors() const;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace holdfast::testing
