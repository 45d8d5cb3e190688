// What the machine of local grants takes and returns: claims of owners inside the process, and effects.
#pragma once

#include "engine/terms.hpp"

#include <boost/intrusive/list.hpp>

namespace holdfast::engine::local {

struct held;

// What an owner inside the process wants, and then has, of a lock that its client holds.
//
// Made by the caller, who fills in the first three fields, and kept by it until the claim is refused or released.
struct claim : boost::intrusive::list_base_hook<> {
    enum class state : std::uint8_t { fresh, waiting, trying, upgrading, holding, lost, over };

    owner_id owner = owner_id::nobody;
    access want = access::exclusive;
    patience limit = {};

    // --- the machine's
    state is = state::fresh;
    unsigned exclusive = 0;  // n acquires need n releases
    unsigned shared = 0;
    held* of = nullptr;           // holding, lost
    claim* upgrades = nullptr;    // upgrading: the claim that reads
    std::uint64_t early_for = 0;  // waiting: it waited already when that hold became wanted
    fencing_token token = 0;      // 0: not asked for yet
    instant granted_at{};

    unsigned& levels(access kind) noexcept { return kind == access::shared ? shared : exclusive; }
    bool is_released() const noexcept { return exclusive + shared == 0; }
};

// What the outside shall do. Asks and holds are named by numbers, because an effect may be carried out when what it
// names is over; then it is void.
struct effect {
    enum class kind : std::uint8_t {
        // --- to the owner of a claim
        granted,
        refused,
        lost,
        // --- to the engine
        ask,      // acquire the lock in `mode`, within `limit`; answered by acquired() or ask_refused()
        extend,   // that acquisition may wait until `limit.deadline`
        cancel,   // end that acquisition; it is answered all the same
        upgrade,  // the hold, within `limit`; answered by upgraded() or upgrade_refused()
        cancel_upgrade,
        downgrade,
        release,  // unused since `at`; never: it was in use, and is lost
        abandon,  // renew the hold no longer, and forget it
        renew,    // the hold, now, with new numbers
        // --- to the clock
        wake,  // call on_timer() at `at`
    };

    kind what;
    access mode = access::exclusive;
    claim* who = nullptr;
    std::uint64_t number = 0;  // of the ask, or of the hold
    patience limit = {};
    instant at = never;
    std::shared_ptr<const refusal> why = {};  // refused
};
using effects = std::vector<effect>;

}  // namespace holdfast::engine::local
