// What the subcommands that look at locks have in common: which server, which lock, for whom the output is.
#pragma once

#include "cli/lock_state.hpp"
#include "cli/server_choice.hpp"

#include <holdfast/client.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace holdfast::cli {

using json = nlohmann::ordered_json;

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

// One line for a program that reads lines, or a text for one that reads all; bytes that are no UTF-8 are replaced.
std::string one_line(const json& value);
std::string indented(const json& value);

// Every look at a server is told the same way: {"servers": [...], what: ...}.
json document(const client& server, const char* what, json content);

json to_json(const lock_state& lock);
json to_json(const lock_holder& holder, std::chrono::microseconds server_time);
json to_json(const lock_waiter& waiter, std::chrono::microseconds server_time);

// "alice@web-1 backup[4242]"; of those without a card, the id.
std::string person(const lock_holder& holder);
std::string person(const lock_waiter& waiter);

}  // namespace holdfast::cli
