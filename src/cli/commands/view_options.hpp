// What the subcommands that look at locks have in common: which server, which lock, for whom the output is.
#pragma once

#include "cli/inspect/lock_state.hpp"
#include "cli/inspect/server_set.hpp"
#include "wire/keys.hpp"

#include <holdfast/options.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace holdfast::cli {

struct view_options {
    server_words servers;
    std::string prefix = std::string(wire::default_prefix);
    std::string name;             // of those that look at one lock
    std::string keys = "tagged";  // of the same
    bool json = false;

    // Throws trouble or holdfast::error if the words make no sense, as `run` does.
    lock_ref lock() const;
    server_set open() const { return server_set(choose_servers(servers, notices::shown).urls); }
    // Of a command that looks at one server only; throws trouble if more are named.
    std::string only_url(const char* command) const;
};

// --url and --local, of a command of its own.
void declare_servers(CLI::App& command, server_words& servers);
void declare_server(CLI::App& command, view_options& options);
void declare_json(CLI::App& command, view_options& options);
void declare_lock(CLI::App& command, view_options& options);

// The longest lease of all who use the servers: what --max-lease says, else HOLDFAST_MAX_LEASE, else as the library has
// it.
void declare_max_lease(CLI::App& command, std::string& max_lease);
client_options options_with(const std::string& max_lease, const std::string& fence_retention = {});

// A number and its unit; throws trouble that names the option.
std::chrono::milliseconds duration_of(const std::string& text, const char* option);

}  // namespace holdfast::cli
