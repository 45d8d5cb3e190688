// The words that requests and answers are made of, between the engine and the layer above.
#pragma once

#include "base/clock.hpp"
#include "engine/lock_options.hpp"
#include "redis/session/acknowledgement.hpp"
#include "wire/hold_id.hpp"
#include "wire/requests.hpp"

#include <holdfast/errors.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::engine {

using holdfast::refusal;
using std::chrono::milliseconds;
using wire::client_id;
using wire::hold_id;
using wire::is_ours;
using wire::lock_keys;
using wire::lock_kind;
using wire::preference;
using wire::shape;

using fencing_token = std::uint64_t;

// Who may re-enter. 0 is nobody: every acquisition is an owner of its own.
enum class owner_id : std::uint64_t { nobody = 0 };

enum class waiting : std::uint8_t { not_at_all, in_queue };

// One level of a hold. An owner may have several of both kinds at once.
enum class access : std::uint8_t { exclusive, shared };

// A refusal, or none, which is the rule: takes the room of a pointer.
class rare_refusal {
public:
    rare_refusal() = default;
    rare_refusal& operator=(refusal why) {
        why_ = std::make_unique<refusal>(std::move(why));
        return *this;
    }
    void reset() noexcept { why_.reset(); }

    explicit operator bool() const noexcept { return why_ != nullptr; }
    const refusal& operator*() const noexcept { return *why_; }
    const refusal* operator->() const noexcept { return why_.get(); }
    std::optional<refusal> copy() const { return why_ ? std::optional(*why_) : std::nullopt; }

private:
    std::unique_ptr<refusal> why_;
};

enum class how { asked, handed_over };

// What a node said when it ended, changed or renewed something.
struct node_answer {
    std::optional<refusal> why_not;
    std::size_t holders = 0;
    std::size_t waiters = 0;
};

// How long to wait for a lock.
struct patience {
    waiting wait = waiting::in_queue;
    instant deadline = never;  // of the waiting; with waiting::not_at_all, of the request
};

// There may be a hundred thousand holds: what is chosen for them has as few bits as it needs.
class packed_acknowledgement {
public:
    static constexpr unsigned most_replicas = 15;
    static constexpr milliseconds longest_time{4095};

    packed_acknowledgement() = default;
    explicit packed_acknowledgement(redis::acknowledgement wanted) noexcept
        : bits_(static_cast<std::uint16_t>(wanted.replicas << time_bits |
                                           static_cast<unsigned>(wanted.within.count()))) {}

    unsigned replicas() const noexcept { return bits_ >> time_bits; }
    redis::acknowledgement get() const noexcept { return {replicas(), milliseconds(bits_ & time_mask)}; }

private:
    static constexpr unsigned time_bits = 12;
    static constexpr unsigned time_mask = (1U << time_bits) - 1;

    std::uint16_t bits_ = 0;
};

// What an acquisition is to be like.
struct acquire_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_kind kind = lock_kind::mutex;
    preference prefer = preference::arrival;
    access want = access::exclusive;
    upgrades upgrading = upgrades::allowed;
    // Of a striped lock's first stripe: how many there are, their keys standing behind its own. An owner that reads one
    // of them does not wait to write: whoever it would wait for may wait for it.
    std::uint16_t stripes = 0;
    owner_id owner = owner_id::nobody;
    milliseconds lease{30000};
    renewal renewing = renewal::automatic;
    patience limit = {};
    // How often a request whose answer was lost with its link is sent again: of acquiring, and of releasing.
    unsigned max_repeats = static_cast<unsigned>(-1);
    // Who must have a grant or a renewal before it counts.
    packed_acknowledgement acknowledged_by = {};
    // Of a lock whose key other programs use, too: after so long they get a turn; 0: never.
    std::uint16_t yield_after_ms = 0;
};

// What is left of that when it was acquired: of use as long as it is held.
struct hold_terms {
    explicit hold_terms(const acquire_terms& asked)
        : keys(asked.keys),
          owner(asked.owner),
          lease(asked.lease),
          max_repeats(asked.max_repeats),
          kind(asked.kind),
          prefer(asked.prefer),
          want(asked.want),
          upgrading(asked.upgrading),
          renewing(asked.renewing),
          acknowledged_by(asked.acknowledged_by),
          yield_after_ms(asked.yield_after_ms) {}

    std::shared_ptr<const lock_keys> keys;
    owner_id owner;
    milliseconds lease;
    unsigned max_repeats;
    lock_kind kind : 2;
    preference prefer : 2;
    access want : 2;
    upgrades upgrading : 2;
    renewal renewing : 2;
    packed_acknowledgement acknowledged_by;
    std::uint16_t yield_after_ms;
};

class hold;

// Told in the serial section, once per acquire() or upgrade(); then the engine has forgotten it.
class acquire_completion {
public:
    virtual void acquired(hold& held) = 0;
    virtual void refused(const refusal& why) = 0;

protected:
    ~acquire_completion() = default;

private:
    friend class engine;
    hold* subject_ = nullptr;
};

// Told once per release(), renew() or downgrade(): code is success or why not.
class hold_completion {
public:
    // Before answered(), where the server told: who hold the lock now, and who wait.
    virtual void left_behind(std::size_t /*holders*/, std::size_t /*waiters*/) {}
    // No refusal: done.
    virtual void answered(const std::optional<refusal>& why_not) = 0;

protected:
    ~hold_completion() = default;
};

// Told about a hold while it exists, in the serial section.
class hold_listener {
public:
    virtual void on_validity(instant until) = 0;
    // An upgrade has its own.
    virtual void on_token(fencing_token /*token*/) {}
    virtual void on_lost(errc why) = 0;
    // Released: the reference to the hold is void.
    virtual void on_gone() = 0;

protected:
    ~hold_listener() = default;
};

}  // namespace holdfast::engine
