// What a member of a Cluster refuses because of where a slot is.
//
// A member looks at the keys of a command before it runs it, and at those of every call inside a script. While a slot
// moves, its old owner runs what it has all the keys for; what it has none of it sends to the new one (ASK), and for
// the rest there is no place (TRYAGAIN). The new one runs what was sent so (ASKING before it); one key may then be
// missing, of several none. Inside a script a refusal ends the script, and nothing is rolled back.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server_model/value.hpp"

namespace holdfast::sim {

struct context;

/// A slot as one member sees it.
struct slot_standing {
    enum class where : std::uint8_t { here, leaving, arriving, elsewhere, nowhere };

    unsigned slot = 0;
    where at = where::here;
    std::string other{};  // host:port; leaving: where it goes; arriving, elsewhere: who has it
};

/// Known to one member: where the slots are.
class slot_guard {
public:
    virtual slot_standing standing_of(std::string_view key) const = 0;

protected:
    ~slot_guard() = default;
};

/// Whether ASKING came right before the command.
enum class asking : std::uint8_t { no, yes };

/// Names are not looked up: a channel is neither there nor missing.
enum class named : std::uint8_t { keys, channels };

/// Nothing: it may run. So it is without keys, and without a guard.
std::optional<value> slot_refusal(context& ctx, std::span<const std::string_view> names, named what);

}  // namespace holdfast::sim
