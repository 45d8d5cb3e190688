// One hold id's life, from the first request to the last answer.
//
//     asking --queued--> in_line --grant--> held --release--> leaving --answer--> (gone)
//        |                  |                 |                  ^
//        |                  |                 +--lost--> lost ---+
//        +--refused (gone)  +--deadline, cancel: leaving
//
// Owned by the engine; others see it by reference while the engine says it exists.
#pragma once

#include "base/clock.hpp"
#include "engine/hold_id.hpp"
#include "engine/timer_heap.hpp"
#include "scripts/names.hpp"

#include <holdfast/errors.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::engine {

using scripts::lock_keys;
using std::chrono::milliseconds;

using fencing_token = std::uint64_t;

// Who may re-enter. 0 is nobody: every acquisition is an owner of its own.
enum class owner_id : std::uint64_t { nobody = 0 };

enum class renewal { automatic, none };
enum class waiting { not_at_all, in_line };

// Why a lock was not had, or a release or renewal did not take.
struct refusal {
    errc code = errc::busy;
    std::string detail;
    std::optional<milliseconds> holder_left;  // of the one who holds it, as far as known
    std::string holder;
};

class hold;
class call;

// Told in the serial section, once per acquire(); then the engine has forgotten it.
class acquire_request {
public:
    virtual void acquired(hold& held) = 0;
    virtual void refused(const refusal& why) = 0;

protected:
    ~acquire_request() = default;

private:
    friend class engine;
    hold* subject_ = nullptr;
};

// Told once per release() or renew(): code is success or why not.
class hold_request {
public:
    // No refusal: done.
    virtual void answered(const std::optional<refusal>& why_not) = 0;

protected:
    ~hold_request() = default;
};

// Told about a hold while it exists, in the serial section.
class hold_listener {
public:
    virtual void on_validity(instant until) = 0;
    virtual void on_lost(errc why) = 0;
    // Released: the reference to the hold is void.
    virtual void on_gone() = 0;

protected:
    ~hold_listener() = default;
};

// What an acquisition is to be like.
struct acquire_terms {
    std::shared_ptr<const lock_keys> keys;
    owner_id owner = owner_id::nobody;
    milliseconds lease{30000};
    renewal renewing = renewal::automatic;
    waiting wait = waiting::in_line;
    instant deadline = never;  // of the waiting; with waiting::not_at_all, of the request
    // How often a request whose answer was lost with its link is sent again: of acquiring, and of releasing.
    unsigned max_repeats = static_cast<unsigned>(-1);
};

class hold final : public timed {
public:
    const hold_id& id() const noexcept { return id_; }
    fencing_token token() const noexcept { return token_; }
    instant valid_until() const noexcept { return valid_until_; }
    const acquire_terms& terms() const noexcept { return terms_; }
    void listen(std::shared_ptr<hold_listener> listener) noexcept { listener_ = std::move(listener); }
    const std::shared_ptr<hold_listener>& listener() const noexcept { return listener_; }

private:
    friend class engine;
    friend class call;
    enum class state : std::uint8_t { asking, in_line, held, lost, leaving };

    std::list<hold>::iterator self_;
    hold_id id_;
    acquire_terms terms_;
    state state_ = state::asking;
    bool may_have_run_ = false;  // a copy of the present request may have run without our knowing
    bool stray_copies_ = false;  // of the acquiring request: one may still be on its way over a broken link
    bool orphaned_ask_ = false;  // given up while its acquiring request was written and unanswered
    bool polled_on_this_link_ = false;
    unsigned repeats_ = 0;  // of the present request
    unsigned depth_ = 1;    // n acquires need n releases
    acquire_request* request_ = nullptr;
    hold_request* release_ = nullptr;
    hold_request* renew_ = nullptr;  // asked for on demand
    std::shared_ptr<hold_listener> listener_;
    call* asking_ = nullptr;  // calls under way, each at most one
    call* renewing_ = nullptr;
    call* leaving_ = nullptr;
    fencing_token token_ = 0;
    fencing_token fence_then_ = 0;  // as the last answered poll saw it
    std::string ticket_;
    instant last_answered_poll_{};  // when that poll was sent
    instant valid_until_{};
    instant asked_at_{};
    instant granted_at_{};
    instant renew_at_ = never;
    instant poll_at_ = never;
    instant answer_release_by_ = never;
    instant answer_renew_by_ = never;
    instant release_again_at_ = never;
};

}  // namespace holdfast::engine
