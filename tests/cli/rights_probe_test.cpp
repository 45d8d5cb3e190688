// The doctor's probe tries exactly the commands that the library sends.
#include "cli/doctor/server_survey.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

namespace holdfast::cli::rights_probe_test {
namespace {

// Every command that the sources of the library write, as the list of words that begins with it: {"CLIENT", "KILL", ...
std::set<std::string> sent_commands() {
    const std::regex list{R"re(\{"([A-Z]{3,})"(?:, "([A-Z]+)")?)re"};
    std::set<std::string> commands;
    for (const char* const layer : {"redis", "wire", "engine", "api"}) {
        const std::filesystem::path folder = std::filesystem::path(HOLDFAST_SOURCES) / layer;
        for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
            if (file.path().extension() != ".cpp" || file.path().filename() == "error_reply.cpp") continue;
            std::ifstream in(file.path());
            const std::string text{std::istreambuf_iterator<char>(in), {}};
            for (std::sregex_iterator at(text.begin(), text.end(), list), end; at != end; ++at) {
                const bool has_subcommand = (*at)[1] == "CLIENT" || (*at)[1] == "CLUSTER";
                commands.insert(has_subcommand ? (*at)[1].str() + " " + (*at)[2].str() : (*at)[1].str());
            }
        }
    }
    return commands;
}

TEST(RightsProbe, TriesWhatTheLibrarySends) {
    std::set<std::string> probed = probed_commands(server_kind::alone);
    probed.merge(probed_commands(server_kind::member));
    std::set<std::string> sent = sent_commands();
    // A link that exists has sent the greeting: HELLO with AUTH and SETNAME, or these alone, SELECT. SENTINEL goes to
    // another server.
    for (const char* const other : {"HELLO", "AUTH", "SETNAME", "CLIENT SETNAME", "SELECT", "SENTINEL"}) {
        EXPECT_EQ(sent.erase(other), 1U) << other;
    }
    // The probe finds these in the scripts.
    for (const char* const other : {"GET", "ZCARD"}) EXPECT_EQ(sent.erase(other), 1U) << other;
    // Only scripts send these, but the probe needs a channel for them. ASKING is written as bytes.
    for (const char* const other : {"SPUBLISH", "PUBSUB NUMSUB", "PUBSUB SHARDNUMSUB", "ASKING"}) {
        EXPECT_EQ(probed.erase(other), 1U) << other;
    }
    EXPECT_EQ(probed, sent);
}

}  // namespace
}  // namespace holdfast::cli::rights_probe_test
