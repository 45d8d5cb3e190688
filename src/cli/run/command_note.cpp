#include "cli/run/command_note.hpp"

#include "cli/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

namespace holdfast::cli {
namespace {

constexpr std::size_t most_columns = 100;
constexpr std::string_view hidden = "***";
constexpr std::size_t shortest_key = 20;

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](unsigned char one) { return std::tolower(one); });
    return result;
}

bool speaks_of_secrets(std::string_view name) {
    constexpr std::array<std::string_view, 12> words{"pass", "pwd",    "secret", "token",   "key",  "cred",
                                                     "auth", "bearer", "cookie", "session", "sign", "pin"};
    const std::string text = lower(name);
    return std::ranges::any_of(words, [&](std::string_view one) { return text.find(one) != text.npos; });
}

bool may_be_in_a_name(char one) {
    return std::isalnum(static_cast<unsigned char>(one)) != 0 || one == '_' || one == '-' || one == '.';
}

// scheme://user:password@host becomes scheme://user:***@host.
void hide_url_password(std::string& word) {
    for (auto at = word.find("://"); at != word.npos; at = word.find("://", at + 3)) {
        const auto end = word.find_first_of("/?#'\" ", at + 3);
        const auto host = word.rfind('@', end);
        if (host == word.npos || host < at + 3) continue;
        const auto colon = word.find(':', at + 3);
        const auto from = colon < host ? colon + 1 : at + 3;  // a user alone may be a token
        word.replace(from, host - from, hidden);
    }
}

// name=value and name:value, anywhere in the word.
void hide_values(std::string& word) {
    for (std::size_t at = 0; (at = word.find_first_of("=:", at)) != word.npos; ++at) {
        std::size_t begin = at;
        while (begin > 0 && (may_be_in_a_name(word[begin - 1]) || word[begin - 1] == '"')) --begin;
        if (!speaks_of_secrets(std::string_view(word).substr(begin, at - begin))) continue;
        if (word.compare(at, 3, "://") == 0) continue;
        const auto end = word.find_first_of("&;,", at + 1);
        const auto length = end == word.npos ? end : end - at - 1;
        if (at + 1 < word.size()) word.replace(at + 1, length, hidden);
    }
}

bool looks_generated(std::string_view word) {
    if (word.size() < shortest_key) return false;
    const auto has = [word](auto&& test) { return std::any_of(word.begin(), word.end(), test); };
    const auto is_digit = [](unsigned char one) { return std::isdigit(one) != 0; };
    const auto is_letter = [](unsigned char one) { return std::isalpha(one) != 0; };
    const auto is_other = [](unsigned char one) {
        return std::isalnum(one) == 0 &&
               std::string_view("_-+=.~").find(static_cast<char>(one)) == std::string_view::npos;
    };
    return has(is_digit) && has(is_letter) && !has(is_other);
}

// In the middle of paths and the like, too.
void hide_generated(std::string& word) {
    constexpr std::string_view between = "/=:,;&?@'\"(){}[]<>|";
    for (std::size_t from = 0; from < word.size();) {
        const auto end = std::min(word.find_first_of(between, from), word.size());
        if (looks_generated(std::string_view(word).substr(from, end - from))) {
            word.replace(from, end - from, hidden);
            from += hidden.size() + 1;
        } else {
            from = end + 1;
        }
    }
}

class reader {
public:
    std::string text;

    void add(std::string word) {
        if (!text.empty()) text += ' ';
        const bool is_option = word.starts_with('-');
        const bool was_value = hides_next_ && !is_option;
        const bool was_user = user_next_;
        hides_next_ = user_next_ = false;
        if (was_value) {
            // "Authorization: Bearer X", "--header X Y": the value may have a first word that says what it is.
            hides_next_ = lower(word) == "bearer" || lower(word) == "basic" || lower(word) == "=" || word == ":";
            text += hides_next_ ? word : std::string(hidden);
            return;
        }
        const bool has_value = word.find('=') != word.npos;
        const bool ends_open = word.ends_with('=') || word.ends_with(':');
        if (is_option || ends_open || lower(word) == "bearer")
            hides_next_ = speaks_of_secrets(word) && (!has_value || ends_open);
        if (word == "-p") hides_next_ = true;
        user_next_ = word == "-u" || word == "--user" || word == "-U";
        if (word.size() > 2 && word.starts_with("-p")) word.replace(2, word.npos, hidden);
        if (const auto colon = word.find(':'); was_user && colon != word.npos)
            word.replace(colon + 1, word.npos, hidden);
        hide_url_password(word);
        hide_values(word);
        hide_generated(word);
        text += word;
    }

private:
    bool hides_next_ = false;
    bool user_next_ = false;
};

}  // namespace

std::string note_of_command(const std::vector<std::string>& words) {
    reader all;
    for (const std::string& word : words) {
        // Words within a word: of a shell command.
        for (std::size_t from = 0; from < word.size();) {
            const auto end = std::min(word.find_first_of(" \t\n\r", from), word.size());
            if (end > from) all.add(word.substr(from, end - from));
            from = end + 1;
        }
    }
    return clip(printable(all.text), most_columns);
}

}  // namespace holdfast::cli
