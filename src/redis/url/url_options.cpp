// One table says which options exist, where they are allowed and what each does. They are applied in the order of the
// table, not of the URL. So `connect_timeout` overrides `timeout`, whatever their order in the URL.
#include "redis/url/url_options.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "redis/resp/characters.hpp"
#include "redis/url/duration.hpp"

namespace holdfast::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds longest_timeout = 1h;
constexpr std::size_t longest_password = 64 * 1024;

struct option {
    const examined_url& url;
    std::string_view name;
    std::string_view raw;
    std::string value;

    [[noreturn]] void refuse(const std::string& why) const {
        url.refuse("the option " + std::string(name) + "=" + url.quote(raw) + " " + why);
    }
};

std::chrono::milliseconds duration_of(const option& given) {
    const auto duration = parse_duration(given.value);
    if (!duration && parse_number(given.value, std::numeric_limits<std::uint32_t>::max())) {
        given.refuse("needs a unit: write " + given.value + "ms or " + given.value + "s");
    }
    if (!duration) given.refuse("is not a duration: write a number and one of ms, s, m, h, as in 500ms or 1.5s");
    if (*duration <= 0ms || *duration > longest_timeout) given.refuse("is out of range: more than 0, at most 1h");
    return *duration;
}

template <std::chrono::milliseconds server_settings::*member>
void set_duration(server_settings& settings, const option& given) {
    settings.*member = duration_of(given);
}

void set_timeout(server_settings& settings, const option& given) {
    settings.connect_timeout = settings.request_timeout = duration_of(given);
}

void set_database(server_settings& settings, const option& given) {
    const auto number = parse_number(given.value, std::numeric_limits<std::int32_t>::max());
    if (!number) given.refuse("is not a database: it is a number from 0 on");
    settings.database = *number;
}

// The rule of CLIENT SETNAME.
void set_client_name(server_settings& settings, const option& given) {
    const bool plain = std::ranges::all_of(given.value, [](char c) { return c >= '!' && c <= '~'; });
    if (!plain) given.refuse("cannot be used: Redis allows printable ASCII without spaces");
    settings.client_name = given.value;
}

void set_resp(server_settings& settings, const option& given) {
    if (given.value != "2" && given.value != "3") given.refuse("is neither 2 nor 3");
    settings.resp = given.value == "2" ? resp_choice::resp2 : resp_choice::resp3;
}

void set_wake(server_settings& settings, const option& given) {
    if (given.value != "push" && given.value != "poll") given.refuse("is neither push nor poll");
    settings.wake = given.value == "push" ? wake_choice::push : wake_choice::poll;
}

void set_user(server_access& access, const option& given) {
    if (!access.user.empty()) given.refuse("is given twice: the URL names a user in front of the '@' too");
    require_printable(given.url, "the option " + std::string(given.name), given.value);
    access.user = given.value;
}

bool truth_of(const option& given) {
    if (given.value != "true" && given.value != "false") given.refuse("is neither true nor false");
    return given.value == "true";
}

void set_verify(server_access& access, const option& given) {
    access.tls.verify = truth_of(given);
}

template <std::string tls_settings::*member>
void set_tls_text(server_access& access, const option& given) {
    require_printable(given.url, "the option " + std::string(given.name), given.value);
    access.tls.*member = given.value;
}

void require_only_password(const server_access& access, const option& given) {
    if (!access.password.empty()) given.refuse("comes on top of another password: give one of them only");
}

void read_password_file(server_access& access, const option& given) {
    require_only_password(access, given);
    require_printable(given.url, "the option " + std::string(given.name), given.value);
    auto read = read_password(given.value);
    if (const auto* const why = std::get_if<failure>(&read)) given.refuse(why->detail);
    access.password = std::get<secret>(std::move(read));
    // A pipe or a terminal gives its text only once.
    std::error_code unknown;
    if (std::filesystem::is_regular_file(given.value, unknown)) access.password_file = given.value;
}

void read_password_variable(server_access& access, const option& given) {
    require_only_password(access, given);
    require_printable(given.url, "the option " + std::string(given.name), given.value);
    const char* const text = std::getenv(given.value.c_str());
    if (text == nullptr) given.refuse("names an environment variable that is not set");
    if (*text == '\0') given.refuse("names an environment variable that is empty");
    access.password = secret(text);
}

