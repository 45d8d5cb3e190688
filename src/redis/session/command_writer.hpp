// Writes a command the way servers read it: an array of strings, behind whatever the output already holds.
//
// The number of arguments comes first on the wire. It is counted here and nowhere else: a command with one argument too
// few would swallow the head of the next one, and every later reply would answer the wrong request.
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
    argument(std::string_view text, std::string_view ending) : text_(text), ending_(ending) {}
    argument(char opening, std::string_view text, std::string_view ending)
        : text_(text), ending_(ending), opening_(opening) {}
    static argument number(std::int64_t value) {
        argument made;
        made.number_ = value;
        made.is_number_ = true;
        return made;
    }

    /// Upper bound for what write_to() writes.
    std::size_t most_bytes() const noexcept;
    /// Returns the end of what it has written.
    char* write_to(char* at) const noexcept;

private:
    std::string_view text_;
    std::string_view ending_;
    std::int64_t number_ = 0;
    bool is_number_ = false;
    char opening_ = 0;  // 0: none
};

/// One whole command. Allocates only what `out` needs to grow, as all of these.
void append_command(std::string& out, std::span<const argument> all);
void append_command(std::string& out, std::initializer_list<argument> all);
/// Arguments that follow others. The array's header is written before them by append_head().
void append_arguments(std::string& out, std::span<const argument> rest);
/// The beginning of a command of so many arguments, and the first of them.
void append_head(std::string& out, std::size_t argument_count, std::initializer_list<argument> first);
/// One command alone.
std::string encoded_command(std::initializer_list<argument> all);

}  // namespace holdfast::redis
