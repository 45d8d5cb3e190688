// What the subcommands have in common: which server, which lock, for whom the output is.
#pragma once

#include "cli/commands/commands.hpp"
#include "cli/inspect/locks/lock_state.hpp"
#include "cli/inspect/servers/server_set.hpp"
#include "cli/terminal/system.hpp"
#include "wire/keys.hpp"

#include <holdfast/options.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::cli {

struct view_options {
    server_words servers;
    std::string prefix = std::string(wire::default_prefix);
    std::string name;             // of those that look at one lock
    std::string keys = "tagged";  // of the same
    bool json = false;

    // What was not said is as the configuration has it.
    void complete(const CLI::App& command);
    // Throws trouble or holdfast::error if the words make no sense, as `run` does.
    lock_ref lock() const;
    server_set open() const { return server_set(choose_servers(servers, notices::shown).urls); }
    // The same of a command that only looks: it does not start the local server, in which nothing could be locked.
    struct looked_at {
        server_set servers;
        bool run;  // false: nobody is to be asked
    };
    looked_at look() const;
    // Of a command that looks at one server only; throws trouble if more are named.
    std::string only_url(const char* command) const;
};

// Adds a subcommand and its options, which live as long as `app`; `run` is called when the subcommand was chosen.
template <typename Options, typename Run>
std::pair<CLI::App*, Options*> add_command(CLI::App& app, const char* name, const char* text, int& status, Run run) {
    CLI::App* const command = app.add_subcommand(name, text);
    const auto options = std::make_shared<Options>();
    command->callback([command, options, run, &status] {
        options->complete(*command);
        status = run(*options);
    });
    return {command, options.get()};
}

// --url and --local, of a command of its own.
void declare_servers(CLI::App& command, server_words& servers);
void declare_server(CLI::App& command, view_options& options);
void declare_json(CLI::App& command, view_options& options);
void declare_lock(CLI::App& command, view_options& options);

// The longest lease of all who use the servers: --max-lease, else HOLDFAST_MAX_LEASE, else the configuration, else the
// library's default.
void declare_max_lease(CLI::App& command, std::string& max_lease);
client_options options_with(const std::string& max_lease, const std::string& fence_retention = {});

// A number and its unit; throws trouble that names the option.
std::chrono::milliseconds duration_of(const std::string& text, const char* option);

}  // namespace holdfast::cli
