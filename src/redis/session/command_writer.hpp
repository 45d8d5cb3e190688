// Writes a command the way servers read it: an array of strings, behind whatever the output already holds.
//
// The number of arguments comes first on the wire. It is counted here and said nowhere else: a command with one
// argument too few would swallow the head of the next one, and every later reply would answer the wrong request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// A text, a text with something around it, or a number. What it is made from must live until it is written.
class argument {
public:
    argument() = default;
    argument(std::string_view text) : text_(text) {}
    argument(const std::string& text) : text_(text) {}
    argument(const char* text) : text_(text) {}
    argument(std::string_view text, std::string_view ending) : text_(text), ending_(ending), kind_(kind::two_texts) {}
    argument(char opening, std::string_view text, std::string_view ending)
        : text_(text), ending_(ending), kind_(kind::enclosed), opening_(opening) {}
    static argument number(std::int64_t value) {
        argument made;
        made.number_ = value;
        made.kind_ = kind::number;
        return made;
    }

private:
    friend class argument_writer;
    enum class kind : std::uint8_t { text, two_texts, enclosed, number };

    std::string_view text_;
    std::string_view ending_;
    std::int64_t number_ = 0;
    kind kind_ = kind::text;
    char opening_ = 0;
};

/// One whole command. Allocates only what `out` needs to grow, as all of these.
void append_command(std::string& out, std::span<const argument> all);
void append_command(std::string& out, std::initializer_list<argument> all);
/// Arguments that follow others, which somebody else writes, with the array's header.
void append_arguments(std::string& out, std::span<const argument> rest);
/// The beginning of a command of that many arguments, with the first of them; append_arguments() adds the others.
void append_head(std::string& out, std::size_t argument_count, std::initializer_list<argument> first);
/// One command alone.
std::string encoded_command(std::initializer_list<argument> all);

}  // namespace holdfast::redis
