// One simulated redis-server with its connections: what the node does not know of (HELLO, CLIENT, INFO,
// SUBSCRIBE, links that are closed) is answered here; everything that touches keys goes to the node.
//
// Its clock is its own: it starts anywhere, runs a little fast or slow (within what the drift allowance
// covers), and may be made to jump. An answer leaves after the pushes that the same command caused, as on a
// real server.
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

/// Sees every script call, before and after.
class script_watcher {
public:
    virtual void before_script(server& at, const words& command) = 0;
    virtual void after_script(const words& command, const value& answer) = 0;

protected:
    ~script_watcher() = default;
};

/// What a member of a Cluster knows of itself and the others.
class membership : public slot_guard {
public:
    virtual bool is_replica() const = 0;
    /// The answer to CLUSTER SHARDS, as bytes.
    virtual std::string shards() const = 0;

protected:
    ~membership() = default;
};

/// A script that did not run, and is to be sent again as a whole, later or elsewhere.
bool is_sent_again(const value& answer);
/// A script that a member of a Cluster has stopped in its middle.
bool is_half_run(const value& answer);

struct server_options {
    std::shared_ptr<script_engine> engine;
    bool kill_allowed = true;         // false: the ACL forbids CLIENT KILL
    bool pushes_overtake = false;     // mutant: a push does not wait for the answers before it
    bool runs_look_alike = false;     // mutant: nobody can tell one run from another
    bool uptimes_look_exact = false;  // mutant: clients take an uptime for as long as it may be at most
    bool acks_write_nothing = false;  // mutant: a client's WAIT has no write of its own before it
    unsigned half_run_percent = 0;    // of the scripts on a slot that is leaving: so many are stopped at their very end
    bool asks_remembered = false;     // mutant: clients send all of a slot to where one command of it was sent by ASK
    bool slots_leave_silently = false;     // mutant: clients do not hear that a slot has left
    bool half_runs_look_refused = false;   // mutant: clients take a script that was stopped for one that did not run
    bool confirm_answers_ignored = false;  // mutant: clients do not look whether what they confirm is there
    bool lease_left_ignored = false;       // mutant: nor for how long
    bool moved_keys_unconfirmed = false;   // mutant: what has come by a move is never confirmed
    /// Mutants: called with a script's text, returns the text to run instead.
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
    /// From when it was started on: not as a clock that is set.
    void set_clock(std::int64_t us) {
        const std::int64_t by = us - now_us();
        offset_us_ += by;
        started_us_ += by;
    }
    void begin_with_clock_ahead(nanoseconds by) {
        set_clock(now_us() + std::chrono::duration_cast<microseconds>(by).count());
    }
    void jump(nanoseconds by) { offset_us_ += std::chrono::duration_cast<microseconds>(by).count(); }

    // --- faults
    bool stalls() const { return time_.now() < stalled_until_; }
    void stall_until(instant then) { stalled_until_ = std::max(stalled_until_, then); }
    void forbid_kill() { options_.kill_allowed = false; }
    void flush_scripts() { run({"SCRIPT", "FLUSH"}); }
    void stop();
    void start(server_model::snapshot data);
    /// A replica takes over at once: all links are cut, and these, an earlier moment's, are the data. It is another
    /// process (run id) on another machine, whose clock differs by so much; but unlike one that was restarted it has
    /// been up for long. Expiries stay as they are: replicas are told absolute ones.
    void fail_over(server_model::snapshot data, nanoseconds clock_ahead);
    void close(link& which);

    // --- a replica
    /// From now on one follows, behind by so much; WAIT tells of it.
    void be_followed(random_stream::span lag) { lag_ = lag; }
    /// It gets nothing before that.
    void hold_replica_until(instant then) { replica_held_until_ = std::max(replica_held_until_, then); }
    const server_model::snapshot& replica() const { return replica_; }
    /// It has whatever came from another member, or went there.
    bool replica_knows_of_moves() const { return replicated_ >= moved_; }

    // --- Cluster
    /// From now on a member, which refuses what that says; it stays the caller's.
    void join(const membership* as);
    /// A key goes to the other, with what is left of its life.
    void migrate(const std::string& key, server& to);
    /// A slot is another's now: who listens on one of its channels is told that it listens no more.
    void slot_left(const std::function<bool(std::string_view)>& is_in_it);

    void drop(const std::string& key);
    /// It leads no more, and leaves its clients the links that they have. What it has as a replica is not modelled.
    void step_down();
    /// It leads from now on, with these data; its run and its links stay what they are. Its clock is set to that time.
    void step_up(server_model::snapshot data, std::int64_t clock_us);

    /// A command of somebody outside, at once. On a member it does not matter where the slot is.
    value run(const std::vector<std::string>& command);
    server_model::snapshot snapshot() const { return model_.take_snapshot(); }
    /// A channel with a brace is a sharded one, as the scripts have it.
    bool listens(std::string_view channel) const {
        const bool sharded = channel.find('{') != channel.npos;
        return model_.listens(channel, sharded ? channel_kind::sharded : channel_kind::plain);
    }
    /// A key as it is now; null if there is none.
    const entry* peek(std::string_view key) {
        model_.set_time(now_us());
        return model_.peek(key);
    }
    std::uint64_t scripts_run() const { return scripts_run_; }
    /// When the client sent the command that runs, or ran last.
    instant command_sent() const { return command_sent_; }

private:
    void cut_all();
    void read(link& from);
    void serve(link& from);
    void answer(link& to, const words& command);
    std::string greeting(const link& to) const;
    std::int64_t uptime_s() const;
    std::string info() const;
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
    std::map<std::uint64_t, link*> links_;  // those the server believes in
    std::map<std::string, std::string, std::less<>> replaced_sha1_;
    std::uint64_t next_link_ = 1;
    std::uint64_t runs_ = 0;
    std::set<std::string, std::less<>> moved_in_keys_;  // keys that have come by a move, ever
    std::uint64_t histories_ = 0;                       // one ends where it leads no more, or another does
    std::uint64_t scripts_run_ = 0;
    instant command_sent_{};
    bool running_ = true;
    instant stalled_until_{};
    std::optional<random_stream::span> lag_;
    server_model::snapshot replica_;
    instant replica_held_until_{};
    instant last_replicated_{};     // or will be
    std::uint64_t writes_ = 0;      // done
    std::uint64_t replicated_ = 0;  // of these, by the replica
    std::uint64_t moved_ = 0;       // until then; the last of these was a key that came or went
    std::uint64_t waits_ = 0;       // ever
    std::int64_t offset_us_;
    std::int64_t started_us_;  // by its own clock
    double rate_;
};

}  // namespace holdfast::sim
