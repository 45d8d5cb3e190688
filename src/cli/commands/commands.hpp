// The subcommands. Each adds itself to the command line; `status` is set when it has run.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// `words` is the command, from behind "--"; nothing where there is no "--".
void add_run(CLI::App& app, const std::optional<std::vector<std::string>>& words, int& status);
void add_elect(CLI::App& app, const std::optional<std::vector<std::string>>& words, int& status);
void add_lock(CLI::App& app, int& status);
void add_unlock(CLI::App& app, int& status);
void add_ls(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_top(CLI::App& app, int& status);
void add_watch(CLI::App& app, int& status);
void add_wait(CLI::App& app, int& status);
void add_release(CLI::App& app, int& status);
void add_metrics(CLI::App& app, int& status);
void add_web(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_server(CLI::App& app, int& status);

}  // namespace holdfast::cli
