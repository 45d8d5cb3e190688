#include "cli/doctor/server_survey.hpp"

#include "cli/terminal/text.hpp"

#include <algorithm>

namespace holdfast::cli {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr int clock_readings = 9;
constexpr int latency_readings = 200;
constexpr int pages_of_keys = 10;
constexpr const char* keys_in_a_page = "1000";
// What a mark takes besides its name: value, entry, expiry, its entries in the server's tables. Measured with
// Redis 7.0.
constexpr std::size_t bytes_of_a_mark = 110;

std::optional<std::int64_t> number(const std::optional<std::string>& text) {
    return text ? whole_number(*text) : std::nullopt;
}

std::string text_or_nothing(const client& server, const request& what) {
    answer told = ask_all(server, {what}).front();
    return told.is_error ? std::string() : std::move(told.text);
}

}  // namespace

server_survey::server_survey(const client& server, survey_terms which)
    : terms(std::move(which)), info_(text_or_nothing(server, {{"INFO"}})) {
    if (terms.kind == server_kind::member) cluster_info_ = "\n" + text_or_nothing(server, {{"CLUSTER", "INFO"}});
    product = read_product(info_);
    lacks_resp3 = ask_all(server, {{{"HELLO"}}}).front().is_error;
    script_refusal = ask_all(server, {{{"EVALSHA", std::string(40, '0'), "0"}}}).front().text;
    ask_settings(server);
    ask_time(server);
    ask_latency(server);
    estimate_marks(server);
    rights = probe_rights(server, terms);
}

std::optional<std::int64_t> server_survey::info_number(std::string_view field) const {
    return number(info(field));
}

std::optional<std::string> server_survey::setting(std::string_view name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> server_survey::setting_number(std::string_view name) const {
    return number(setting(name));
}

void server_survey::ask_settings(const client& server) {
    std::vector<request> requests;
    for (const char* name :
         {"save", "appendonly", "appendfsync", "maxmemory-policy", "maxclients", "timeout", "min-replicas-to-write",
          "client-output-buffer-limit", "cluster-node-timeout", "cluster-require-full-coverage", "default_lua_flags"}) {
        requests.push_back({{"CONFIG", "GET", name}});
    }
    for (const answer& told : ask_all(server, requests)) {
        if (!told.is_error && told.items.size() == 2) settings_[told.items[0].text] = told.items[1].text;
    }
}

// The reading with the shortest round trip knows best; it is wrong by at most half of that.
void server_survey::ask_time(const client& server) {
    skew_error = microseconds::max();
    for (int i = 0; i < clock_readings; ++i) {
        const auto sent = system_clock::now();
        const answer time = ask(server, {"TIME"});
        const auto received = system_clock::now();
        const auto half = duration_cast<microseconds>(received - sent) / 2;
        if (time.items.size() != 2 || half >= skew_error) continue;
        const microseconds theirs(time.items[0].integer.value_or(0) * 1'000'000 + time.items[1].integer.value_or(0));
        skew = theirs - duration_cast<microseconds>(sent.time_since_epoch()) - half;
        skew_error = half;
    }
}

// Bounded: SCAN goes through the keys in an order that has nothing to do with their names, so its first pages are a
// sample like any other.
void server_survey::estimate_marks(const client& server) {
    const answer size = ask_all(server, {{{"DBSIZE"}}}).front();
    if (size.is_error) return;
    mark_estimate found{.keys = size.integer.value_or(0)};
    std::string cursor = "0";
    for (int page = 0; page < pages_of_keys; ++page) {
        const answer told = ask_all(server, {{{"SCAN", cursor, "COUNT", keys_in_a_page}}}).front();
        if (told.is_error || told.items.size() != 2) return;
        for (const answer& key : told.items[1].items) {
            ++found.sampled;
            if (wire::side_of(key.text) != wire::lock_keys::side::fence) continue;
            ++found.marks;
            found.bytes += static_cast<std::int64_t>(key.text.size() + bytes_of_a_mark);
        }
        cursor = told.items[0].text;
        if (cursor == "0") break;
    }
    if (cursor != "0" && found.sampled > 0) {
        const double share = static_cast<double>(found.keys) / static_cast<double>(found.sampled);
        found.marks = static_cast<std::int64_t>(static_cast<double>(found.marks) * share);
        found.bytes = static_cast<std::int64_t>(static_cast<double>(found.bytes) * share);
    }
    marks = found;
}

void server_survey::ask_latency(const client& server) {
    for (int i = 0; i < latency_readings; ++i) {
        const auto sent = steady_clock::now();
        ask(server, {"PING"});
        round_trips.push_back(duration_cast<microseconds>(steady_clock::now() - sent));
    }
    std::ranges::sort(round_trips);
}

}  // namespace holdfast::cli
