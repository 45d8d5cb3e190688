// Slots that rest: commands for them are not sent for a while, because a member said that the slot is moving or down.
//
// A rest doubles with every refusal. A command that overtakes others (see command::pass_others()) rests only for
// refusals of such commands: a renewal must not wait as long as polls that were refused again and again. Its own rest
// delays all others of the slot.
#pragma once

#include "base/clock.hpp"
#include "base/errc_table.hpp"
#include "redis/session/command.hpp"
#include "redis/session/jitter.hpp"
#include "redis/slots/hash_slot.hpp"

#include <map>
#include <optional>

namespace holdfast::redis {

class slot_rests {
public:
    explicit slot_rests(jitter& chance) : jitter_(chance) {}

    struct cause {
        unsigned rests_before = 0;
        bool overtakes = false;  // the refused command
    };
    void begin(hash_slot slot, cause of, failure why, instant now);
    // A script of this slot stopped after it may have written. Its owner repeats it, as after the loss of a link. No
    // lost link slows the owner down here, so the slot rests, longer each time.
    void begin_after_half_run(hash_slot slot, failure why, instant now);
    // Ends the rests that are over. None: no rest had to be looked at.
    std::optional<slot_set> end_due(instant now);

    bool has(hash_slot slot) const { return rests_.contains(slot); }
    bool holds_back(const command& request, instant now) const;
    // Null: the slot does not rest.
    const failure* why(hash_slot slot) const {
        const auto found = rests_.find(slot);
        return found == rests_.end() ? nullptr : &found->second.why;
    }
    // Never later than the end of the first rest.
    instant deadline() const noexcept { return ends_at_; }

private:
    struct rest {
        instant until{};
        instant until_for_overtakers{};
        failure why = {};
    };
    struct half_runs {
        unsigned in_a_row = 0;
        instant last{};
    };

    jitter& jitter_;
    std::map<hash_slot, rest> rests_;
    instant ends_at_ = never;
    std::map<hash_slot, half_runs> half_runs_;  // of the last second
};

}  // namespace holdfast::redis
