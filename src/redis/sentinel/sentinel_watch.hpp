// Knows where the primary is, because its sentinels say so.
//
// There is a link to every sentinel that the URL names, not to one of them: the machine that the primary dies with
// often runs a sentinel, too, and whoever listens to that one alone hears of the new primary only after having given it
// up. Each link listens to `+switch-master` before it asks, so that nothing falls in between. An announcement is a
// reason to ask, and only the answer is believed: it has the epoch of what it says, and of two answers the later epoch
// is right.
//
// Somebody seeks the primary when a link to it must be made. All sentinels are asked then, and the answer is
//  - the first one of a later epoch than the place where the seeker just failed,
//  - or what a majority of them says, be it there,
//  - or, when nobody is left who may still answer, the best there is.
// Whoever answers from an epoch that is over names a primary that was replaced, and is not believed, unless a majority
// answers, and all from such epochs: then somebody had the sentinels begin anew (SENTINEL REMOVE, SENTINEL MONITOR).
// At any other time the listener is told of a primary that is news: of a later epoch, or what a majority says. So a
// client that may not ask for epochs follows the majority, a moment later than others.
//
// Sans-I/O: the links are sessions that somebody else drives. Lives in the client's serial section.
//
// Invariants:
//  (1) seek() is answered by on_primary() or on_no_primary(), never from within.
//  (2) A sentinel that could not be reached when it was last tried is not waited for.
//  (3) After nobody knew the primary, the first who does is heard, though nobody asks.
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
    // For how long it has been the primary, as the sentinel knows; none: it does not tell.
    std::optional<std::chrono::milliseconds> since = std::nullopt;
};

class primary_listener {
public:
    virtual void on_primary(const known_primary& found, instant now) = 0;
    // The primary that was told took over in a later epoch than whoever told of it knew.
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
    // For each of them a session is made with this listener, and attached.
    session_listener& listener(std::size_t which) noexcept;
    void attach(std::size_t which, session& link);

    // Somebody needs to know now.
    void seek(instant now);
    // After every event of a session. Asks again what is due.
    void on_timer(instant now);
    instant deadline() const noexcept;

private:
    class sentinel;
    struct opinion {
        known_primary primary;
        std::optional<std::uint64_t> epoch;  // none: we may not ask
    };

    void answered(const sentinel& by, instant now);
    void decide(instant now);
    bool is_outdated(const opinion& one) const noexcept;
    bool is_up_to_date(const sentinel& one) const noexcept;
    bool is_later(const opinion& one) const noexcept;
    std::size_t agreeing(const server_address& address) const noexcept;
    bool is_agreed(const server_address& address) const noexcept;
    const opinion* restarted_epochs() const noexcept;
    bool all_are_heard() const noexcept;
    void tell(const opinion& what, instant now);
    failure why_none() const;

    const std::string display_;
    const std::string primary_;
    const std::chrono::milliseconds
        ask_interval_;  // shorter than that of the session's own sign of life, and so instead
    primary_listener& listener_;
    std::vector<std::unique_ptr<sentinel>> sentinels_;
    std::optional<server_address> told_;  // where the primary was said to be
    std::optional<std::uint64_t> epoch_;  // of that
    bool seeking_ = false;
    bool told_none_ = false;  // since the last on_primary()
};

}  // namespace holdfast::redis
