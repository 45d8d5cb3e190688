// One request to a server and what becomes of it.
//
// A command is owned by whoever asks. It must stay where it is from submit() until exactly one of on_reply()
// and on_failure() was called; then it is the owner's again and may be used anew.
//
//     idle --submit--> waiting --write began--> written --reply--> done
//                         |                        |
//                         | deadline, withdraw     | link lost: outcome unknown
//                         v                        v
//                        done                     done
//
// A waiting command survives the loss of a link and goes out on the next one. A written one does not: whether
// the server ran it is unknown, and only the layer above can tell whether to repeat or to undo it.
#pragma once

#include "base/clock.hpp"
#include "base/failure.hpp"
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

class command {
public:
    enum class state : std::uint8_t { idle, waiting, written, done };

    virtual ~command() = default;

    // The views inside are valid during the call only.
    virtual void on_reply(const reply_view& reply, instant now) = 0;
    virtual void on_failure(const failure& why, instant now) = 0;
    // To one who asks for replicas in a Cluster, before the answer: what it asks about was there at some time after
    // that instant, and then had so much left of its lease.
    virtual void on_shown(std::chrono::milliseconds /*left*/, instant /*asked_at*/) {}

    state life() const noexcept { return state_; }

    // The last instant at which it cannot have been sent yet: when the write that carried it began.
    instant written_at() const noexcept { return written_at_; }

    // If it is still waiting then, it ends with the reason why the link is not up.
    void give_up_at(instant deadline) noexcept { deadline_ = deadline; }
    instant deadline() const noexcept { return deadline_; }

    // Waits for the first link, too, until its deadline. Without it, it ends with the failure of the attempt to connect
    // where there has been no link yet. Lasts until the payload is set anew.
    void wait_for_first_link() noexcept { waits_for_first_link_ = true; }
    bool waits_for_first_link() const noexcept { return waits_for_first_link_; }

    // Nobody wants it to run any more. It still ends with an answer or a failure, but is not sent again where
    // the server did not know the script. Lasts until the next submit().
    void abandon() noexcept { abandoned_ = true; }

    // Without a script: `payload` is the whole encoded command. With one: it is the arguments that follow the
    // script (numkeys, keys, arguments), `payload_arguments` of them, so that EVALSHA and EVAL differ only in
    // what precedes.
    void set_payload(std::string encoded) noexcept;
    std::string& script_payload(const script& source, std::uint32_t payload_arguments) noexcept;
    // The same script and arguments as `other` has.
    void copy_script(const command& other);
    const script* source() const noexcept { return script_; }
    // With the script's text at once: the server cannot miss it. Lasts until the payload is set anew.
    void send_text() noexcept { send_text_ = true; }
    // With the text if it is the first such command of its script on its link. What goes out behind it runs behind it
    // then, and not before a second try. Lasts as long.
    void send_text_at_first() noexcept { text_at_first_ = true; }
    // SUBSCRIBE of one channel. In RESP3 the server confirms it by a push and refuses it by an error reply.
    void set_subscription(std::string_view channel);
    // SSUBSCRIBE, which only the owner of the channel's slot takes.
    void set_sharded_subscription(std::string_view channel);
    // SUNSUBSCRIBE of one channel, answered when the server has dealt with it, whether there was such a subscription or
    // not, and whoever owns the slot by now. See multiplexer.hpp, (6).
    void set_unsubscription(std::string_view channel);

    // What a Cluster sends it by: a script's first key, the second word of anything else. Empty if there is none. The
    // second word of a command without keys (PING aside) is not a key, but any server will do for such a command.
    std::string_view first_key() const noexcept;
    // A script of several keys finds them together or not at all, while they are moving one by one.
    bool has_several_keys() const noexcept;

    // In a Cluster: that the slot is moving is for the owner to hear at once (errc::moving), who has another way to
    // ask. Lasts until the payload is set anew.
    void tell_if_moving() noexcept { tells_if_moving_ = true; }
    // In a Cluster: it need not wait for its turn behind others of its slot that wait for the end of a move. Lasts as
    // long.
    void pass_others() noexcept { passes_others_ = true; }
    // The last answer came from where a slot is moving to.
    bool was_redirected() const noexcept { return asking_; }

private:
    friend class multiplexer;
    friend struct routing;

    enum class standing { answer, prelude, out_of_step };

    void reset_flags() noexcept;
    void append_to(std::string& out) const;
    // What a reply is to it, while it is the oldest unanswered command.
    standing look_at(const reply_view& reply) noexcept;

    const script* script_ = nullptr;
    std::string payload_;
    std::uint32_t payload_arguments_ = 0;
    state state_ = state::idle;
    bool confirmed_by_push_ : 1 = false;
    bool unsubscribes_ : 1 = false;
    bool send_text_ : 1 = false;  // EVAL with the text; mostly because the server answered NOSCRIPT
    bool text_at_first_ : 1 = false;
    bool abandoned_ : 1 = false;
    bool of_the_link_ : 1 = false;  // part of a greeting, a sign of life: no filter's business
    bool tells_if_moving_ : 1 = false;
    bool passes_others_ : 1 = false;
    bool waits_for_first_link_ : 1 = false;
    bool asking_ : 1 = false;       // with ASKING in front
    bool prelude_due_ : 1 = false;  // written, and a reply may come that is not its answer yet
    std::uint8_t hops_ = 0;         // redirects that were followed since its last rest
    std::uint8_t rests_ = 0;        // since it was submitted
    instant deadline_ = never;
    instant written_at_{};
};

// What only those do to a command who choose its server.
struct routing {
    // A new use of it, which nobody has refused yet.
    static void begin(command& request) noexcept {
        request.asking_ = request.abandoned_ = false;
        request.hops_ = request.rests_ = 0;
    }
    static void set_asking(command& request) noexcept { request.asking_ = true; }
    static bool tells_if_moving(const command& request) noexcept { return request.tells_if_moving_; }
    static bool passes_others(const command& request) noexcept {
        return request.passes_others_ || !request.has_several_keys();
    }

    // It waits for its server to be known, or reached, in no multiplexer's line yet.
    static void set_waiting(command& request) noexcept { request.state_ = command::state::waiting; }
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

    // One more redirect is to be followed. False: that were too many in a row, and it must rest before the next.
    static bool may_hop(command& request) noexcept {
        constexpr std::uint8_t most_in_a_row = 5;
        if (request.hops_ == most_in_a_row) return false;
        ++request.hops_;
        return true;
    }
    // How often it has rested before.
    static unsigned begin_rest(command& request) noexcept {
        request.hops_ = 0;
        return request.rests_ == UINT8_MAX ? request.rests_ : request.rests_++;
    }
};

}  // namespace holdfast::redis