void set_sentinel_tls(server_settings& settings, const option& given) {
    settings.sentinels->kind = truth_of(given) ? transport::tls : transport::tcp;
}

// Whose credentials an option sets: of the server that stores the locks, or of its sentinels.
using access_setter = void (*)(server_access&, const option&);

template <access_setter set>
void server(server_settings& settings, const option& given) {
    set(settings, given);
}
template <access_setter set>
void sentinel(server_settings& settings, const option& given) {
    set(*settings.sentinels, given);
}

enum class scope { everywhere, tls_only, sentinels_only, sentinels_with_tls_only };

struct rule {
    std::string_view name;
    scope where;
    void (*apply)(server_settings&, const option&);

    bool is_for_sentinels() const noexcept {
        return where == scope::sentinels_only || where == scope::sentinels_with_tls_only;
    }
};

using tls = tls_settings;

constexpr std::array rules{
    rule{"timeout", scope::everywhere, set_timeout},
    rule{"connect_timeout", scope::everywhere, set_duration<&server_settings::connect_timeout>},
    rule{"request_timeout", scope::everywhere, set_duration<&server_settings::request_timeout>},
    rule{"health_interval", scope::everywhere, set_duration<&server_settings::health_interval>},
    rule{"backoff_min", scope::everywhere, set_duration<&server_settings::backoff_min>},
    rule{"backoff_max", scope::everywhere, set_duration<&server_settings::backoff_max>},
    rule{"db", scope::everywhere, set_database},
    rule{"client_name", scope::everywhere, set_client_name},
    rule{"resp", scope::everywhere, set_resp},
    rule{"wake", scope::everywhere, set_wake},
    rule{"user", scope::everywhere, server<set_user>},
    rule{"password_file", scope::everywhere, server<read_password_file>},
    rule{"password_env", scope::everywhere, server<read_password_variable>},
    rule{"verify", scope::tls_only, server<set_verify>},
    rule{"ca_file", scope::tls_only, server<set_tls_text<&tls::ca_file>>},
    rule{"ca_dir", scope::tls_only, server<set_tls_text<&tls::ca_directory>>},
    rule{"cert", scope::tls_only, server<set_tls_text<&tls::certificate_file>>},
    rule{"key", scope::tls_only, server<set_tls_text<&tls::key_file>>},
    rule{"server_name", scope::tls_only, server<set_tls_text<&tls::server_name>>},
    rule{"sentinel_user", scope::sentinels_only, sentinel<set_user>},
    rule{"sentinel_password_file", scope::sentinels_only, sentinel<read_password_file>},
    rule{"sentinel_password_env", scope::sentinels_only, sentinel<read_password_variable>},
    rule{"sentinel_tls", scope::sentinels_only, set_sentinel_tls},
    rule{"sentinel_verify", scope::sentinels_with_tls_only, sentinel<set_verify>},
    rule{"sentinel_ca_file", scope::sentinels_with_tls_only, sentinel<set_tls_text<&tls::ca_file>>},
    rule{"sentinel_ca_dir", scope::sentinels_with_tls_only, sentinel<set_tls_text<&tls::ca_directory>>},
    rule{"sentinel_cert", scope::sentinels_with_tls_only, sentinel<set_tls_text<&tls::certificate_file>>},
    rule{"sentinel_key", scope::sentinels_with_tls_only, sentinel<set_tls_text<&tls::key_file>>},
    rule{"sentinel_server_name", scope::sentinels_with_tls_only, sentinel<set_tls_text<&tls::server_name>>},
};

// Why the option is not allowed in this URL; empty if it is.
std::string_view why_misplaced(const rule& which, const server_settings& settings) {
    if (which.where == scope::tls_only && settings.kind != transport::tls) {
        return " is for TLS: it needs a rediss:// URL";
    }
    if (!which.is_for_sentinels()) return {};
    if (!settings.sentinels) return " is for sentinels: it needs a redis+sentinel:// URL";
    if (which.where == scope::sentinels_with_tls_only && settings.sentinels->kind != transport::tls) {
        return " is for TLS to the sentinels: it needs sentinel_tls=true or a rediss+sentinel:// URL";
    }
    return {};
}

// By default sentinels use TLS like their primary, and trust the same certificates. User and password are never passed
// to them.
void inherit_tls(server_settings& settings) {
    sentinel_settings& sentinels = *settings.sentinels;
    sentinels.kind = settings.kind;
    sentinels.tls = settings.tls;
    sentinels.tls.server_name.clear();
}

