// The refusals of a Cluster member because of the state of a slot.
//
// A member checks the keys of a command before it runs it, and the keys of every call inside a script. While a slot
// moves, its old owner runs commands for which it has all keys. It redirects commands for which it has none to the new
// owner (ASK), and refuses the others (TRYAGAIN). The new owner runs redirected commands (after ASKING): a single key
// may be missing, several keys must all exist. Inside a script a refusal ends the script, and nothing is rolled back.
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
    std::string other{};  // host:port. leaving: the target; arriving, elsewhere: the owner
};

/// What one member knows about the location of slots.
class slot_guard {
public:
    virtual slot_standing standing_of(std::string_view key) const = 0;

protected:
    ~slot_guard() = default;
};

/// Whether ASKING directly preceded the command.
enum class asking : std::uint8_t { no, yes };

/// Channels are not looked up: a channel neither exists nor is missing.
enum class named : std::uint8_t { keys, channels };

/// Nothing: the command may run. So it does without keys, and without a guard.
std::optional<value> slot_refusal(context& ctx, std::span<const std::string_view> names, named what);

}  // namespace holdfast::sim
