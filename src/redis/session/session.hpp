// The life of a connection to one server: connect, greet, up, lost, rest, connect again.
//
//     resting --time, or a caller--> connecting --connected--> greeting --> settling --> up
//        ^                               |                        |            |          |
//        +-------------------------------+------------------------+------------+----------+   any failure
//
// Where sentinels know the address, `seeking` precedes each `connecting`: the driver asks them and calls found(). The
// driver may call found() at any other time, when the sentinels name another primary. Then the session leaves its link
// and connects to the new address.
//
// Where user and password may change, `asking` comes just before `connecting`: the driver asks for them and calls
// log_in_with() or no_login(). It asks again before they expire, and the session logs in anew on the living link. If
// the server refuses that, the link stays as it is, and the session asks again until it succeeds or the server ends the
// link. If none are available, the session uses those that it has.
//
// A link speaks RESP3, or RESP2 where the settings say so or the server refuses HELLO 3. In RESP2 a link that
// subscribes can send nothing else: so only one of link_use::wakes does, and it is made anew where another would log in
// anew.
//
// Sans-I/O: the driver calls take_login_wish(), take_connect_wish(), take_hang_up_wish() and has_output() after every
// event and does what they say. Time is an argument. Lives in the client's serial section.
//
// Invariants:
//  (1) No submitted command is written before the link is up: greeted, the old link ended, subscriptions confirmed.
//  (2) Every command ends: by an answer, by the loss of its link (outcome unknown; an answer that takes longer than
//      request_timeout is a lost link), or by its deadline while it waits.
//  (3) After a permanent failure waiting commands fail at once. A refused password that may change is permanent only if
//      no link was ever up and the same one was refused twice. Otherwise they wait for the next link until their
//      deadlines. Before the very first link only those wait that want to (wait_for_first_link()); each failed attempt
//      ends the others. In a Cluster no command waits here: see on_stranded().
//  (4) Nothing from a link that was given up reaches the listener.
//  (5) Commands and the listener are called when a change is complete, so they may call the session.
#pragma once

#include "redis/session/greeting.hpp"
#include "redis/session/jitter.hpp"
#include "redis/session/multiplexer.hpp"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::redis {

// Called in the serial section. May submit commands; must not block.
class session_listener : public push_listener {
public:
    // Why the server that answers must not be used. Then the link ends, as one that was refused.
    virtual std::optional<failure> objection(const server_facts&) { return std::nullopt; }
    virtual void on_link_up(const server_facts& facts, instant now) = 0;
    virtual void on_link_down(const failure& why, instant now) = 0;
    // The server refuses a channel permanently. The link goes on without it; subscribe() tries again.
    virtual void on_subscription_refused(const failure& why, instant now) = 0;
    // Of link_use::cluster only: a link or an attempt ended, and these commands, perhaps none, were not written. They
    // are idle. The listener must submit them again: another member may own their keys by then.
    virtual void on_stranded(std::deque<command*> unwritten, const failure& why, instant now);

protected:
    ~session_listener() = default;
};

class session {
public:
    // `jitter_seed` spreads the reconnects of many clients.
    session(server_settings settings, session_listener& listener, std::uint64_t jitter_seed);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    const server_settings& settings() const noexcept { return settings_; }
    bool linked() const noexcept {
        return state_ == state::greeting || state_ == state::settling || state_ == state::up;
    }
    bool up() const noexcept { return state_ == state::up; }
    // The last link or attempt ended, and none has come up since.
    bool has_failed() const noexcept { return failed_attempts_ > 0; }
    // What ended the last link or attempt.
    const failure& last_failure() const noexcept { return last_failure_; }
    // Why nothing can be sent now, as far as known.
    failure why_not_up() const;
    const server_facts& facts() const noexcept { return facts_; }

    // --- for the upper layer
    void submit(command& request, instant now);
    // A caller needs the link now: shortens the rest after a failure.
    void hurry(instant now);
    // No submitted command is waiting or in flight.
    bool idle() const noexcept { return wires_.waiting() == 0 && wires_.unanswered() == 0; }
    bool is_waiting(const command& request) const { return wires_.is_waiting(request); }
    void filter_refusals(refusal_filter* by) noexcept { wires_.filter_refusals(by); }
    bool withdraw(command& request) { return wires_.withdraw(request); }
    // Subscribes now if the link is up, and again on every later link before it counts as up. Not on a link that speaks
    // RESP2, unless it only listens.
    void subscribe(std::string channel);
    // The server has confirmed that on the present link.
    bool hears(std::string_view channel) const;
    // An answer shows that this link cannot be used any more. The session drops it and connects again.
    void distrust(const failure& why, instant now) { lose_link(why, now); }
    // Ends everything: written commands as unknown, waiting ones as client_closed. The only wish left is to hang up.
    void close(instant now);

