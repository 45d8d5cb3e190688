// Finds the address of the primary by asking its sentinels.
//
// There is a link to every sentinel of the URL. A client with only one link often loses its sentinel together with the
// primary, because both run on one machine, and learns of the new primary late. Each link subscribes to
// `+switch-master` before it asks, so that no announcement is missed. An announcement is only a reason to ask. The
// answer is believed: it has an epoch, and of two answers the later epoch is right.
//
// The driver calls seek() before it makes a link to the primary. All sentinels are asked then, and the result is
//  - the first answer of a later epoch than that of the last known primary,
//  - or what a majority of them says, even if it is the same address,
//  - or, when no sentinel is left that may still answer, the best answer.
// A sentinel that answers from an older epoch names a primary that was replaced, and is not believed. Exception: a
// majority answers, and all from older epochs. Then the sentinels were reset (SENTINEL REMOVE, SENTINEL MONITOR).
// At any other time the listener is told of a primary of a later epoch, or of one that a majority names. So a client
// that may not ask for epochs follows the majority, a moment later than others.
//
// Sans-I/O: the caller drives the sessions of the links. Lives in the client's serial section.
//
// Invariants:
//  (1) seek() is answered by on_primary() or on_no_primary(), never within the call.
//  (2) Nothing waits for a sentinel whose last attempt to connect failed.
//  (3) After on_no_primary() the first sentinel that knows the primary is believed, without seek().
//  (4) The listener is called last, when a change is complete.
#pragma once

#include "redis/session/session.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::redis {

struct known_primary {
    server_address address;
    // How long it has been the primary, by the sentinel; none: unknown.
    std::optional<std::chrono::milliseconds> since = std::nullopt;
};

class primary_listener {
public:
    virtual void on_primary(const known_primary& found, instant now) = 0;
    // The known primary took over in a later epoch than was known.
    virtual void on_later_take_over(const known_primary& found, instant now) = 0;
    // Only after seek().
    virtual void on_no_primary(const failure& why, instant now) = 0;

protected:
    ~primary_listener() = default;
};

class sentinel_watch {
public:
    // `settings` has sentinels.
    sentinel_watch(const server_settings& settings, primary_listener& listener);
    ~sentinel_watch();
    sentinel_watch(const sentinel_watch&) = delete;
    sentinel_watch& operator=(const sentinel_watch&) = delete;

    std::size_t size() const noexcept { return sentinels_.size(); }
    // The caller makes a session for each sentinel with this listener, and attaches it.
    session_listener& listener(std::size_t which) noexcept;
    void attach(std::size_t which, session& link);

    // The address of the primary is needed now.
    void seek(instant now);
    // To be called after every event of a session. Repeats questions that are due.
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    class sentinel;
    struct opinion {
        known_primary primary;
        std::optional<std::uint64_t> epoch;  // none: the user may not ask
    };

    void answered(const sentinel& by, instant now);
    void decide(instant now);
    bool is_outdated(const opinion& one) const noexcept { return one.epoch && epoch_ && *one.epoch < *epoch_; }
    bool is_up_to_date(const sentinel& one) const noexcept;
    bool is_later(const opinion& one) const noexcept { return one.epoch && (!epoch_ || *one.epoch > *epoch_); }
    std::size_t agreeing(const server_address& address) const noexcept;
    bool is_agreed(const server_address& address) const noexcept;
    const opinion* restarted_epochs() const noexcept;
    bool all_are_heard() const noexcept;
    void tell(const opinion& what, instant now);
    failure why_none() const;

    const std::string display_;
    const std::string primary_;
    const std::chrono::milliseconds ask_interval_;  // shorter than the health interval, so it replaces PING
    primary_listener& listener_;
    std::vector<std::unique_ptr<sentinel>> sentinels_;
    std::optional<server_address> told_;  // the last primary that the listener was told
    std::optional<std::uint64_t> epoch_;  // of told_
    bool seeking_ = false;
    bool told_none_ = false;  // after the last on_primary()
};

}  // namespace holdfast::redis
