// One simulated redis-server with its connections. It answers what the server model does not know (HELLO, CLIENT, INFO,
// SUBSCRIBE, closed links) and passes everything that touches keys to the model.
//
// Its clock starts anywhere, runs a little fast or slow (within the drift allowance), and may jump. As on a real
// server, an answer leaves after the pushes that its command caused.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server_model/server_model.hpp"
#include "world/link.hpp"

namespace holdfast::sim {

using words = std::vector<std::string_view>;

class server;

/// Receives every script call, before and after it runs.
class script_watcher {
public:
    virtual void before_script(server& at, const words& command) = 0;
    virtual void after_script(const words& command, const value& answer) = 0;

protected:
    ~script_watcher() = default;
};

/// What a member of a Cluster knows about itself and the other members.
class membership : public slot_guard {
public:
    virtual bool is_replica() const = 0;
    /// The RESP bytes of the answer to CLUSTER SHARDS.
    virtual std::string shards() const = 0;

protected:
    ~membership() = default;
};

/// True if the script did not run and has to be sent again, later or elsewhere.
bool is_sent_again(const value& answer);
/// True if a member of a Cluster has stopped the script in the middle.
bool is_half_run(const value& answer);

struct server_options {
    std::shared_ptr<script_engine> engine;
    bool kill_allowed = true;         // false: the ACL forbids CLIENT KILL
    bool pushes_overtake = false;     // mutant: a push overtakes the answers before it
    bool runs_look_alike = false;     // mutant: all runs have the same run id
    bool uptimes_look_exact = false;  // mutant: clients round an uptime up instead of down
    bool acks_write_nothing = false;  // mutant: no write precedes a client's WAIT
    key_check undeclared_keys = key_check::strict;
    std::optional<double> rate = {};       // of its clock; nothing: drawn, and how wrong its answers are, too
    unsigned half_run_percent = 0;         // percentage of scripts on a leaving slot that are stopped at their very end
    bool asks_remembered = false;          // mutant: one ASK redirects all commands of its slot
    bool slots_leave_silently = false;     // mutant: clients are not told that a slot has left
    bool half_runs_look_refused = false;   // mutant: clients take a stopped script for one that did not run
    bool confirm_answers_ignored = false;  // mutant: clients ignore whether the hold that they confirm exists
    bool lease_left_ignored = false;       // mutant: clients ignore how much of its lease is left
    bool moved_keys_unconfirmed = false;   // mutant: keys that have moved are never confirmed
    /// Mutants: by the text of a script, the text to run instead.
    std::map<std::string, std::string, std::less<>> replaced_scripts;
};

class server {
public:
    server(timeline& time, random_stream random, server_options options, script_watcher& watcher);

    // --- links
    bool accepts() const { return running_; }
    void accept(link& fresh);
    void received(link& from, const packet& what);

    // --- time
    std::int64_t now_us() const;
    /// Shifts the clock and the start time together: not a clock that is set while running.
    void set_clock(std::int64_t us) {
        const std::int64_t by = us - now_us();
        offset_us_ += by;
        started_us_ += by;
        told_us_ += by;
    }
    void begin_with_clock_ahead(nanoseconds by) {
        set_clock(now_us() + std::chrono::duration_cast<microseconds>(by).count());
    }
    void jump(nanoseconds by) {
        offset_us_ += std::chrono::duration_cast<microseconds>(by).count();
        told_us_ += std::chrono::duration_cast<microseconds>(by).count();
    }

    // --- faults
    bool stalls() const { return time_.now() < stalled_until_; }
    void stall_until(instant then) { stalled_until_ = std::max(stalled_until_, then); }
    void forbid_kill() { options_.kill_allowed = false; }
    void flush_scripts() { run({"SCRIPT", "FLUSH"}); }
    void stop();
    void start(server_model::snapshot data);
    /// A replica takes over at once with this data, an earlier state: all links are cut. The replica is another process
    /// (run id) on another machine, whose clock differs by `clock_ahead`. Unlike a restarted server it has a long
    /// uptime. Expiries stay as they are, because replicas store absolute ones.
    void fail_over(server_model::snapshot data, nanoseconds clock_ahead);
    void close(link& which);

    // --- a replica
    /// From now on a replica follows with this lag; WAIT reports it.
    void be_followed(random_stream::span lag) { lag_ = lag; }
    /// The replica receives nothing before then.
    void hold_replica_until(instant then) { replica_held_until_ = std::max(replica_held_until_, then); }
    const server_model::snapshot& replica() const { return replica_; }
    /// True if the replica has received every key that moved to or from this member.
    bool replica_knows_of_moves() const { return replicated_ >= moved_; }

