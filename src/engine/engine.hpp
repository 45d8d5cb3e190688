// The brain: what to ask the server, when to believe the answer, when to ask again.
//
// Sans-I/O: no socket, no thread, no clock, no random device. Events come in, each with `now`; calls go out
// through the outbox; time is asked for by deadline(). Lives in the client's serial section.
//
// Invariants:
//  (1) Validity is counted from before the request that proved the hold was written, never from its answer, less a
//      drift of lease/100 + 2 ms. A pushed grant is proved by the last poll that was answered "still in line": its
//      lease began after that.
//  (2) A hold id that nobody asks for any more is undone: the undo is sent after the last copy of what it undoes.
//  (3) Renewal is on before acquired() is called and off before the release is sent; it never revives.
//  (4) Every request ends: with an answer, or at its deadline.
//  (5) Whatever was written on a link that broke is repeated on the next one, or undone there.
//  (6) A holder believes in less before the server is asked to make it less, and in more only after the server said so.
#pragma once

#include "base/failure.hpp"
#include "engine/call.hpp"
#include "engine/hold.hpp"
#include "engine/timer_heap.hpp"

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast::engine {

// What the engine asks of the layer below.
class outbox {
public:
    virtual void submit(redis::command& request) = 0;
    // True: it will never be sent.
    virtual bool withdraw(redis::command& request) = 0;
    // An answer showed the link to be useless.
    virtual void distrust(const failure& why) = 0;
    virtual void subscribe(const std::string& channel) = 0;
    virtual bool link_is_up() const = 0;

protected:
    ~outbox() = default;
};

// Hears what happens, in the serial section: for counting and logging, not for acting.
class observer {
public:
    enum class how { asked, handed_over };
    virtual void on_acquired(std::chrono::nanoseconds waited, how got) = 0;
    virtual void on_reentered() = 0;
    virtual void on_refused() = 0;
    virtual void on_released(std::chrono::nanoseconds held) = 0;
    virtual void on_renewed() = 0;
    virtual void on_renewal_failed(const failure& why) = 0;
    virtual void on_lost(const std::string& lock, errc why) = 0;

protected:
    ~observer() = default;
};

struct engine_settings {
    milliseconds request_timeout{2000};
    milliseconds fence_retention{3600 * 1000};
    // lost() fires this part of a lease before validity ends.
    unsigned lost_margin_percent = 10;
    unsigned max_depth = 100'000;
    std::string server;  // for messages
    std::string channel_prefix = "hf:wake:";
};

class engine {
public:
    engine(engine_settings settings, outbox& out, random_source& random, observer& watcher);
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    const client_id& id() const noexcept { return client_; }

    // --- requests
    // Re-enters if terms.owner holds the lock already, or upgrades what it reads. May call back before it returns.
    void acquire(acquire_request& request, acquire_terms terms, instant now);
    // Ends an acquisition that is under way with `why`, giving back what it may have got. No effect if it has ended.
    void cancel(acquire_request& request, errc why, instant now);
    // Has a hold that reads write as well; the read hold stays, whatever comes of it. Called back like acquire().
    void upgrade(hold& held, acquire_request& request, patience limit, instant now);
    // One level of it; there must be one. The request (may be null) is answered at `answer_by` at the latest; the
    // release itself goes on. When the last exclusive level goes and a shared one stays, it is a downgrade.
    void release(hold& held, access level, hold_request* request, instant answer_by, instant now);
    // An exclusive level becomes a shared one.
    void downgrade(hold& held, hold_request& request, instant answer_by, instant now);
    // Makes the lease full again now.
    void renew(hold& held, hold_request& request, instant now);
    // The owner will never release: what it holds is renewed no longer, told as lost, and forgotten.
    void abandon(owner_id owner);
    // The hold that this owner has on that lock, lost or not; null if none.
    hold* find(owner_id owner, const lock_keys& keys);
    // Not lost, and its validity has not run out.
    static bool is_held(const hold& h, instant now) noexcept { return h.state_ == state::held && !ran_out(h, now); }

    // --- events
    // Nothing is asked for before `trusted_from`: the server may have forgotten holds that are still believed in.
    void on_link_up(instant trusted_from, instant now);
    void on_link_down(instant now);
    // Nobody can be woken: whoever waits in line is refused for that reason.
    void on_subscription_refused(const failure& why, instant now);
    void on_push(const redis::reply_view& message, instant now);
    void on_timer(instant now);
    instant deadline() const noexcept { return timers_.earliest(); }

    std::size_t holds() const noexcept { return holds_.size(); }

private:
    friend class call;
    using state = hold::state;
    using purpose = call::purpose;

    using stage = hold::stage;

    // asking and waiting (acquisition.cpp)
    void reenter(hold& mine, acquire_request& request, const acquire_terms& terms, instant now);
    bool reads_a_stripe(const acquire_terms& terms);
    bool is_too_deep(const hold& h) const noexcept;
    void reentered(hold& h, acquire_request& request, instant now);
    void begin_quest(hold& h, acquire_request& request, patience limit, instant now);
    void ask(hold& h, instant now);
    void poll(hold& h, instant now);
    void answered_acquire(hold& h, const call& asked, const redis::reply_view& reply, instant now);
    void stand_in_line(hold& h, const call& asked, const scripts::acquire_answer& answer, instant now);
    void failed_acquire(hold& h, const failure& why, instant now);
    void granted(hold& h, fencing_token token, instant proved_at, instant now,
                 observer::how got = observer::how::asked);
    void upgraded(hold& h, fencing_token token, instant proved_at, instant now, observer::how got);
    acquire_request* end_quest(hold& h);
    bool drop_ask(hold& h);
    void refuse(hold& h, refusal why, instant now);
    static errc too_late(const hold& h) noexcept;
    void check_waiting(hold& h, instant now);
    void believe_push(hold& h, fencing_token token, instant now);
    void mark_stray(hold& h);
    void revoked(std::string_view id, fencing_token token);

    // holding (renewal.cpp)
    void extend_validity(hold& h, instant proved_at);
    void send_renewal(hold& h, instant now);
    void answered_renew(hold& h, const call& asked, const redis::reply_view& reply, instant now);
    void failed_renew(hold& h, const failure& why, instant now);
    void check_holding(hold& h, instant now);
    void lose(hold& h, errc why);
    // By our own clock; the timer that tells so may be late.
    static bool ran_out(const hold& h, instant now) noexcept { return now >= h.valid_until_; }
    void answer_renewal(hold& h, const std::optional<refusal>& why_not);
    void notice(hold& h, const scripts::hold_answer& held, instant now);

    // holding less (change.cpp)
    void begin_change(hold& h, instant now);
    void cancel_upgrade(hold& h, instant now);
    void send_change(hold& h, instant now);
    void answered_change(hold& h, const call& asked, const redis::reply_view& reply, instant now);
    void answered_cancel(hold& h, const redis::reply_view& reply, instant now);
    void failed_change(hold& h, const failure& why, instant now);
    void end_change(hold& h, const std::optional<refusal>& why_not, instant now);
    void check_change(hold& h, instant now);
    void answer_change(hold& h, const std::optional<refusal>& why_not);
    void adopt(hold& h, fencing_token token);

    // leaving (release.cpp)
    void release_level(hold& h, access level, hold_request* request, instant answer_by, instant now);
    void leave(hold& h, instant now);
    void send_release(hold& h, instant now);
    void answered_release(hold& h, const redis::reply_view& reply, instant now);
    void failed_release(hold& h, const failure& why, instant now);
    void check_leaving(hold& h, instant now);
    void give_back(hold& h, fencing_token token, instant now);
    void answer_release(hold& h, const std::optional<refusal>& why_not);

    // shared
    void set_timer(hold& h, instant now);
    scripts::lock_terms lock_of(const hold& h) const noexcept;
    call& start_call(purpose what, hold& h);
    void finish_call(call& finished);
    void drop_call(call*& under_way);
    void forget(hold& h);
    failure classify(const redis::reply_view& error_reply);
    refusal nonsense() const;
    milliseconds drift(milliseconds lease) const noexcept { return lease / 100 + milliseconds(2); }
    milliseconds margin(milliseconds lease) const noexcept { return lease * settings_.lost_margin_percent / 100; }
    std::string channel() const { return settings_.channel_prefix + client_.text(); }

    struct owned_lock {
        owner_id owner;
        std::string lock;
        friend bool operator==(const owned_lock&, const owned_lock&) = default;
    };
    struct owned_lock_hash {
        std::size_t operator()(const owned_lock& key) const noexcept;
    };

    engine_settings settings_;
    outbox& out_;
    random_source& random_;
    observer& watcher_;
    client_id client_;
    instant trusted_from_{};
    std::uint64_t next_counter_ = 0;
    bool subscribed_ = false;
    timer_heap timers_;
    std::list<hold> holds_;
    // By hold id, whose text the hold keeps: those to whom a grant may be pushed.
    std::unordered_map<std::string_view, hold*> in_line_;
    std::unordered_map<owned_lock, hold*, owned_lock_hash> owned_;
    std::vector<std::unique_ptr<call>> calls_;  // every one ever made; those not under way are in idle_calls_
    std::vector<call*> idle_calls_;
    // The highest token seen per lock would grow without bound; one floor for all names of this client is as
    // good: tokens are server times, and a floor only has to be high enough.
    fencing_token floor_ = 0;
};

}  // namespace holdfast::engine
