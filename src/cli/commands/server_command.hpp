// holdfast server: the local server, by hand.
#pragma once

#include <CLI/CLI.hpp>

namespace holdfast::cli {

void add_server(CLI::App& app, int& status);

}  // namespace holdfast::cli
