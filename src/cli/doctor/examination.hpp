// The doctor at work: surveys every server, each primary of a Cluster too, and draws all conclusions.
#pragma once

#include "cli/doctor/doctor.hpp"
#include "cli/inspect/output/json_form.hpp"
#include "cli/inspect/servers/server_set.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

struct examination {
    // Of a server, or of a Cluster as a whole.
    struct page {
        std::string title;
        std::vector<finding> findings;
    };

    std::vector<finding> all() const;
    severity worst() const;

    std::vector<page> pages;
    std::vector<finding> together;  // of several servers as a whole; empty if there is one
};

// A server that does not answer, or refuses, is a finding. Throws holdfast::error if none answers.
examination examine(server_set& servers, const survey_terms& terms);

std::size_t count(const std::vector<finding>& findings, severity how_bad);
// "ok", "warning", "danger".
const char* name_of(severity how_bad) noexcept;

json to_json(const examination& result);

}  // namespace holdfast::cli
