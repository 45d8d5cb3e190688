#include "cli/doctor/examination.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace holdfast::cli {
namespace {

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

std::vector<surveyed_node> examine_nodes(server_set& servers, const survey_terms& terms) {
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

std::vector<examination::page> pages_of(const std::vector<surveyed_node>& nodes) {
    std::vector<examination::page> pages;
    for (const surveyed_node& one : nodes) {
        for (const patient& each : one.patients) pages.push_back({each.server, each.findings});
        if (!one.as_a_whole.empty()) pages.push_back({one.server, one.as_a_whole});
    }
    return pages;
}

json to_json(const std::vector<finding>& findings) {
    json checks = json::array();
    for (const finding& one : findings) {
        checks.push_back({{"check", one.check},
                          {"severity", name_of(one.how_bad)},
                          {"finding", one.what},
                          {"meaning", one.meaning},
                          {"fix", one.fix}});
    }
    return {{"dangers", count(findings, severity::danger)},
            {"warnings", count(findings, severity::warning)},
            {"checks", std::move(checks)}};
}

}  // namespace

std::vector<finding> examination::all() const {
    std::vector<finding> found = together;
    for (const page& one : pages) found.insert(found.end(), one.findings.begin(), one.findings.end());
    return found;
}

severity examination::worst() const {
    return std::ranges::max(all(), {}, &finding::how_bad).how_bad;
}

examination examine(server_set& servers, const survey_terms& terms) {
    const std::vector<surveyed_node> nodes = examine_nodes(servers, terms);
    examination result{pages_of(nodes), {}};
    if (nodes.size() > 1 && std::ranges::any_of(nodes, &surveyed_node::answers)) {
        result.together = examine_together(nodes, terms.max_lease);
    }
    return result;
}

std::size_t count(const std::vector<finding>& findings, severity how_bad) {
    return static_cast<std::size_t>(std::ranges::count(findings, how_bad, &finding::how_bad));
}

const char* name_of(severity how_bad) noexcept {
    constexpr std::array names{"ok", "warning", "danger"};
    return names[static_cast<std::size_t>(how_bad)];
}

json to_json(const examination& result) {
    json rows = json::array();
    for (const examination::page& one : result.pages) {
        json row{{"server", one.title}};
        row.update(to_json(one.findings));
        rows.push_back(std::move(row));
    }
    return {{"servers", std::move(rows)}, {"together", result.together.empty() ? json() : to_json(result.together)}};
}

}  // namespace holdfast::cli