    // --- for the driver
    // The driver must find out the address and call found(), or failed() if nobody knows it.
    bool take_seek_wish() noexcept { return std::exchange(seek_wish_, false); }
    // The present address of the server. The session uses it at once.
    void found(const server_address& there, instant now);
    // The driver must ask settings().logins, and call one of the next two. One question at a time.
    bool take_login_wish() noexcept { return std::exchange(login_wish_, false); }
    void log_in_with(login given, instant now);
    void no_login(const failure& why, instant now);
    bool take_connect_wish() noexcept { return std::exchange(connect_wish_, false); }
    // The link was given up, but the driver has not closed it yet. Events of that link must be ignored.
    bool wishes_hang_up() const noexcept { return hang_up_wish_; }
    bool take_hang_up_wish() noexcept { return std::exchange(hang_up_wish_, false); }
    bool has_output() const noexcept { return linked() && wires_.has_output(); }
    std::string_view begin_write(instant now) { return wires_.begin_write(now); }
    void end_write() noexcept { wires_.end_write(); }
    std::span<char> prepare(std::size_t at_least) { return room_ = wires_.prepare(at_least); }
    void received(std::size_t count, instant now);
    // The peer is reached; the TLS handshake is in progress.
    void reached() noexcept { shaking_hands_ = true; }
    void connected(instant now);
    void failed(failure why, instant now);
    void on_timer(instant now);
    // When on_timer() should be called at the latest.
    instant deadline() const noexcept;

private:
    enum class state : std::uint8_t { resting, seeking, asking, connecting, greeting, settling, up, closed };
    class greeting_command;
    class subscribe_command;
    class login_command;

    void start_attempt(instant now);
    void start_connecting();
    void connect_now();
    void ask_for_login();
    void greeting_refused(const failure& why, instant now);
    void send_login(login given, instant now);
    void logged_in(const reply_view& reply, instant now);
    void ask_before_expiry(const std::optional<std::chrono::milliseconds>& expires_in, instant now);
    void ask_again_later(const std::string& why, instant now);
    void send_greeting(std::string payload, greeting::reader* read);
    void greet_in_resp2();
    bool may_subscribe() const noexcept { return facts_.resp == 3 || settings_.use == link_use::wakes; }
    void answered(greeting::reader* read, const reply_view& reply, instant now);
    void subscribed(const std::string& channel, const reply_view& reply, instant now);
    void greeting_answered(instant now);
    void settle(instant now);
    void come_up(instant now);
    void send_subscription(const std::string& channel);
    // suspected: the reason is a guess, and another attempt may succeed.
    enum class news { failed, suspected, moved };
    void end_link(const failure& why, news what, instant now);
    void lose_link(const failure& why, instant now) { end_link(why, news::failed, now); }
    bool is_being_made() const noexcept {
        return state_ == state::connecting || state_ == state::greeting || state_ == state::settling;
    }
    void check_health(instant now);
    failure why_too_slow() const;
    failure due_for_login() const;
    std::chrono::nanoseconds next_rest();

    server_settings settings_;
    session_listener& listener_;
    multiplexer wires_;
    std::span<char> room_;  // for the bytes that the driver reads
    state state_ = state::resting;
    bool seek_wish_ = false;
    bool found_unasked_ = false;  // the next attempt goes there without seeking
    bool connect_wish_ = false;
    bool login_wish_ = false;
    bool login_asked_ = false;                  // and not answered yet
    instant ask_login_at_ = never;              // on the present link
    unsigned vain_logins_ = 0;                  // on the present link
    std::unique_ptr<login_command> new_login_;  // the last on the present link
    std::optional<login> refused_login_;        // by the last greeting
    bool hang_up_wish_ = false;
    bool was_up_ = false;
    bool shaking_hands_ = false;
    bool heard_bytes_ = false;  // since this link was connected
    instant attempt_started_{};
    instant rest_until_{};
    instant last_heard_{};
    unsigned failed_attempts_ = 0;
    jitter jitter_;
    failure last_failure_{errc::unreachable, ""};
    server_facts facts_;
    server_facts previous_;  // of the last link that was up; its client_id is 0 if there was none
    std::map<std::string, bool, std::less<>> channels_;  // whether the present link has confirmed it
    std::vector<std::unique_ptr<command>> greetings_;    // in flight on this link
    std::unique_ptr<greeting_command> ping_;
    std::size_t greetings_open_ = 0;
};

}  // namespace holdfast::redis
