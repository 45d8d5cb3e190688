// Asks how many replicas have what the server did.
//
// WAIT tells it, but only of what was sent to replicas on behalf of its own link, and it holds up everything that was
// sent behind it. So it has a link of its own, and says something to the replicas before each WAIT: they get all of a
// server's writes in one order, so whoever has that has all that was done before, on whatever link. One such burst
// answers everybody who asked before it was sent; who asks meanwhile is answered by the next.
//
// What is said is a message to a channel that nobody listens to. Unlike a key it needs no memory, so that a server that
// is full, and still renews, can be asked, too. Members of a Cluster do not pass messages on to their replicas, and
// what they did may be with another member by now. There each request is a script of its own, which shows that what was
// done is still there, and writes something if it is: one for each who asked, and one WAIT for all of them.
//
// Two links to one address need not lead to one process: one may be older than a failover. And one process may be a
// replica for a while and come back without what it did before. So a burst also asks what the server is: the number
// counts for what was done by the same run of a server, which has the same history as at the last burst; if it has
// another, whoever asked before that was known is told that nobody knows. Of a history that ended before the first
// burst nothing is known. In a Cluster any run will do: the scripts show what it has.
//
// Sans-I/O. flush() is called after every event, before output is sent. Lives in the client's serial section.
//
// Invariants:
//  (1) The number is believed only if what was said before it, on the same link, was answered well: otherwise WAIT
//      answers at once, and says nothing.
//  (2) A request is answered by a burst that began after it was submitted.
//  (3) Nobody's on_reply() or on_failure() is called within submit() or withdraw().
//  (4) A link that leads to another server than the newest request is about is dropped, whatever was answered.
#pragma once

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "redis/resp/info_text.hpp"
#include "redis/session/acknowledgement.hpp"
#include "redis/session/command.hpp"

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
        std::string_view run_id;  // of the server that did it; empty: we may not know
    };

    // Publishes on that channel before it waits: see docs/protocol.md.
    ack_queue(session& own_link, const std::string& channel);
    // To a member of a Cluster. Each request is a script that is answered with the ms that are left of what it is
    // about, and then has written something, or with 0; the run in its question does not matter.
    explicit ack_queue(session& own_link);
    ~ack_queue();
    ack_queue(const ack_queue&) = delete;
    ack_queue& operator=(const ack_queue&) = delete;

    // Answered with how many replicas have all that was done there before this; perhaps more than wanted. Fails with
    // outcome_unknown if the link broke or the server was another in the end, else with why nobody could be asked.
    void submit(command& request, const question& about);
    // True: it was here, and will never be answered.
    bool withdraw(command& request);
    // Asks for those who wait, unless a burst is under way.
    void flush(instant now);
    // Nobody is to wait any longer for what this link may say.
    void give_up(const failure& why, instant now);

    // How often a run of a server had another history than at the last burst: what it did before is not there any more,
    // and answers that tell of it may still be under way on other links.
    unsigned lost_histories() const noexcept { return lost_histories_; }
    // That line has asked the same server: whatever ended since then is seen by the first burst here.
    void know_history_of(const ack_queue& other) {
        last_run_ = other.last_run_;
        last_history_ = other.last_history_;
    }

private:
    class part;
    class showing;
    struct encoded {
        std::string text;
    };
    struct entry {
        command* request;
        acknowledgement wanted;
        unsigned run;              // the how manieth that was named here
        showing* shows = nullptr;  // in a Cluster, and a burst
    };
    using entries = std::list<entry>;
    // Where a request is: there may be a hundred thousand of them, and all may be withdrawn at once.
    struct spot {
        entries* of;
        entries::iterator at;
    };

    ack_queue(session& own_link, encoded message);

    bool is_in_cluster() const noexcept { return message_.empty(); }
    bool is_under_way() const noexcept;
    command& take_first(entries& from);
    void move(entries::iterator each, entries& to);
    void refuse_those_without_run(instant now);
    void begin_burst(instant now);
    void say(instant now);
    void take_back_burst();
    void said(const reply_view& reply, instant now);
    void looked(const reply_view& reply, instant now);
    void counted(const reply_view& reply, instant now);
    void not_said(const failure& why, instant now);
    void failed(const failure& why, instant now);
    std::optional<failure> why_not(const entry& each, unsigned run) const;
    failure wrong_server() const;
    bool leads_elsewhere(const std::optional<failure>& trouble) const;
    bool has_new_history();

    session& link_;
    const std::string message_;  // encoded; empty in a Cluster
    std::string newest_run_;
    unsigned runs_ = 0;
    entries queue_;
    entries burst_;  // those that the burst under way is for
    entries nameless_;
    std::unordered_map<const command*, spot> spots_;
    std::unique_ptr<part> say_;
    std::vector<std::unique_ptr<showing>> showings_;  // of the last burst; said instead
    std::unique_ptr<part> look_;
    std::unique_ptr<part> wait_;
    std::optional<failure> why_not_said_;
    replication_facts shown_;  // by the burst under way
    std::string last_run_;     // of the last burst that was answered
    std::string last_history_;
    unsigned lost_histories_ = 0;
};

}  // namespace holdfast::redis
