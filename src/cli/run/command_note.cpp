#include "cli/run/command_note.hpp"

#include "cli/terminal/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::size_t most_columns = 100;
constexpr std::string_view hidden = "***";
constexpr std::string_view between_words = " \t\n\r";
constexpr std::size_t shortest_key = 20;
constexpr std::size_t shortest_base64 = 30;

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

// Where the value ends that begins at `from`, behind `separator`.
std::size_t end_of_value(std::string_view word, char separator, std::size_t from) {
    const auto first = word.find_first_not_of(' ', from);
    if (first == word.npos) return word.size();
    if (word[first] == '"' || word[first] == '\'') {
        const auto closing = word.find(word[first], first + 1);
        return closing == word.npos ? word.size() : closing + 1;
    }
    if (separator == ':' && first > from) return word.size();  // a header: what its value may have is not known
    return std::min(word.find_first_of("&;,", from), word.size());
}

// name=value and name:value, anywhere in the word.
void hide_values(std::string& word) {
    for (std::size_t at = 0; (at = word.find_first_of("=:", at)) != word.npos; ++at) {
        std::size_t begin = at;
        while (begin > 0 && (may_be_in_a_name(word[begin - 1]) || word[begin - 1] == '"')) --begin;
        if (!speaks_of_secrets(std::string_view(word).substr(begin, at - begin))) continue;
        if (word.compare(at, 3, "://") == 0) continue;
        const auto end = end_of_value(word, word[at], at + 1);
        if (at + 1 < word.size()) word.replace(at + 1, end - at - 1, hidden);
    }
}

