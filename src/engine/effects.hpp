// What the engine wants to have done, and what its node agents have found out.
//
// A function of the engine changes its own state and appends here what follows from the change: node events for the
// quorum, effects for the world outside. One loop, engine::run(), works them off when the change is complete. Node
// events come first, so that an effect always meets a state on which all nodes' results have been counted.
//
// While an effect is carried out, the outside may call the engine again (a listener releases its hold, a link breaks).
// That changes the state and appends, too; the loop that is running goes on with what was appended.
#pragma once

#include "engine/terms.hpp"

#include <deque>
#include <variant>

namespace holdfast::wire {
struct watch_answer;
}

namespace holdfast::engine {

class bundle;
class call;
class hold;
class lock_watch;
class outbox;
struct node_hold;

// A result of one node, for the quorum.
struct node_event {
    enum class kind : std::uint8_t {
        granted,
        queued,
        refused,   // the acquisition is over; what was held before is held still
        extended,  // a poll has proved the hold anew
        lost,
        wanted,    // of a marked hold: somebody else waits for the lock
        link_new,  // of a hold that may be asked back: what was proved was proved by another link
        recalled,  // an operator wants the lock back; the node still has the hold
        renewed,
        changed,
        released,
        gone,            // nothing of it is left at the node, and nobody was told so otherwise
        raised,          // its token is the one that was wished for
        links_changed,   // of the holds that are marked
        owners_changed,  // locks may have other owners now
        clock_read,
    };

    kind what;
    how granted_how = how::asked;  // granted
    errc why = errc::lost;         // lost
    node_hold* at = nullptr;
    const refusal* why_not = nullptr;  // refused; and of renewed, changed and released: none means done
    std::size_t holders = 0;           // changed, released: who hold the lock now
    std::size_t waiters = 0;           // changed, released: who still wait
};

enum class support_now : std::uint8_t { fewer, more };

struct support_count {
    std::size_t in_favour = 0;
    std::size_t nodes = 0;
};

namespace effects {

// --- to a node
struct send {
    outbox* to;
    call* request;
};
struct send_together {
    outbox* to;
    bundle* requests;
};
struct withdraw {
    outbox* to;
    call* request;
};
struct confirm {
    outbox* to;
    call* request;
    const lock_keys* lock;
    redis::acknowledgement wanted;
};
struct distrust {
    outbox* node;
    const failure* why;
};
struct subscribe {
    outbox* at;
    const std::string* channel;
};
struct unsubscribe {
    outbox* at;
    const std::string* channel;
};
struct want_link {
    outbox* to;
    const lock_keys* lock;
};

struct ask_watched {
    outbox* to;
    lock_watch* which;
};

// --- to the caller
struct acquired {
    acquire_completion* who;
    hold* what;
    std::chrono::nanoseconds waited;
    how granted_how;
    bool upgrades;
};
struct reentered {
    acquire_completion* who;
    hold* what;
};
struct refused {
    acquire_completion* who;
    const refusal* why;
};
struct answered {
    hold_completion* who;
    const refusal* why_not;
    std::size_t holders;
    std::size_t waiters;
};

// --- to the hold's listener, if it has one by then
struct validity {
    hold* of;
};
struct token {
    hold* of;
};
struct lost {
    hold* what;
    errc why;
};
struct wanted {
    hold* what;
};
struct ceiling {
    hold* of;
};
struct proved {
    hold* what;
};
struct released {
    hold* what;
    std::chrono::nanoseconds held;
};

// --- to a watch's listener, if it still listens
struct sighted {
    lock_watch* which;
    const wire::watch_answer* seen;
};
struct watch_troubled {
    lock_watch* which;
    const failure* why;
};

// --- to the observer, who also hears what callers and listeners are told
struct seen_asked {
    hold* of;
};
struct seen_refused {
    hold* of;
    std::chrono::nanoseconds waited;
};
struct seen_renewed {
    hold* of;
};
struct seen_renewal_failed {
    const failure* why;
};
struct seen_support {
    hold* of;
    support_now what;
    support_count count;
};

}  // namespace effects

using effect =
    std::variant<effects::send, effects::send_together, effects::withdraw, effects::confirm, effects::distrust,
                 effects::subscribe, effects::unsubscribe, effects::want_link, effects::acquired, effects::reentered,
                 effects::refused, effects::answered, effects::validity, effects::token, effects::lost, effects::wanted,
                 effects::ceiling, effects::proved, effects::released, effects::seen_asked, effects::seen_refused,
                 effects::seen_renewed, effects::seen_renewal_failed, effects::seen_support, effects::ask_watched,
                 effects::sighted, effects::watch_troubled>;

// Where all parts of the engine append. What an effect or a node event points to exists until the loop has ended: holds
// do, and so does what is kept here.
class agenda {
public:
    template <typename Effect>
    void add(const Effect& what) {
        effects_.push_back(what);
    }
    void tell(const node_event& what) { events_.push_back(what); }
    template <typename T>
    const T* keep(T what) {
        auto kept = std::make_shared<const T>(std::move(what));
        kept_.push_back(kept);
        return kept.get();
    }
    // The last step of every function that the outside calls.
    virtual void run(instant now) = 0;

protected:
    ~agenda() = default;

    std::deque<node_event> events_;
    std::deque<effect> effects_;
    std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace holdfast::engine
