// One request to a server, and its life.
//
// The caller owns the command. It must not be moved or destroyed from submit() until exactly one of on_reply() and
// on_failure() is called. Then the caller may use it again.
//
//     idle --submit--> waiting --write began--> written --reply--> done
//                         |                        |
//                         | deadline, withdraw     | link lost: outcome unknown
//                         v                        v
//                        done                     done
//
// A waiting command survives the loss of a link and goes out on the next one. A written one does not: whether the
// server ran it is unknown, and only the upper layer knows whether to repeat or to undo it.
#pragma once

#include "base/clock.hpp"
#include "base/errc_table.hpp"
#include "redis/resp/resp_reply.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

// A Lua script as the server knows it.
struct script {
    std::string_view name;  // "mutex/acquire"
    std::string_view sha1;  // 40 lower-case hex digits
    std::string_view text;
};

// How many replicas must acknowledge a write, and within what time.
struct acknowledgement {
    unsigned replicas = 0;  // 0: none is asked
    std::chrono::milliseconds within{0};

    friend bool operator==(const acknowledgement&, const acknowledgement&) = default;
};

class command {
public:
    enum class state : std::uint8_t { idle, waiting, written, done };

    virtual ~command() = default;

    // The views inside are valid during the call only.
    virtual void on_reply(const reply_view& reply, instant now) = 0;
    virtual void on_failure(const failure& why, instant now) = 0;
    // For a question about replicas in a Cluster, before the answer: the hold in question existed at some time after
    // `asked_at`, and had this much left of its lease.
    virtual void on_shown(std::chrono::milliseconds /*left*/, instant /*asked_at*/) {}

    state life() const noexcept { return state_; }

    // Lower bound for the time of sending: when the write that carried it began.
    instant written_at() const noexcept { return written_at_; }

    // A command that still waits then ends with the reason why the link is not up.
    void give_up_at(instant deadline) noexcept { deadline_ = deadline; }
    instant deadline() const noexcept { return deadline_; }

    // The owner does not want it to run any more. It still ends with an answer or a failure, but is not sent again, for
    // example after NOSCRIPT. Reset by the next submit().
    void abandon() noexcept { abandoned_ = true; }

    // Wishes that are reset when the payload is set.
    // It waits also for the first link, until its deadline. Otherwise it ends with the first failed attempt to connect.
    void wait_for_first_link() noexcept { waits_for_first_link_ = true; }
    bool waits_for_first_link() const noexcept { return waits_for_first_link_; }
    // Sends the text of the script at once, so that the server cannot answer NOSCRIPT.
    void send_text() noexcept { send_text_ = true; }
    // Sends the text with the first such command of the script on a link. Commands that are written behind it then run
    // behind it, and not before a second try.
    void send_text_at_first() noexcept { text_at_first_ = true; }
    // In a Cluster: TRYAGAIN goes to the owner of the command at once, who has another way to ask.
    void tell_if_moving() noexcept { tells_if_moving_ = true; }
    // In a Cluster: it overtakes other commands that wait for the end of a move of the slot.
    void pass_others() noexcept { passes_others_ = true; }

    // Without a script the payload is the whole encoded command. With a script it is the `payload_arguments` arguments
    // that follow the script (numkeys, keys, arguments): EVALSHA and EVAL differ only in what precedes them.
    void set_payload(std::string encoded) noexcept;
    std::string& script_payload(const script& source, std::uint32_t payload_arguments) noexcept;
    // The same script and arguments as `other` has.
    void copy_script(const command& other);
    const script* source() const noexcept { return script_; }
    // SUBSCRIBE of one channel. In RESP3 the server confirms it by a push and refuses it by an error reply.
    void set_subscription(std::string_view channel);
    // SSUBSCRIBE, which only the owner of the channel's slot takes.
    void set_sharded_subscription(std::string_view channel);
    // SUNSUBSCRIBE of one channel. Answered when the server has processed it, even if there was no such subscription or
    // the slot has another owner. See multiplexer.hpp, (6).
    void set_unsubscription(std::string_view channel);

    // The key by which a Cluster routes the command: the first key of a script, or the second word of another command.
    // Empty if there is none. The second word of a command without keys is not a key, but any server can run that.
    std::string_view first_key() const noexcept;
    // While a slot is moving key by key, a script of several keys runs only where all its keys are.
    bool has_several_keys() const noexcept;
    // The last answer came from the target of a moving slot.
    bool was_redirected() const noexcept { return asking_; }

private:
    friend class multiplexer;
    friend struct routing;

    enum class standing { answer, prelude, out_of_step };

    void reset_flags() noexcept;
    void append_to(std::string& out) const;
    // The meaning of a reply for this command, while it is the oldest unanswered one.
    standing look_at(const reply_view& reply) noexcept;

    const script* script_ = nullptr;
    std::string payload_;
    std::uint32_t payload_arguments_ = 0;
    state state_ = state::idle;
    bool confirmed_by_push_ : 1 = false;
    bool unsubscribes_ : 1 = false;
    bool send_text_ : 1 = false;  // EVAL with the text, mostly after NOSCRIPT
    bool text_at_first_ : 1 = false;
    bool abandoned_ : 1 = false;
    bool of_the_link_ : 1 = false;  // greeting or PING: filters do not see it
    bool tells_if_moving_ : 1 = false;
    bool passes_others_ : 1 = false;
    bool waits_for_first_link_ : 1 = false;
    bool asking_ : 1 = false;       // with ASKING before it
    bool prelude_due_ : 1 = false;  // a reply may come before its answer
    std::uint8_t hops_ = 0;         // redirects followed since its last rest
    std::uint8_t rests_ = 0;        // since it was submitted
    instant deadline_ = never;
    instant written_at_{};
};

// Operations on a command for those classes that choose its server.
struct routing {
    // The command is submitted anew.
    static void begin(command& request) noexcept {
        request.asking_ = request.abandoned_ = false;
        request.hops_ = request.rests_ = 0;
    }
    static void set_asking(command& request) noexcept { request.asking_ = true; }
    static bool tells_if_moving(const command& request) noexcept { return request.tells_if_moving_; }
    static bool passes_others(const command& request) noexcept {
        return request.passes_others_ || !request.has_several_keys();
    }

    // It waits for its server to be known or reached, in no multiplexer's queue yet.
    static void set_waiting(command& request) noexcept { request.state_ = command::state::waiting; }
    // It is a part of another command, which may have been written.
    static void set_written(command& request, instant at) noexcept {
        request.state_ = command::state::written;
        request.written_at_ = at;
    }
    static void set_idle(command& request) noexcept {
        request.state_ = command::state::idle;
        request.asking_ = false;
    }
    static void answer(command& request, const reply_view& reply, instant now) {
        request.state_ = command::state::done;
        request.on_reply(reply, now);
    }
    static void fail(command& request, const failure& why, instant now) {
        request.state_ = command::state::done;
        request.on_failure(why, now);
    }

    // Counts a redirect. False: too many in a row, the command must rest first.
    static bool may_hop(command& request) noexcept {
        constexpr std::uint8_t most_in_a_row = 5;
        if (request.hops_ == most_in_a_row) return false;
        ++request.hops_;
        return true;
    }
    // Returns how often it has rested before.
    static unsigned begin_rest(command& request) noexcept {
        request.hops_ = 0;
        return request.rests_ == UINT8_MAX ? request.rests_ : request.rests_++;
    }
};

}  // namespace holdfast::redis
