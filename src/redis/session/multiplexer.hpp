// Many callers, one connection.
//
// Commands wait in line until the link can take bytes; whatever waits when a write starts goes out in that
// write, and nobody waits to fill a batch. Replies come back in the order the commands were written, so the
// n-th reply belongs to the n-th written command; push messages stand between them and are told apart by
// their type alone.
//
// Sans-I/O: the owner moves the bytes. Not thread-safe: lives in the client's serial section.
//
// Invariants:
//  (1) A command is in exactly one of waiting_, first_ and written_, or in none (idle, done).
//  (2) written_ is in wire order. A command enters it when the write that carries it begins, not when it ends: from
//      then on the server may have seen it.
//  (3) Replies and pushes are handed out in wire order; nothing of an earlier link is handed out after link_down().
//  (4) SUBSCRIBE and SSUBSCRIBE have no reply in RESP3: the push that confirms one is its answer, an error reply is
//      its refusal. That push is known by its kind and channel while the command is the oldest unanswered one.
//  (5) A command answered NOSCRIPT is put back in line with the script's text, once; its owner does not notice. Such
//      commands keep their order among themselves and go before the others: what was asked first runs first. One that
//      its owner abandoned is not put back: its undo may have run already. One that others must not overtake has its
//      text along, unless another has brought it on this link.
//  (6) SUNSUBSCRIBE cannot be answered by its push: the owner of a slot that moves away sends the same push unasked,
//      and answers a later SUNSUBSCRIBE by an error. So a PING with the channel's name goes behind it and is the
//      answer; one error before that is dropped, and the push is for the listener.
//  (7) ASKING goes in front of its command, in the same write; its answer is dropped. The server forgets it after that
//      one command, so a command that is put back has it again.
//  (8) A filter may take a command that was answered by an error, but no abandoned one: its undo may have run already.
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

// Gets what the server says unasked. The view is valid during the call only.
class push_listener {
public:
    virtual void on_push(const reply_view& message, instant now) = 0;

protected:
    ~push_listener() = default;
};

// Looks at the errors that commands are answered with, before their owners do: some are for whoever routes commands.
class refusal_filter {
public:
    // True: taken. The command is idle, and the filter's to submit again or to end. May give the link up.
    virtual bool takes(command& request, const reply_view& refusal, instant now) = 0;

protected:
    ~refusal_filter() = default;
};

class multiplexer {
public:
    explicit multiplexer(resp_limits limits = {}) : reader_(limits) {}

    // --- commands
    // -------------------------------------------------------------------------------------------
    void submit(command& request);
    // Ahead of everything that waits, and also while the gate is closed: for the greeting of a new link.
    void submit_first(command& request);
    // True if it had not been written: it never will be, and is idle again. False: too late, an answer will come.
    bool withdraw(command& request);
    bool is_waiting(const command& request) const { return waiting_.contains(request); }
    // Not those of submit_first(). They are idle again.
    std::deque<command*> take_waiting();
    // Nobody, unless this was called. Not asked about submit_first() commands.
    void filter_refusals(refusal_filter* by) noexcept { filter_ = by; }
    // While the gate is closed only submit_first() commands are written.
    void open_gate() noexcept { gate_open_ = true; }

    std::size_t waiting() const noexcept { return waiting_.size() + first_.size(); }
    std::size_t unanswered() const noexcept { return written_.size(); }
    // When the oldest unanswered command was written; `never` if there is none.
    instant oldest_unanswered() const noexcept;
    // The earliest deadline among the waiting commands.
    instant earliest_deadline() const noexcept { return waiting_.earliest_deadline(); }
    // Ends every waiting command whose deadline has passed.
    void expire(const failure& why, instant now);
    // Ends every waiting command.
    void fail_waiting(const failure& why, instant now);
    // Ends those that do not wait for the first link.
    void fail_impatient(const failure& why, instant now);

    // --- writing: begin_write(), move the bytes, end_write()
    // --------------------------------------------------
    bool has_output() const noexcept { return !first_.empty() || (gate_open_ && !waiting_.empty()); }
    // Everything that waits, encoded. The view is valid until end_write() or link_down().
    std::string_view begin_write(instant now);
    void end_write() noexcept { output_.clear(); }

    // --- reading: prepare(), commit(), deliver()
    // ----------------------------------------------------------------
    std::span<char> prepare(std::size_t at_least) { return reader_.prepare(at_least); }
    void commit(std::size_t count) { reader_.commit(count); }
    // Hands out every complete reply and push. A failure means the link must be given up.
    std::optional<failure> deliver(push_listener& pushes, instant now);

    // --- the link
    // ---------------------------------------------------------------------------------------------
    // Written commands end as "outcome unknown"; waiting ones stay; the gate closes. The buffers are left
    // alone: the old stream may still be reading into one and writing from the other until the owner has closed it.
    void link_down(const failure& why, instant now);
    // The old stream is closed, a new one connected.
    void link_up();

private:
    static void fail_all(const std::deque<command*>& ended, const failure& why, instant now);
    void write(command& request, instant now);
    bool brings_script(const command& request);
    bool confirms_subscription(const reply_view& push) const;
    bool retry_with_text(command& request, const reply_view& reply);
    bool filter_takes(command& request, const reply_view& reply, instant now);
    // Hands a reply to whom it belongs; nothing, or why the link must be given up.
    std::optional<failure> answer(const reply_view& reply, instant now);

    resp_reader reader_;
    refusal_filter* filter_ = nullptr;
    std::deque<command*> first_;
    command_queue waiting_;
    std::deque<command*> written_;
    std::string output_;
    std::vector<const script*> brought_;  // on this link, with their text
    bool gate_open_ = false;
    unsigned link_ = 0;  // counts link_down(); deliver() stops when a callback ended its link
};

}  // namespace holdfast::redis
