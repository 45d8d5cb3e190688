// The sample users of docs/deployment.md, "The least rights": the tests use what that page says.
#pragma once

#include <string>
#include <vector>

namespace holdfast::testing {

struct documented_user {
    std::string name;
    std::string password;
    std::vector<std::string> words;  // what follows the password: keys, channels, commands

    /// As in a configuration file: "name on >password words...".
    std::string line() const;
    /// ACL SETUSER with reset and exactly these words.
    std::vector<std::string> command(const std::vector<std::string>& with) const;
    /// The words that allow something.
    std::vector<std::string> rights() const;
    /// All words but that one.
    std::vector<std::string> words_without(const std::string& right) const;
    /// The same words for another user: "~hf:* ...".
    std::string words_alone() const;
};

/// The line "user <name> on ><password> ..." of that page; throws std::runtime_error if there is not exactly one.
documented_user documented(const std::string& name);

}  // namespace holdfast::testing
