// Many callers, one connection.
//
// Commands wait in a queue until the link can take bytes. Everything that waits when a write starts goes out in that
// write; no command waits to fill a batch. Replies come in the order of the commands, so the n-th reply belongs to the
// n-th written command. Push messages come between them and have their own type.
//
// Sans-I/O: the owner moves the bytes. Not thread-safe: lives in the client's serial section.
//
// Invariants:
//  (1) A command is in exactly one of waiting_, first_ and written_, or in none (idle, done).
//  (2) written_ is in wire order. A command enters it when the write that carries it begins: from then on the server
//      may have seen it.
//  (3) Replies and pushes are delivered in wire order. Nothing of an earlier link is delivered after link_down().
//  (4) SUBSCRIBE and SSUBSCRIBE have no reply in RESP3. The push that confirms one is its answer, an error reply is its
//      refusal. The push is recognized by kind and channel while the command is the oldest unanswered one.
//  (5) A command that is answered NOSCRIPT is sent again once, with the text of the script. Its owner does not notice.
//      Such commands keep their order and go before the others: what was asked first runs first. An abandoned command
//      is not sent again: its undo may have run already. A command that others must not overtake carries the text,
//      unless another command has sent it on this link.
//  (6) The push of SUNSUBSCRIBE cannot be its answer: the owner of a slot that moves away sends the same push unasked,
//      and answers a later SUNSUBSCRIBE by an error. So a PING with the name of the channel follows it, whose reply is
//      the answer. One error before that is dropped, and the push goes to the listener.
//  (7) ASKING precedes its command in the same write, and its answer is dropped. It is valid for one command only, so a
//      command that is sent again has it again.
//  (8) A filter may take a command that was answered by an error, but no abandoned one: its undo may have run already.
//  (9) A link that listens by RESP2 gets pushes as arrays, and sends nothing else than PING that is answered by one. So
//      an array that begins with a word of pub/sub is a push.
// (10) Commands, filter and listener are called when a change is complete: they may submit, withdraw or end the link.
#pragma once

#include "base/clock.hpp"
#include "redis/resp/resp_reader.hpp"
#include "redis/session/command.hpp"
#include "redis/session/command_queue.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Receives push messages. The view is valid during the call only.
class push_listener {
public:
    virtual void on_push(const reply_view& message, instant now) = 0;

protected:
    ~push_listener() = default;
};

// Sees error replies before the owners of the commands: some concern the routing of commands.
class refusal_filter {
public:
    // True: taken. The command is idle, and the filter submits it again or ends it. May give the link up.
    virtual bool takes(command& request, const reply_view& refusal, instant now) = 0;

protected:
    ~refusal_filter() = default;
};

class multiplexer {
public:
    explicit multiplexer(resp_limits limits = {}) : reader_(limits) {}

    // --- commands
    void submit(command& request);
    // Before everything that waits, also while the gate is closed: for the greeting of a new link.
    void submit_first(command& request);
    // True: it was not written, never will be, and is idle again. False: too late, an answer will come.
    bool withdraw(command& request);
    bool is_waiting(const command& request) const { return waiting_.contains(request); }
    // The commands of submit(), idle again.
    std::deque<command*> take_waiting();
    // The link only listens, by RESP2.
    void listen_in_resp2() noexcept { listens_in_resp2_ = true; }
    // There is none at first. It does not see commands of submit_first().
    void filter_refusals(refusal_filter* by) noexcept { filter_ = by; }
    // While the gate is closed only submit_first() commands are written.
    void open_gate() noexcept { gate_open_ = true; }

    std::size_t waiting() const noexcept { return waiting_.size() + first_.size(); }
    std::size_t unanswered() const noexcept { return written_.size(); }
    // When the oldest unanswered command was written; `never` if there is none.
    instant oldest_unanswered() const noexcept { return written_.empty() ? never : written_.front()->written_at_; }
    instant earliest_deadline() const noexcept { return waiting_.earliest_deadline(); }
    // These end waiting commands: those whose deadline has passed, all, those that do not wait for the first link.
    void expire(const failure& why, instant now) {
        if (now < earliest_deadline()) return;
        fail_all(waiting_.take_due(now), why, now);
    }
    void fail_waiting(const failure& why, instant now) { fail_all(waiting_.take_all(), why, now); }
    void fail_impatient(const failure& why, instant now);

    // --- writing: begin_write(), move the bytes, end_write()
    bool has_output() const noexcept { return !first_.empty() || (gate_open_ && !waiting_.empty()); }
    // Everything that waits, encoded. The view is valid until end_write() or link_down().
    std::string_view begin_write(instant now);
    void end_write() noexcept { output_.clear(); }

    // --- reading: prepare(), commit(), deliver()
    std::span<char> prepare(std::size_t at_least) { return reader_.prepare(at_least); }
    void commit(std::size_t count) { reader_.commit(count); }
    // Delivers every complete reply and push. A failure means that the link must be given up.
    std::optional<failure> deliver(push_listener& pushes, instant now);

    // --- the link
    // Written commands end as "outcome unknown", waiting ones stay, the gate closes. The buffers stay untouched: the
    // old stream may still use them until the owner has closed it.
    void link_down(const failure& why, instant now);
    // The old stream is closed, a new one connected.
    void link_up() {
        output_.clear();
        reader_.reset();
    }

private:
    static void fail_all(const std::deque<command*>& ended, const failure& why, instant now);
    void write(command& request, instant now);
    bool brings_script(const command& request);
    bool is_push(const reply_view& reply) const;
    bool confirms_subscription(const reply_view& push) const;
    bool retry_with_text(command& request, const reply_view& reply);
    bool filter_takes(command& request, const reply_view& reply, instant now);
    // Gives a reply to its command. Returns why the link must be given up, if so.
    std::optional<failure> answer(const reply_view& reply, instant now);

    resp_reader reader_;
    refusal_filter* filter_ = nullptr;
    std::deque<command*> first_;
    command_queue waiting_;
    std::deque<command*> written_;
    std::string output_;
    std::vector<const script*> brought_;  // sent with their text on this link
    bool gate_open_ = false;
    bool listens_in_resp2_ = false;
    unsigned link_ = 0;  // counts link_down(); deliver() stops when a callback has ended its link
};

}  // namespace holdfast::redis
