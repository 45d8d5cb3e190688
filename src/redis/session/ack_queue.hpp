// Asks how many replicas have the writes of a server.
//
// WAIT answers that, but only for writes of its own link, and it delays everything that is sent behind it. So the queue
// has a link of its own and sends a marker to the replicas before each WAIT. Replicas get all writes of a server in one
// order: a replica that has the marker has all earlier writes of all links. One such burst answers all requests that
// were made before it was sent. Later requests are answered by the next burst.
//
// The marker is a message to a channel without listeners. Unlike a key it needs no memory, so a full server that still
// renews can be asked, too. Members of a Cluster do not pass messages on to their replicas, and their writes may have
// moved to another member. There each request is a script of its own, which checks that the grant still exists and then
// writes something. One WAIT follows the scripts of all requests.
//
// Two links to one address need not lead to one process: one may be older than a failover. And a process may become a
// replica for a while and come back without its earlier writes. So a burst also asks for the identity of the server.
// The number counts only for writes of the same run with the same history as at the last burst. If the history is
// another, all requests made before that was known end as unknown. Nothing is known of a history that ended before the
// first burst. In a Cluster any run counts: the scripts show what it has.
//
// Sans-I/O. The owner calls flush() after every event, before output is sent. Lives in the client's serial section.
//
// Invariants:
//  (1) The number counts only if the marker before it, on the same link, succeeded: otherwise WAIT answers at once, and
//      the number means nothing.
//  (2) A request is answered by a burst that began after it was submitted.
//  (3) No on_reply() or on_failure() is called within submit() or withdraw(). Each is called after the request has left
//      the queue, so the queue is consistent.
//  (4) A link to another server than the newest request means is dropped, whatever was answered.
#pragma once

#include "base/clock.hpp"
#include "base/errc_table.hpp"
#include "redis/session/command.hpp"
#include "redis/session/greeting.hpp"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace holdfast::redis {

class session;

class ack_queue {
public:
    struct question {
        acknowledgement wanted;
        std::string_view run_id;  // of the server that did the write; empty: the user may not ask
    };

    // Publishes on the channel before it waits: see docs/protocol.md. Without a channel the server is a member of a
    // Cluster, and each request is a script. It answers with the ms that are left of its lease, and then has written
    // something, or with 0. The run in the question does not matter.
    explicit ack_queue(session& own_link, const std::string& channel = {});
    ~ack_queue();
    ack_queue(const ack_queue&) = delete;
    ack_queue& operator=(const ack_queue&) = delete;

    // Answered with the number of replicas that have all earlier writes, perhaps more than wanted. Fails with
    // outcome_unknown if the link broke or the server was another one, otherwise with the reason why it was not asked.
    void submit(command& request, const question& about);
    // True: it was in this queue, and will never be answered.
    bool withdraw(command& request);
    // Starts a burst for the waiting requests, unless one is in flight.
    void flush(instant now);
    // All requests fail.
    void give_up(const failure& why, instant now) {
        fail_all(queue_, why, now);
        fail_all(burst_, why, now);
    }

    // How often a run of a server had another history than at the last burst. Its earlier writes are lost, and answers
    // that tell of them may still be in flight on other links.
    unsigned lost_histories() const noexcept { return lost_histories_; }
    // The other queue has asked the same server. The first burst here sees a history that ended since then.
    void know_history_of(const ack_queue& other) {
        last_run_ = other.last_run_;
        last_history_ = other.last_history_;
    }

private:
    class part;
    class showing;
    struct entry {
        command* request;
        acknowledgement wanted;
        unsigned run;              // number of the run that its question named
        showing* shows = nullptr;  // in a Cluster, while in a burst
    };
    using entries = std::list<entry>;
    // Position of a request. A hundred thousand of them may be withdrawn at once.
    struct spot {
        entries* of;
        entries::iterator at;
    };

    bool is_in_cluster() const noexcept { return message_.empty(); }
    bool is_in_flight() const noexcept;
    command& take_first(entries& from);
    void move(entries::iterator each, entries& to);
    void refuse_those_without_run(instant now);
    void begin_burst(instant now);
    void say(instant now);
    void take_back_burst();
    void said(const reply_view& reply, instant now);
    void looked(const reply_view& reply, instant now);
    void counted(const reply_view& reply, instant now);
    void not_said(const failure& why, instant) { why_not_said_ = why; }
    void failed(const failure& why, instant now) { fail_all(burst_, why, now); }
    void fail_all(entries& which, const failure& why, instant now) {
        while (!which.empty()) routing::fail(take_first(which), why, now);
    }
    std::optional<failure> why_not(const entry& each, unsigned run) const;
    failure wrong_server() const;
    bool leads_elsewhere(const std::optional<failure>& trouble) const;
    bool has_new_history();

    session& link_;
    const std::string message_;  // encoded; empty in a Cluster
    std::string newest_run_;
    unsigned runs_ = 0;
    entries queue_;
    entries burst_;  // the requests of the burst in flight
    entries nameless_;
    std::unordered_map<const command*, spot> spots_;
    std::unique_ptr<part> say_;
    std::vector<std::unique_ptr<showing>> showings_;  // of the last burst, instead of say_
    std::unique_ptr<part> look_;
    std::unique_ptr<part> wait_;
    std::optional<failure> why_not_said_;
    replication_facts shown_;  // by the burst in flight
    std::string last_run_;     // at the last burst that was answered
    std::string last_history_;
    unsigned lost_histories_ = 0;
};

}  // namespace holdfast::redis
