// Runs a program and collects its output, for tests of the command. The destructor kills it if it still runs.
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
    std::vector<std::pair<std::string, std::string>> environment{};  // added to the environment, or replaced
    std::vector<std::string> unset{};                                // removed from the environment
    std::filesystem::path directory{};                               // working directory
    std::string input{};                                             // for its stdin
    input_end after_input = input_end::closed;                       // open: until close_input()
    process_group group = process_group::inherit;
};

struct exit_result {
    int status = -1;  // exit status; -1 if a signal ended it
    int signal = 0;   // the signal that ended it; 0 if it exited

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

    /// The result with all output; nothing if it still runs after `limit`.
    std::optional<exit_result> wait_for(std::chrono::milliseconds limit);

    /// The same, but throws std::runtime_error with the output if the program does not end in time.
    exit_result wait(std::chrono::milliseconds limit = std::chrono::seconds{30});

    /// The output so far.
    std::string output() const;
    std::string errors() const;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace holdfast::testing
