// holdfast run: a command under a lock.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace holdfast::cli {

// Adds the subcommand; `words` is what follows "--". Whoever is chosen puts what to exit with into `status`.
void add_run(CLI::App& app, const std::vector<std::string>& words, int& status);

}  // namespace holdfast::cli
