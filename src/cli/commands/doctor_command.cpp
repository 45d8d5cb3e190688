// holdfast doctor: what on this server endangers locks.
#include "cli/commands/view_options.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/terminal/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <sstream>

namespace holdfast::cli {
namespace {

// In the order of `severity`.
constexpr std::array words{"ok", "warning", "danger"};
constexpr std::array emphases{emphasis::good, emphasis::warning, emphasis::danger};

std::size_t index_of(const finding& one) {
    return static_cast<std::size_t>(one.how_bad);
}

std::size_t count(const std::vector<finding>& findings, severity how_bad) {
    return static_cast<std::size_t>(std::ranges::count(findings, how_bad, &finding::how_bad));
}

json to_json(const std::vector<finding>& findings) {
    json checks = json::array();
    for (const finding& one : findings) {
        checks.push_back({{"check", one.check},
                          {"severity", words[index_of(one)]},
                          {"finding", one.what},
                          {"meaning", one.meaning},
                          {"fix", one.fix}});
    }
    return {{"dangers", count(findings, severity::danger)},
            {"warnings", count(findings, severity::warning)},
            {"checks", std::move(checks)}};
}

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
        const std::string word = fmt::format("{:8}", words[index_of(one)]);
        std::cout << "  " << colours.paint(emphases[index_of(one)], word) << fmt::format("{:12}", one.check)
                  << printable(one.what) << "\n";
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

// A server that refuses the survey is a finding, too.
patient examine(const client& server, const survey_terms& terms) {
    patient one{server.server(), std::nullopt};
    try {
        one.survey.emplace(server, terms);
        one.findings = cli::examine(*one.survey);
    } catch (const error& why) {
        const auto told = cli::examine(why);
        if (!told) throw;
        one.findings = {*told};
    }
    return one;
}

patient without_answer(const std::string& server, severity how_bad, const std::string& why, const char* meaning) {
    return {server,
            std::nullopt,
            {{"answer", how_bad, why, meaning, "see whether it runs, and whether this machine may reach it"}}};
}

// Every primary; one that does not answer is a finding, as long as another one does.
std::vector<patient> examine_each(const member_list& primaries, const survey_terms& terms) {
    std::vector<patient> result;
    std::exception_ptr silent;
    for (const client* each : primaries) {
        try {
            result.push_back(examine(*each, terms));
        } catch (const error& why) {
            silent = std::current_exception();
            result.push_back(without_answer(each->server(), severity::danger, why.what(),
                                            "Its locks can be neither acquired nor renewed."));
        }
    }
    if (silent && std::ranges::none_of(result, &patient::answers)) std::rethrow_exception(silent);
    return result;
}

surveyed_node examine(server_set& servers, std::size_t which, survey_terms terms) {
    surveyed_node one{servers[which].server(), {}};
    if (!is_cluster(servers[which])) {
        one.patients = {examine(servers[which], terms)};
        return one;
    }
    terms.kind = server_kind::member;
    one.patients = examine_each(servers.members(which), terms);
    if (one.answers()) one.as_a_whole = examine_cluster(one.patients);
    return one;
}

std::vector<surveyed_node> examine(server_set& servers, const survey_terms& terms) {
    std::vector<surveyed_node> result;
    auto surveyed = servers.ask_by_number([&](std::size_t i) { return examine(servers, i, terms); });
    auto silent = servers.silent().begin();
    for (auto& one : surveyed) {
        if (!one) {
            one = surveyed_node{silent->server,
                                {without_answer(silent->server, severity::warning, silent->why,
                                                "It grants no locks; the others go on without it.")}};
            ++silent;
        }
        result.push_back(std::move(*one));
    }
    return result;
}

// A page of the report: a server, a Cluster as a whole, or all together.
struct page {
    std::string title;
    const std::vector<finding>* findings;
};

std::vector<page> pages_of(const std::vector<surveyed_node>& nodes) {
    std::vector<page> pages;
    for (const surveyed_node& one : nodes) {
        for (const patient& each : one.patients) pages.push_back({each.server, &each.findings});
        if (!one.as_a_whole.empty()) pages.push_back({one.server, &one.as_a_whole});
    }
    return pages;
}

void print_json(const std::vector<page>& pages, const std::vector<finding>& together) {
    json rows = json::array();
    for (const page& one : pages) {
        json row{{"server", one.title}};
        row.update(to_json(*one.findings));
        rows.push_back(std::move(row));
    }
    std::cout << indented({{"servers", std::move(rows)}, {"together", together.empty() ? json() : to_json(together)}});
}

int examine_servers(const doctor_options& options) {
    const server_choice choice = choose_servers(options.servers, notices::shown);
    server_set servers(choice.urls);
    const survey_terms terms{.origin = choice.origin,
                             .prefix = options.prefix,
                             .max_lease = options_with(options.max_lease).max_lease,
                             .servers = servers.size()};
    const std::vector<surveyed_node> nodes = examine(servers, terms);
    std::vector<finding> together;
    if (nodes.size() > 1 && std::ranges::any_of(nodes, &surveyed_node::answers)) {
        together = examine_together(nodes, terms.max_lease);
    }
    const std::vector<page> pages = pages_of(nodes);
    std::vector<finding> all = together;
    for (const page& one : pages) all.insert(all.end(), one.findings->begin(), one.findings->end());
    if (options.json) {
        print_json(pages, together);
    } else {
        for (const page& one : pages) print(one.title, *one.findings);
        if (!together.empty()) print("together", together);
        print_sum(all);
    }
    return static_cast<int>(std::ranges::max(all, {}, &finding::how_bad).how_bad);
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