std::string known_names() {
    std::string names;
    for (const rule& each : rules) names.append(names.empty() ? "" : ", ").append(each.name);
    return names;
}

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view given, const rule& known) {
    std::vector<std::size_t> row(known.name.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < given.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < known.name.size(); ++j) {
            const std::size_t replaced = diagonal + (given[i] == known.name[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

// " (did you mean db?)", or empty if no name is similar.
std::string suggestion(std::string_view given) {
    if (given.size() > 40) return {};  // similar to no name, and the distance takes quadratic time
    const auto distance = [&](const rule& known) { return edit_distance(given, known); };
    const auto nearest = std::ranges::min_element(rules, {}, distance);
    if (distance(*nearest) > std::max<std::size_t>(1, nearest->name.size() / 3)) return {};
    return " (did you mean " + std::string(nearest->name) + "?)";
}

}  // namespace

std::variant<secret, failure> read_password(const std::string& file) {
    const auto refused = [](const char* why) { return failure{errc::no_credentials, why}; };
    std::ifstream stream(file, std::ios::binary);
    if (!stream) return refused("names a file that cannot be opened: check the path and its permissions");
    std::string line(longest_password + 1, '\0');  // bounded: the file may be an endless device
    stream.getline(line.data(), static_cast<std::streamsize>(line.size()));
    // A last line without newline: gcount() does not include one.
    const auto read = static_cast<std::size_t>(stream.gcount());
    const bool ended = !stream.fail();
    const std::size_t size = read - (ended && !stream.eof() && read != 0 ? 1 : 0);
    secret password(std::string(line, 0, size != 0 && line[size - 1] == '\r' ? size - 1 : size));
    wipe(line);
    if (size > 0 && !ended) return refused("names a file whose first line is too long for a password (64 KiB)");
    if (password.empty()) return refused("names a file whose first line is empty: it should be the password");
    return password;
}

bool is_known_option(std::string_view name) noexcept {
    return std::ranges::find(rules, name, &rule::name) != rules.end();
}

void require_printable(const examined_url& url, std::string_view what, std::string_view value) {
    if (std::ranges::any_of(value, is_control)) url.refuse(std::string(what) + " has a control character in it");
}

url_options::url_options(const examined_url& url, std::string_view query) : url_(url) {
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        add(query.substr(0, end));
        query.remove_prefix(end == query.npos ? query.size() : end + 1);
    }
}

void url_options::add(std::string_view item) {
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    if (!is_known_option(name)) {
        url_.refuse("unknown option " + url_.quote(name) + suggestion(name) + "; there are " + known_names());
    }
    if (equals == item.npos || equals + 1 == item.size()) {
        url_.refuse("the option " + std::string(name) + " has no value; write " + std::string(name) + "=...");
    }
    if (!given_.emplace(name, item.substr(equals + 1)).second) {
        url_.refuse("the option " + std::string(name) + " is given twice");
    }
}

void url_options::apply(server_settings& settings) const {
    apply(settings, whom::server);
    if (settings.sentinels) inherit_tls(settings);
    apply(settings, whom::sentinels);
    if (settings.backoff_min > settings.backoff_max) {
        url_.refuse("backoff_min (" + format_duration(settings.backoff_min) + ") is more than backoff_max (" +
                    format_duration(settings.backoff_max) + ")");
    }
    for (const char* whose : {"", "sentinel_"}) require_whole_certificate(whose);
}

// Also where sentinels would inherit one of the two: a certificate needs its own key.
void url_options::require_whole_certificate(const std::string& whose) const {
    const std::string certificate = whose + "cert";
    const std::string key = whose + "key";
    if (given_.contains(certificate) == given_.contains(key)) return;
    url_.refuse(certificate + " and " + key +
                " go together: a certificate is of no use without its key, nor a key without it");
}

void url_options::apply(server_settings& settings, whom for_whom) const {
    for (const rule& each : rules) {
        const auto found = given_.find(each.name);
        if (found == given_.end() || each.is_for_sentinels() != (for_whom == whom::sentinels)) continue;
        const std::string what = "the option " + std::string(each.name);
        if (const auto why = why_misplaced(each, settings); !why.empty()) url_.refuse(what + std::string(why));
        each.apply(settings, {url_, each.name, found->second, url_.decode(what, found->second)});
    }
}

}  // namespace holdfast::redis