// user:password and user%password; a user alone is left.
void hide_user_password(std::string& word, std::size_t from) {
    const auto colon = word.find_first_of(":%", from);
    if (colon != word.npos) word.replace(colon + 1, word.npos, hidden);
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

// A key in base64, where a '/' may stand: letters and digits change more often than in a path.
bool looks_like_base64(std::string_view word) {
    if (word.size() < shortest_base64) return false;
    std::size_t changes = 0;
    for (std::size_t i = 0; i < word.size(); ++i) {
        const auto one = static_cast<unsigned char>(word[i]);
        if (std::isalnum(one) == 0 && one != '/' && one != '+') return false;
        const auto next = static_cast<unsigned char>(i + 1 < word.size() ? word[i + 1] : '/');
        if (std::isalnum(one) == 0 || std::isalnum(next) == 0) continue;
        if (std::isdigit(one) != std::isdigit(next) || (std::islower(one) != 0 && std::isupper(next) != 0)) ++changes;
    }
    return changes * 5 >= word.size();
}

void hide_pieces(std::string& word, std::string_view between, bool (*is_secret)(std::string_view)) {
    for (std::size_t from = 0; from < word.size();) {
        const auto end = std::min(word.find_first_of(between, from), word.size());
        if (is_secret(std::string_view(word).substr(from, end - from))) {
            word.replace(from, end - from, hidden);
            from += hidden.size() + 1;
        } else {
            from = end + 1;
        }
    }
}

// In the middle of paths and the like, too.
void hide_generated(std::string& word) {
    hide_pieces(word, "=:,;&?@'\"(){}[]<>|", looks_like_base64);
    hide_pieces(word, "/=:,;&?@'\"(){}[]<>|", looks_generated);
}

// Programs with an option that says nothing of the secret behind it. Empty: the word names none of them.
std::string_view secret_option_of(std::string_view program) {
    program.remove_prefix(program.rfind('/') + 1);
    if (program.ends_with("-cli") || program == "http" || program == "https") return "-a";
    if (program == "curl") return "-b";
    if (program == "openssl") return "-k";
    if (program.starts_with("ldap")) return "-w";
    return {};
}

// aws_secret_access_key, user.password: a setting, whose value is the next word.
bool is_secret_setting(std::string_view word) {
    constexpr std::array<std::string_view, 8> ends{"key",   "password", "passwd", "requirepass",
                                                   "token", "secret",   "auth",   "masterauth"};
    if (!std::ranges::all_of(word, may_be_in_a_name)) return false;
    const std::string name = lower(word);
    const auto last = name.find_last_of("_-.");
    const std::string_view end = std::string_view(name).substr(last == name.npos ? 0 : last + 1);
    if (last == name.npos) return end == "password" || end == "requirepass" || end == "masterauth";
    return std::ranges::find(ends, end) != ends.end();
}

bool has_blank(std::string_view word) {
    return word.find_first_of(between_words) != word.npos;
}

bool is_quoted(std::string_view word) {
    return word.size() > 1 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front();
}

// The end of the word at `from`, as a shell has it: between_words within quotes belong to it. A quote alone is a
// letter.
std::size_t end_of_word(std::string_view text, std::size_t from) {
    for (std::size_t at = from; at < text.size(); ++at) {
        if (between_words.find(text[at]) != between_words.npos) return at;
        if (text[at] != '"' && text[at] != '\'') continue;
        const auto closing = text.find(text[at], at + 1);
        if (closing != text.npos) at = closing;
    }
    return text.size();
}

// Behind "-u", "-su", "--proxy-user" a program expects USER:PASSWORD.
bool names_user(std::string_view word) {
    if (word.starts_with("--")) return word.ends_with("user");
    if (!word.starts_with('-') || !(word.ends_with('u') || word.ends_with('U'))) return false;
    return std::ranges::all_of(word.substr(1), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

class reader {
public:
    std::string text;

    // A word of the command line, or within such a word.
    void add(std::string word) {
        if (takes_value(word)) return add_text(std::string(hidden));
        const bool is_script = std::exchange(script_next_, false);
        if (!has_blank(word)) return add_plain(std::move(word));
        if (!is_script) hide_values(word);
        add_words_of(word);
    }

    // The words of a shell command.
    void add_words_of(std::string_view script) {
        for (std::size_t from = 0; from < script.size();) {
            const auto end = end_of_word(script, from);
            const std::string word(script.substr(from, end - from));
            if (is_quoted(word) && has_blank(word)) {
                add_quoted(word);
            } else if (has_blank(word)) {
                add_mixed(word);
            } else if (!word.empty()) {
                add(word);
            }
            from = end + 1;
        }
    }

private:
    void add_text(const std::string& word) {
        if (!text.empty() && !was_opened_) text += ' ';
        was_opened_ = false;
        text += word;
    }

    void add_quoted(const std::string& word) {
        if (takes_value(word)) return add_text(std::string(hidden));
        add_text(word.substr(0, 1));
        was_opened_ = true;
        add(word.substr(1, word.size() - 2));
        was_opened_ = false;
        text += word.back();
    }

    // a='b c'
    void add_mixed(std::string word) {
        if (takes_value(word)) return add_text(std::string(hidden));
        hide_values(word);
        for (std::size_t from = 0; from < word.size();) {
            const auto end = std::min(word.find_first_of(between_words, from), word.size());
            if (end > from) add(word.substr(from, end - from));
            from = end + 1;
        }
    }

    // Whether the word is the value of what was before it.
    bool takes_value(const std::string& word) {
        if (!hides_next_ || word.starts_with('-')) return false;
        // "Authorization: Bearer X", "--header X Y": the value may have a first word that says what it is.
        const std::string small = lower(word);
        if (small == "bearer" || small == "basic" || small == "=" || small == ":") return false;
        hides_next_ = user_next_ = false;
        return true;
    }

    void add_plain(std::string word) {
        const bool was_secret = hides_next_ && !word.starts_with('-');
        const bool was_user = user_next_;
        hides_next_ = was_secret || names_secret(word);
        user_next_ = names_user(word);
        script_next_ = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        if (const auto option = secret_option_of(word); !option.empty()) secret_option_ = option;
        if (word.size() > 2 && word.starts_with("-p")) word.replace(2, word.npos, hidden);
        if (was_user || word.starts_with("-u") || word.starts_with("-U")) hide_user_password(word, 0);
        if (const auto at = word.find("user="); word.starts_with("--") && at != word.npos) hide_user_password(word, at);
        hide_url_password(word);
        hide_values(word);
        hide_generated(word);
        add_text(word);
    }

    // Whether the next word is a secret.
    bool names_secret(const std::string& word) const {
        if (word == "-p" || (!secret_option_.empty() && word == secret_option_)) return true;
        const bool ends_open = word.ends_with('=') || word.ends_with(':');
        if (word.starts_with('-') || ends_open || lower(word) == "bearer")
            return speaks_of_secrets(word) && (word.find('=') == word.npos || ends_open);
        return is_secret_setting(word);
    }

    bool hides_next_ = false;
    bool user_next_ = false;
    bool script_next_ = false;
    std::string_view secret_option_;  // of the program that was named last
    bool was_opened_ = false;         // a quote
};

}  // namespace

std::string note_of_command(const std::vector<std::string>& words) {
    reader all;
    if (words.size() == 1) all.add_words_of(words.front());  // of --shell
    if (words.size() > 1) {
        for (const std::string& word : words) all.add(word);
    }
    return clip(printable(all.text), most_columns);
}

}  // namespace holdfast::cli
