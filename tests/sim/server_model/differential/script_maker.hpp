// Random runs of scripts: small ones that show one conversion or error each, and holdfast's own.
//
// There are few texts, and what varies comes through ARGV, so that neither server compiles a new script at each step.
// The arguments of holdfast's scripts follow from the scripts' own opening comments (`-- ARGV 1 hold id 2 lease ms
// ...`), so a new script takes part as soon as it exists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server_model/differential/command_maker.hpp"

namespace holdfast::sim {

/// The kind of an argument of holdfast's scripts, by its description.
enum class argument_kind : std::uint8_t {
    unknown,
    id,
    duration,
    moment,
    past_moment,
    later_moment,
    channel,
    count,
    version,
    preference,
    wish,
    rest
};

class script_maker {
public:
    script_maker(random_source& random, command_maker& commands);

    void set_time(std::int64_t now_us) { now_us_ = now_us; }

    /// An EVAL of a small script.
    word_list small();
    /// An EVALSHA of one of holdfast's scripts, which is loaded before.
    word_list of_holdfast();

    static std::vector<std::string> holdfast_texts();

private:
    word_list several_commands();
    std::string make(argument_kind kind);

    struct described {
        std::string sha1;
        std::string family;              // lock kind: mutex and rw have keys of different types
        std::vector<std::string> roles;  // roles of the keys
        std::vector<argument_kind> arguments;
        std::size_t common = 0;  // of the arguments: those that are not of each lock
        std::size_t locks = 1;
    };

    random_source& random_;
    command_maker& commands_;
    std::int64_t now_us_ = 0;
    std::vector<described> holdfast_;
};

/// The numbered entries of a script's `-- KEYS` or `-- ARGV` comment, in order.
std::vector<std::string> documented(std::string_view script, std::string_view heading);

}  // namespace holdfast::sim
