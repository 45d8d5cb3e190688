// Writes a command the way servers read it: an array of strings, behind whatever the output already holds.
//
// The number of arguments comes first on the wire, so it is said first here, and checked: a command with one
// argument too few would swallow the head of the next one, and every later reply would answer the wrong request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// Appends one command of exactly argument_count arguments, its name included; `out` has them when the last is given.
/// Allocates only what `out` needs to grow.
class command_writer {
public:
    /// `rest`: the arguments that follow others, which somebody else writes, with the array's header.
    enum class part { whole, rest };

    command_writer(std::string& out, std::size_t argument_count, part which = part::whole);
    command_writer(const command_writer&) = delete;
    command_writer& operator=(const command_writer&) = delete;
    /// Asserts that every announced argument was given.
    ~command_writer();

    command_writer& arg(std::string_view value);
    command_writer& arg(std::int64_t value);
    /// One argument, written piece by piece.
    command_writer& arg(std::span<const std::string_view> pieces);

private:
    char* next_argument(std::size_t size);
    char* begin_argument(std::size_t size);
    void end_argument(char* at);
    bool fits(std::size_t size) const noexcept;
    command_writer& add_long(char* behind_header, std::span<const std::string_view> pieces);
    void flush();

    std::string& out_;
    std::size_t missing_;
    int exceptions_before_;  // when an exception passes through, the command is lost anyway
    std::size_t used_ = 0;
    std::array<char, 512> gathered_;  // small parts, of which `out` gets many at once
};

/// The beginning of a command of so many arguments, the first of them; the others are for part::rest.
void append_head(std::string& out, std::size_t argument_count, std::initializer_list<std::string_view> first);
void append_command(std::string& out, std::initializer_list<std::string_view> args);
/// One command alone.
std::string encoded_command(std::initializer_list<std::string_view> args);

}  // namespace holdfast::redis
