#include "cli/server/config_file.hpp"

#include "cli/server/server_choice.hpp"
#include "cli/terminal/system.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::string_view blanks = " \t\r";

class line_reader {
public:
    line_reader(std::string_view text, std::string where) : rest_(text), where_(std::move(where)) { skip_blanks(); }

    bool is_over() const { return rest_.empty() || rest_.front() == '#'; }
    void expect_end() const {
        if (!is_over()) refuse("something follows the value");
    }
    bool take(char wanted) {
        if (rest_.empty() || rest_.front() != wanted) return false;
        rest_.remove_prefix(1);
        skip_blanks();
        return true;
    }
    std::string key() {
        const std::size_t end = std::min(rest_.find_first_of(" \t=#"), rest_.size());
        std::string name(rest_.substr(0, end));
        rest_.remove_prefix(end);
        skip_blanks();
        if (!take('=')) refuse("a line is KEY = \"VALUE\"");
        return name;
    }
    // "basic" with \" and \\, or 'literal'.
    std::string value() {
        const char quote = rest_.empty() ? '\0' : rest_.front();
        if (quote != '"' && quote != '\'') refuse("a value stands in quotes");
        std::string result;
        for (std::size_t i = 1; i < rest_.size(); ++i) {
            if (rest_[i] == quote) {
                rest_.remove_prefix(i + 1);
                skip_blanks();
                return result;
            }
            if (quote == '"' && rest_[i] == '\\') {
                if (++i == rest_.size() || (rest_[i] != '"' && rest_[i] != '\\')) {
                    refuse("a \\ in quotes is written \\\\, or use '...'");
                }
            }
            result += rest_[i];
        }
        refuse("the quote has no end");
    }
    std::vector<std::string> values() {
        if (!take('[')) return {value()};
        std::vector<std::string> result;
        while (!take(']')) {
            result.push_back(value());
            if (!take(',') && (rest_.empty() || rest_.front() != ']')) refuse("a list is [\"A\", \"B\"], on one line");
        }
        return result;
    }
    // Not the line itself, which may have a password in it.
    [[noreturn]] void refuse(const std::string& why) const { throw trouble(where_ + ": " + why); }

private:
    void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size())); }

    std::string_view rest_;
    std::string where_;
};

void read_setting(line_reader& line, configuration& into) {
    const auto once = [&line](std::optional<std::string>& place, const std::string& key) {
        if (place) line.refuse(key + " is set twice");
        place = line.value();
    };
    const std::string key = line.key();
    if (key == "url") {
        if (!into.urls.empty()) line.refuse("url is set twice");
        into.urls = line.values();
        const auto is_blank = [](const std::string& url) { return url.find_first_not_of(blanks) == url.npos; };
        if (into.urls.empty() || std::ranges::any_of(into.urls, is_blank)) line.refuse("url names no server");
    } else if (key == "prefix") {
        once(into.prefix, key);
    } else if (key == "max-lease") {
        once(into.max_lease, key);
    } else {
        // A URL without its key is no name, and may have a password in it.
        const bool is_name =
            key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == key.npos;
        line.refuse(fmt::format("there is no {}; there are url, prefix and max-lease",
                                is_name ? fmt::format("setting '{}'", key) : "such setting"));
    }
    line.expect_end();
}

// Nothing where there is no such file.
std::optional<configuration> read(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        throw trouble(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    configuration found = parse_configuration(text, path);
    struct stat facts {};
    const bool is_open_to_others = ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_IRGRP | S_IROTH)) != 0;
    if (is_open_to_others && std::ranges::any_of(found.urls, has_password)) {
        throw trouble(fmt::format(
            "{} has a password in it, and others can read it: chmod 600, or use ?password_file=PATH in the URL", path));
    }
    return found;
}

configuration find_settings() {
    if (const std::string only = environment("HOLDFAST_CONFIG"); !only.empty()) {
        if (auto found = read(only)) return *found;
        throw trouble(fmt::format("HOLDFAST_CONFIG names {}, which does not exist", only));
    }
    std::string own = environment("XDG_CONFIG_HOME");
    if (own.empty() && !environment("HOME").empty()) own = environment("HOME") + "/.config";
    configuration result = read("/etc/holdfast.toml").value_or(configuration());
    if (own.empty()) return result;
    const configuration users = read(own + "/holdfast.toml").value_or(configuration());
    if (!users.urls.empty()) result.urls = users.urls;
    if (users.prefix) result.prefix = users.prefix;
    if (users.max_lease) result.max_lease = users.max_lease;
    return result;
}

}  // namespace

configuration parse_configuration(std::string_view text, const std::string& path) {
    configuration result;
    for (int number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        line_reader line(text.substr(0, end), fmt::format("{}:{}", path, number));
        if (!line.is_over()) read_setting(line, result);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result;
}

const configuration& settings() {
    static const configuration only = find_settings();
    return only;
}

}  // namespace holdfast::cli
