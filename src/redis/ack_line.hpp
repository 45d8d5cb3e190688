// Asks how many replicas have what the server did.
//
// WAIT tells it, but only of what was written on its own link, and it holds up everything that was sent behind it. So
// it has a link of its own, and a write of its own before each WAIT: replicas get all of a server's writes in one
// order, so whoever has that one has all that was done before, on whatever link. One such pair answers everybody who
// asked before it was sent; who asks meanwhile is answered by the next.
//
// Two links to one address need not lead to one process: one may be older than a failover. What was done there is
// covered only if it was done by the run of the server that the WAIT is answered by.
//
// Sans-I/O. flush() is called after every event, before output is sent. Lives in the client's serial section.
//
// Invariants:
//  (1) The number is believed only if the write before it, on the same link, was answered well: without a write of its
//      own on that link WAIT answers at once, and says nothing.
//  (2) A request is answered by a burst that began after it was submitted.
//  (3) Nobody's on_reply() or on_failure() is called within submit() or withdraw().
#pragma once

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "redis/acknowledgement.hpp"
#include "redis/command.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

class session;

class ack_line {
public:
    struct question {
        acknowledgement wanted;
        std::string_view run_id;  // of the server that did it; empty: we may not know
        std::string_view key;     // one that was written
    };

    ack_line(session& own_link, std::string client_id);
    ~ack_line();
    ack_line(const ack_line&) = delete;
    ack_line& operator=(const ack_line&) = delete;

    // Answered with how many replicas have all that was done there before this; perhaps more than wanted. Fails with
    // outcome_unknown if the link broke or the server was another in the end, else with why nobody could be asked.
    void submit(command& request, const question& about);
    // True: it was here, and will never be answered.
    bool withdraw(command& request);
    // Asks for those who wait, unless a burst is under way.
    void flush(instant now);

private:
    class own_write;
    class own_wait;
    struct entry {
        command* request;
        acknowledgement wanted;
        std::string run_id;
        std::string key;
    };

    bool is_under_way() const noexcept;
    void refuse_those_without_run(instant now);
    void begin_burst(instant now);
    void written(const reply_view& reply);
    void counted(const reply_view& reply, instant now);
    void failed(const failure& why, instant now);

    session& link_;
    const std::string client_id_;
    std::deque<entry> queue_;
    std::deque<entry> burst_;  // those that the pair under way is for
    std::unique_ptr<own_write> write_;
    std::unique_ptr<own_wait> wait_;
    std::optional<failure> why_not_written_;
};

}  // namespace holdfast::redis
