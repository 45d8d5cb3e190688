// What people type from habit: options before the subcommand, `help run`, the names that other programs give a
// subcommand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// The words of a command line without what stands behind "--".
struct spoken_words {
    std::vector<std::string> global;  // options in front of the subcommand, with their values
    std::vector<std::string> rest;    // the subcommand and what follows; `help X` has become `X --help`
};
spoken_words split(std::vector<std::string> words);

// Whether this word of `spoken_words::global` is a value and not an option.
bool takes_a_value(std::string_view option);

// What to type instead of an unknown subcommand, as in "holdfast ls"; empty if nobody knows. `known` are the
// subcommands there are.
std::string instead_of(std::string_view unknown, const std::vector<std::string>& known);

}  // namespace holdfast::cli