    // --- Cluster
    /// Makes this server a member of a Cluster. `as` decides which slots it refuses, and stays owned by the caller.
    void join(const membership* as);
    /// Moves a key to another member, with its remaining time to live.
    void migrate(const std::string& key, server& to);
    /// Another member owns a slot now: unsubscribes the listeners of its channels and tells them.
    void slot_left(const std::function<bool(std::string_view)>& is_in_it);

    void drop(const std::string& key);
    /// Becomes a replica and keeps the links of its clients. Its data as a replica is not modelled.
    void step_down();
    /// Becomes a primary with this data and this clock; run id and links stay.
    void step_up(server_model::snapshot data, std::int64_t clock_us);

    /// Runs a command from outside at once, wherever its slot is.
    value run(const std::vector<std::string>& command);
    server_model::snapshot snapshot() const { return model_.take_snapshot(); }
    /// By its own clock; nothing: none of its keys expires.
    std::optional<std::int64_t> first_expiry_ms() {
        model_.set_time(now_us());
        return model_.first_expiry_ms();
    }
    /// As in the scripts, a channel with a brace is a sharded one.
    bool listens(std::string_view channel) const {
        const bool sharded = channel.find('{') != channel.npos;
        return model_.listens(channel, sharded ? channel_kind::sharded : channel_kind::plain);
    }
    /// The present value of a key; null if it does not exist.
    const entry* peek(std::string_view key) {
        model_.set_time(now_us());
        return model_.peek(key);
    }
    /// Its living keys, one line each.
    std::string dump() {
        model_.set_time(now_us());
        return model_.dump();
    }
    std::uint64_t scripts_run() const { return scripts_run_; }
    /// When the client sent the command that runs, or ran last.
    instant command_sent() const { return command_sent_; }

private:
    void draw_script_clock();
    void cut_all();
    void read(link& from);
    void serve(link& from);
    void answer(link& to, const words& command);
    std::string greeting(const link& to) const;
    std::int64_t uptime_s();
    std::string info();
    bool tells_little() const { return denies_info_ && member_ == nullptr && !lag_; }
    value execute(const words& command, asking asked);
    value run_script(const words& command, asking asked);
    words with_replaced(const words& command) const;
    bool is_stopped_half_way(const words& command);
    value as_clients_see_it(value answer) const;
    value confirm_answer_as_clients_see_it(std::string_view lock, value answer) const;
    value kill(const words& command);
    bool may_have_changed_something(const words& command, std::uint64_t writes_before) const;
    void note_write(link& by, const words& command);
    void note_move();
    void replicate();
    void replicated(std::uint64_t writes, server_model::snapshot data);
    void wait(link& to, const words& command);
    void end_wait(link& to);
    void begin_history(const server_model::snapshot& data);
    void begin_run(server_model::snapshot data);
    void subscribe(link& to, std::string_view channel);
    void listen_in_shard(link& to, const words& command, asking asked);
    void deliver(const message& what);

    timeline& time_;
    random_stream random_;
    server_options options_;
    script_watcher& watcher_;
    server_model model_;
    const membership* member_ = nullptr;
    std::map<std::uint64_t, link*> links_;  // open, as the server sees it
    std::map<std::string, std::string, std::less<>> replaced_sha1_;
    std::uint64_t next_link_ = 1;
    std::uint64_t runs_ = 0;
    std::set<std::string, std::less<>> moved_in_keys_;  // keys that have ever arrived by a move
    std::uint64_t histories_ = 0;                       // counts the server's replication histories
    std::uint64_t scripts_run_ = 0;
    instant command_sent_{};
    bool running_ = true;
    instant stalled_until_{};
    std::optional<random_stream::span> lag_;
    server_model::snapshot replica_;
    instant replica_held_until_{};
    instant last_replicated_{};     // time of the last replication, perhaps in the future
    std::uint64_t writes_ = 0;      // number of writes
    std::uint64_t replicated_ = 0;  // how many of them the replica has
    std::uint64_t moved_ = 0;       // number of the last write that moved a key
    std::uint64_t waits_ = 0;       // number of WAITs so far
    std::int64_t told_us_ = 0;      // the end of the last script, by its own clock: it does not go back behind that
    random_stream facts_random_;
    bool denies_info_ = false;  // the ACL forbids INFO
    std::int64_t offset_us_;
    std::int64_t started_us_;  // by its own clock
    double rate_;
};

}  // namespace holdfast::sim
