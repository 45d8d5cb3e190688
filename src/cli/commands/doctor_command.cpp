// holdfast doctor: what on this server endangers locks.
#include "cli/commands/view_options.hpp"
#include "cli/doctor/examination.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <sstream>

namespace holdfast::cli {
namespace {

constexpr std::array emphases{emphasis::good, emphasis::warning, emphasis::danger};  // in the order of `severity`

// Words in lines of at most so many columns, each behind a margin.
std::string folded(const std::string& text) {
    constexpr std::size_t columns = 88;
    const std::string margin(22, ' ');
    std::string lines;
    std::string line;
    std::istringstream in(text);
    for (std::string word; in >> word;) {
        if (line.size() + word.size() > columns) lines += margin + std::exchange(line, {}) + "\n";
        line += (line.empty() ? "" : " ") + word;
    }
    return lines + margin + line + "\n";
}

void print(const std::string& title, const std::vector<finding>& findings) {
    const palette colours = palette::of(STDOUT_FILENO);
    std::cout << colours.paint(emphasis::bold, title) << "\n";
    for (const finding& one : findings) {
        const std::string word = fmt::format("{:8}", name_of(one.how_bad));
        std::cout << "  " << colours.paint(emphases[static_cast<std::size_t>(one.how_bad)], word)
                  << fmt::format("{:12}", one.check) << printable(one.what) << "\n";
        if (one.how_bad != severity::fine) std::cout << folded(one.meaning) << folded("Fix: " + one.fix);
    }
}

void print_sum(const std::vector<finding>& findings) {
    const std::size_t dangers = count(findings, severity::danger);
    const std::size_t warnings = count(findings, severity::warning);
    if (dangers + warnings == 0) {
        std::cout << "nothing here endangers locks\n";
    } else {
        std::cout << counted(dangers, "danger") << ", " << counted(warnings, "warning") << "\n";
    }
}

struct doctor_options : view_options {
    std::string max_lease;
};

int examine_servers(const doctor_options& options) {
    const server_choice choice = choose_servers(options.servers, notices::shown);
    server_set servers(choice.urls);
    const survey_terms terms{.origin = choice.origin,
                             .prefix = options.prefix,
                             .max_lease = options_with(options.max_lease).max_lease,
                             .servers = servers.size()};
    const examination result = examine(servers, terms);
    if (options.json) {
        std::cout << indented(to_json(result));
    } else {
        for (const examination::page& one : result.pages) print(one.title, one.findings);
        if (!result.together.empty()) print("together", result.together);
        print_sum(result.all());
    }
    return static_cast<int>(result.worst());
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
    const auto [command, options] = add_command<doctor_options>(
        app, "doctor", "look for what endangers locks on the servers", status, examine_servers);
    declare_max_lease(*command, options->max_lease);
    declare_json(*command, *options);
    declare_server(*command, *options);
    command->footer(
        "Exit status: 0 nothing found; 1 warnings; 2 dangers; 125 holdfast itself failed.\n"
        "Of several servers each is examined, and all of them together; of a Cluster every primary, and the Cluster\n"
        "as a whole. It changes nothing.");
}

}  // namespace holdfast::cli
