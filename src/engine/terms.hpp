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

private:
    std::unique_ptr<refusal> why_;
};

enum class how : std::uint8_t { asked, handed_over };

// How long to wait for a lock.
struct patience {
    waiting wait = waiting::in_queue;
    instant deadline = never;  // of the waiting; with waiting::not_at_all, of the request
};

// What a hold is like, for as long as it exists.
struct hold_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_options options = {};
    owner_id owner = owner_id::nobody;
    access want = access::exclusive;
};

// What an acquisition is to be like.
struct acquire_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_options options = {};
    access want = access::exclusive;
    owner_id owner = owner_id::nobody;
    patience limit = {};

    hold_terms of_hold() const { return {keys, options, owner, want}; }
};

class hold;

// Told in the serial section, once per acquire() or upgrade(); then the engine has forgotten it.
class acquire_completion {
public:
    virtual void acquired(hold& held) = 0;
    virtual void refused(const refusal& why) = 0;

    hold* pending_hold = nullptr;  // the engine's own: what is asked for, while it is

protected:
    ~acquire_completion() = default;
};

// Told once per release(), renew() or downgrade().
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
