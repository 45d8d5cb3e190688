// holdfast doctor: what on this server endangers locks.
#include "cli/commands.hpp"
#include "cli/doctor.hpp"
#include "cli/exit_code.hpp"
#include "cli/json_form.hpp"
#include "cli/text.hpp"
#include "cli/view_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace holdfast::cli {
namespace {

const char* word_for(severity how_bad) {
    return how_bad == severity::fine ? "ok" : how_bad == severity::warning ? "warning" : "danger";
}

emphasis colour_for(severity how_bad) {
    return how_bad == severity::fine      ? emphasis::good
           : how_bad == severity::warning ? emphasis::warning
                                          : emphasis::danger;
}

std::size_t count(const std::vector<finding>& findings, severity how_bad) {
    return static_cast<std::size_t>(std::ranges::count(findings, how_bad, &finding::how_bad));
}

json to_json(const client& server, const std::vector<finding>& findings) {
    json checks = json::array();
    for (const finding& one : findings) {
        checks.push_back({{"check", one.check},
                          {"severity", word_for(one.how_bad)},
                          {"finding", one.what},
                          {"meaning", one.meaning},
                          {"fix", one.fix}});
    }
    return {{"server", server.server()},
            {"dangers", count(findings, severity::danger)},
            {"warnings", count(findings, severity::warning)},
            {"checks", std::move(checks)}};
}

// Words in lines of at most so many columns, each behind the margin.
std::string folded(std::string_view text, std::string_view margin) {
    constexpr std::size_t columns = 88;
    std::string lines;
    std::string line;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        if (line.size() + end > columns) lines += std::string(margin) + std::exchange(line, {}) + "\n";
        if (!line.empty()) line += ' ';
        line += text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines + std::string(margin) + line + "\n";
}

void print(const client& server, const std::vector<finding>& findings) {
    const palette colours = palette::of(STDOUT_FILENO);
    constexpr const char* margin = "                      ";
    std::cout << colours.paint(emphasis::bold, server.server()) << "\n";
    for (const finding& one : findings) {
        const std::string word = fmt::format("{:8}", word_for(one.how_bad));
        std::cout << "  " << colours.paint(colour_for(one.how_bad), word) << fmt::format("{:12}", one.check)
                  << printable(one.what) << "\n";
        if (one.how_bad == severity::fine) continue;
        std::cout << folded(one.meaning, margin) << folded("Fix: " + one.fix, margin);
    }
    const std::size_t dangers = count(findings, severity::danger);
    const std::size_t warnings = count(findings, severity::warning);
    if (dangers + warnings == 0) {
        std::cout << "nothing here endangers locks\n";
    } else {
        std::cout << counted(dangers, "danger") << ", " << counted(warnings, "warning") << "\n";
    }
}

std::vector<finding> examine(const client& server, const server_choice& choice, const std::string& prefix) {
    try {
        return cli::examine(server_survey(server, choice.origin, prefix));
    } catch (const error& why) {
        if (const auto told = cli::examine(why)) return {*told};
        throw;
    }
}

int examine_server(const view_options& options) {
    const server_choice choice = choose_server(options.url, notices::shown);
    const client server(choice.url);
    const std::vector<finding> findings = examine(server, choice, options.prefix);
    if (options.json) {
        std::cout << indented({{"servers", json::array({to_json(server, findings)})}});
    } else {
        print(server, findings);
    }
    const auto worst = std::ranges::max(findings, {}, &finding::how_bad).how_bad;
    return static_cast<int>(worst);
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
    CLI::App* const command = app.add_subcommand("doctor", "look for what endangers locks on the server");
    const auto options = std::make_shared<view_options>();
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Exit status: 0 nothing found; 1 warnings; 2 dangers; 125 holdfast itself failed.\n"
        "It changes nothing on the server.");
    command->callback([options, &status] { status = examine_server(*options); });
}

}  // namespace holdfast::cli
