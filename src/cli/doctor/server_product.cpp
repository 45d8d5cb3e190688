#include "cli/doctor/server_product.hpp"

#include "cli/inspect/servers/ask.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace holdfast::cli {
namespace {

struct mark {
    std::string_view field;  // of INFO; its value is the version
    std::string_view name;
    experience known = experience::untested;
};

// Kvrocks told redis_version 4.0.0 before it told 7.0.0 (apache/kvrocks pull request 3286). A client refuses the
// former.
constexpr std::array marks{
    mark{"dragonfly_version", "Dragonfly"}, mark{"kvrocks_version", "Kvrocks"},
    mark{"upstash_version", "Upstash"},     mark{"rlec_version", "Redis Enterprise"},
    mark{"redict_version", "Redict"},       mark{"valkey_version", "Valkey", experience::alike},
};

// Products without a version of their own.
bool is_keydb(std::string_view info) {
    return info_field(info, "mvcc_depth") ||
           info_field(info, "executable").value_or("").find("keydb") != std::string::npos;
}

// The releases that `./dev test --server` runs on.
constexpr std::array tested{"Redis 7.0.", "Redis 8.0.", "Valkey 8.1."};

std::string service_of(std::string_view info) {
    const std::string system = info_field(info, "os").value_or("");
    return system.starts_with("Amazon ") ? " at " + system : std::string();
}

server_product known_by_its_marks(std::string_view info) {
    for (const mark& each : marks) {
        if (auto version = info_field(info, each.field)) {
            return {std::string(each.name), std::move(*version), each.known, {}};
        }
    }
    const std::string version = info_field(info, "redis_version").value_or("");
    if (version.empty()) return {};
    if (is_keydb(info)) {
        return {"KeyDB", version, experience::untested,
                "With active-replica two servers accept writes, and both grant the same lock."};
    }
    return {"Redis", version, experience::alike, {}};
}

}  // namespace

server_product read_product(std::string_view info) {
    server_product found = known_by_its_marks(info);
    const std::string release = found.name + " " + found.version;
    const bool is_tested = std::ranges::any_of(tested, [&](const char* each) { return release.starts_with(each); });
    if (found.known == experience::alike && is_tested) found.known = experience::tested;
    const std::string service = found.name.empty() ? std::string() : service_of(info);
    if (!service.empty()) {
        found.name += service;
        found.known = experience::untested;
    }
    return found;
}

}  // namespace holdfast::cli
