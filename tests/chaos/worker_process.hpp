// A worker process (see worker/worker.hpp) as the tests use it: started, read from, ended, killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/boot_clock.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"

namespace holdfast::testing {

/// Only a hang reaches this limit.
inline constexpr std::chrono::seconds an_age{60};

inline std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(boot_now().time_since_epoch()).count();
}

/// One line of a worker's output, split into words.
using told_line = std::vector<std::string>;

class worker {
public:
    explicit worker(std::vector<std::string> arguments)
        : process_(HOLDFAST_CHAOS_WORKER, {.arguments = std::move(arguments), .after_input = input_end::open}) {}

    child_process& process() { return process_; }
    void signal(int number) { process_.signal(number); }

    /// All complete lines so far that begin with this word.
    std::vector<told_line> lines(const std::string& event) const {
        const std::string text = process_.output();
        std::istringstream whole_lines(text.substr(0, text.rfind('\n') + 1));
        std::vector<told_line> found;
        for (std::string line; std::getline(whole_lines, line);) {
            std::istringstream words(line);
            told_line split;
            for (std::string word; words >> word;) split.push_back(word);
            if (!split.empty() && split[0] == event) found.push_back(std::move(split));
        }
        return found;
    }

    bool has_told(const std::string& event) const { return !lines(event).empty(); }

    /// The first such line; throws if none comes.
    told_line wait_for(const std::string& event) {
        if (!eventually([&] { return has_told(event); }, an_age)) {
            throw std::runtime_error("the worker never told '" + event + "': " + process_.output() + process_.errors());
        }
        return lines(event).front();
    }

    /// Closes its input and waits for its end.
    exit_result finish() {
        process_.close_input();
        return process_.wait(an_age);
    }

private:
    child_process process_;
};

inline constexpr exit_result went_well{.status = 0, .signal = 0};

inline std::int64_t to_number(const std::string& word) {
    return std::stoll(word);
}

}  // namespace holdfast::testing
