// What the subcommands that look at locks have in common: which server, which lock, for whom the output is.
#pragma once

#include "cli/lock_state.hpp"
#include "cli/server_choice.hpp"

#include <holdfast/client.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <string>

namespace holdfast::cli {

struct view_options {
    std::string url;
    std::string prefix = "hf:";
    std::string name;             // of those that look at one lock
    std::string keys = "tagged";  // of the same
    bool json = false;

    // Throws trouble or holdfast::error if the words make no sense, as `run` does.
    lock_ref lock() const;
    client open() const { return client(choose_server(url, notices::shown).url); }
};

void declare_server(CLI::App& command, view_options& options);
void declare_json(CLI::App& command, view_options& options);
void declare_lock(CLI::App& command, view_options& options);

// A number and its unit; throws trouble that names the option.
std::chrono::milliseconds duration_of(const std::string& text, const char* option);

}  // namespace holdfast::cli
