// What programs read: the form that docs/cli.md describes. Fields are added, never changed.
#pragma once

#include "cli/inspect/locks/lock_events.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace holdfast::cli {

// Keeps the order of its fields, for people who read it all the same.
using json = nlohmann::ordered_json;

// One line for a program that reads lines, or a text for one that reads all; bytes that are no UTF-8 are replaced.
std::string one_line(const json& value);
std::string indented(const json& value);

// Every look at servers is told the same way: {"servers": [...], "silent": [...], what: ...}.
json document(const server_set& servers, const char* what, json content);

json to_json(const lock_state& lock);
json to_json(const std::vector<lock_state>& locks);
json to_json(const lock_holder& holder, const lock_state& lock);

json to_json(const lock_event& event, const lock_ref& lock);

}  // namespace holdfast::cli
