// One hold id's life, from the first request to the last answer.
//
//     wanted --grant--> held --release--> leaving --answer--> (gone)
//       |                |                   ^
//       |                +--lost--> lost ----+
//       +--refused (gone); deadline, cancel: leaving
//
// While it is wanted, a quest is under way: asking --queued--> in_line. A hold that reads may have another one, its
// upgrade, beside being held. What the server has of a held one may have to be made less (a downgrade, an upgrade that
// was given up): that is a change, and the next quest waits for its end.
//
// Owned by the engine; others see it by reference while the engine says it exists.
#pragma once

#include "base/clock.hpp"
#include "engine/hold_id.hpp"
#include "engine/timer_heap.hpp"
#include "scripts/questions.hpp"

#include <holdfast/errors.hpp>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::engine {

using scripts::lock_keys;
using scripts::lock_kind;
using scripts::preference;
using scripts::shape;
using std::chrono::milliseconds;

using fencing_token = std::uint64_t;

// Who may re-enter. 0 is nobody: every acquisition is an owner of its own.
enum class owner_id : std::uint64_t { nobody = 0 };

enum class renewal { automatic, none };
enum class upgrades { allowed, refused };
enum class waiting { not_at_all, in_line };

// One level of a hold. An owner may have several of both kinds at once.
enum class access : std::uint8_t { exclusive, shared };

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

// Told once per release(), renew() or downgrade(): code is success or why not.
class hold_request {
public:
    // Before answered(), where the server told: who hold the lock now, and who wait.
    virtual void left_behind(std::size_t /*holders*/, std::size_t /*waiters*/) {}
    // No refusal: done.
    virtual void answered(const std::optional<refusal>& why_not) = 0;

protected:
    ~hold_request() = default;
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

// How long to wait for a lock.
struct patience {
    waiting wait = waiting::in_line;
    instant deadline = never;  // of the waiting; with waiting::not_at_all, of the request
};

// What an acquisition is to be like.
struct acquire_terms {
    std::shared_ptr<const lock_keys> keys;
    lock_kind kind = lock_kind::mutex;
    preference prefer = preference::arrival;
    access want = access::exclusive;
    upgrades upgrading = upgrades::allowed;
    // Of a striped lock's first stripe: all of them. An owner that reads one of them does not wait to write: whoever it
    // would wait for may wait for it.
    std::shared_ptr<const std::vector<lock_keys>> stripes = {};
    owner_id owner = owner_id::nobody;
    milliseconds lease{30000};
    renewal renewing = renewal::automatic;
    patience limit = {};
    // How often a request whose answer was lost with its link is sent again: of acquiring, and of releasing.
    unsigned max_repeats = static_cast<unsigned>(-1);
};

class hold final : public timed {
public:
    const hold_id& id() const noexcept { return id_; }
    fencing_token token() const noexcept { return token_; }
    instant valid_until() const noexcept { return valid_until_; }
    const acquire_terms& terms() const noexcept { return terms_; }
    // How many releases of that kind are due.
    unsigned levels(access kind) const noexcept { return kind == access::shared ? shared_ : exclusive_; }
    void listen(std::shared_ptr<hold_listener> listener) noexcept { listener_ = std::move(listener); }
    const std::shared_ptr<hold_listener>& listener() const noexcept { return listener_; }

private:
    friend class engine;
    friend class call;
    enum class state : std::uint8_t { wanted, held, lost, leaving };
    enum class stage : std::uint8_t { none, deferred, asking, in_line };

    // An acquisition or an upgrade under way.
    struct quest {
        stage at = stage::none;
        bool may_have_run = false;  // a copy of the request may have run without our knowing
        bool polled_on_this_link = false;
        unsigned repeats = 0;
        acquire_request* request = nullptr;
        patience limit = {};
        fencing_token fence_then = 0;  // as the last answered poll saw it
        std::string ticket = {};
        std::string holder = {};  // as that poll saw it
        std::optional<instant> holder_until = {};
        instant last_answered_poll{};  // when that poll was sent
        instant asked_at{};
        instant poll_at = never;
    };

    std::list<hold>::iterator self_;
    hold_id id_;
    acquire_terms terms_;
    state state_ = state::wanted;
    shape shape_ = shape::nothing;  // what the server has of it, as far as we know
    bool may_have_run_ = false;     // a copy of the present release
    bool stray_copies_ = false;     // of an acquiring request: one may still be on its way over a broken link
    bool orphaned_ask_ = false;     // given up while its acquiring request was written and unanswered
    unsigned repeats_ = 0;          // of the present release
    unsigned exclusive_ = 0;        // n acquires need n releases
    unsigned shared_ = 0;
    quest quest_;
    hold_request* release_ = nullptr;
    hold_request* renew_ = nullptr;   // asked for on demand
    hold_request* change_ = nullptr;  // a downgrade
    std::shared_ptr<hold_listener> listener_;
    call* asking_ = nullptr;  // calls under way, each at most one
    call* renewing_ = nullptr;
    call* changing_ = nullptr;
    call* leaving_ = nullptr;
    fencing_token token_ = 0;
    instant valid_until_{};
    instant granted_at_{};
    instant renew_at_ = never;
    instant answer_release_by_ = never;
    instant answer_renew_by_ = never;
    instant answer_change_by_ = never;
    instant release_again_at_ = never;
    instant change_again_at_ = never;
    shape change_to_ = shape::nothing;  // what the change under way leaves
    bool cancelling_ = false;           // the change takes an upgrade back
};

}  // namespace holdfast::engine
