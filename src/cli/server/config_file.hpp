// What people set once for all commands: /etc/holdfast.toml, and ~/.config/holdfast.toml of a user, which goes first.
//
//     url = "redis://db.example"               # or several: ["redis://a", "redis://b", "redis://c"]
//     prefix = "shop:"
//     max-lease = "2m"
//
// A part of TOML, read by a parser of our own: three keys need no library. What it does not understand is an error that
// names the line: a setting that is silently not there ends in locks that nobody shares.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

struct configuration {
    std::vector<std::string> urls = {};
    std::optional<std::string> prefix = {};
    std::optional<std::string> max_lease = {};
};

// Throws trouble with `path` and the line.
configuration parse_configuration(std::string_view text, const std::string& path);

// That of this user and machine, read once; of the file in HOLDFAST_CONFIG alone if that is set. Throws trouble for a
// file that cannot be read or understood, and for a password that others can read.
const configuration& settings();

}  // namespace holdfast::cli
