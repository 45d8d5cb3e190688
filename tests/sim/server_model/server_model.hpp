// A model of a redis-server: a keyspace, subscriptions, known scripts and a clock that is set from outside.
//
// It answers as redis-server 7.0 does on RESP2, for the commands that lock scripts use (see the tables in
// *_commands.cpp). It is deterministic: the same calls give the same answers. The differential test compares it with a
// real server.
//
// Intended differences: the clock, including TIME, stands still while a script runs (a real server freezes only what
// decides on expiry); SCAN, KEYS and SMEMBERS answer everything at once, sorted; hashes keep the order of insertion at
// any size; a script that would fail on a Cluster or hang a server causes an exception.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server_model/channels.hpp"
#include "server_model/keyspace.hpp"
#include "server_model/script_host.hpp"
#include "server_model/value.hpp"

namespace holdfast::sim {

struct server_model_options {
    key_check undeclared_keys = key_check::strict;
    std::shared_ptr<script_engine> engine;  // null: the server has its own
};

class server_model {
public:
    /// The data on disk or on a replica.
    using snapshot = keyspace;

    explicit server_model(server_model_options options = {});

    /// Server time in µs since the epoch; may jump forward or back.
    void set_time(std::int64_t server_us) { now_us_ = server_us; }
    std::int64_t time_us() const { return now_us_; }
    /// What TIME told the last command first; the command's beginning, if it did not ask.
    std::int64_t told_us() const { return told_us_; }
    /// From now on time passes while scripts run. Afterwards time_us() is the end of the last command.
    void let_time_pass_in_scripts(script_clock clock) { clock_ = std::move(clock); }

    /// Runs one command. Throws undeclared_key, runaway_script, or std::logic_error for what is not modelled.
    value execute(arguments command, asking asked = asking::no);
    value execute(const std::vector<std::string>& command, asking asked = asking::no);

    void subscribe(std::uint64_t connection, std::string_view channel, channel_kind kind = channel_kind::plain);
    void unsubscribe(std::uint64_t connection, std::string_view channel, channel_kind kind = channel_kind::plain);
    void unsubscribe_all(std::uint64_t connection);
    bool listens(std::string_view channel, channel_kind kind = channel_kind::plain) const {
        return channels_.listeners(kind, channel) > 0;
    }
    /// Called for each subscriber in turn while the publishing command runs, so before that command's reply: the order
    /// in which 7.0 writes them if the publisher itself is subscribed. It must not call execute().
    void on_message(std::function<void(const message&)> callback);

    snapshot take_snapshot() const { return keys_; }
    std::optional<std::int64_t> first_expiry_ms() const { return keys_.first_expiry_ms({now_us_ / 1000, state_.as}); }
    /// Replaces the data; subscriptions and scripts stay.
    void restore(snapshot data) { keys_ = std::move(data); }
    /// Starts a new process with this data: no subscriptions, no known scripts, a primary.
    void restart(snapshot data = {});

    /// A replica answers READONLY to writes and hides expired keys instead of removing them.
    void set_role(role as) { state_.as = as; }
    /// A full server answers OOM to commands that add memory.
    void set_memory(server_state::memory_state memory) { state_.memory = memory; }

    /// Makes this server a member of a Cluster that refuses what the guard says. The caller owns the guard. Null: a
    /// lone server again.
    void guard_slots(const slot_guard* slots) { slots_ = slots; }

    /// The refusal of a sharded channel; nothing: a client may use it here.
    std::optional<value> channel_refusal(std::string_view channel, asking asked);

    /// Removes and adds a key with its expiry, as MIGRATE does. Nothing: there is no such key.
    std::optional<entry> take(std::string_view key);
    void put(std::string_view key, entry what) { keys_.insert(key, std::move(what)); }

    /// The number of commands that a replica would have received, including each command of scripts.
    std::uint64_t writes() const { return writes_; }

    /// A key without running a command; null if it does not exist.
    const entry* peek(std::string_view key) { return keys_.find(key, {now_us_ / 1000, state_.as}); }

    /// The living keys, one line each, sorted: for comparison and traces.
    std::string dump() const;
    script_engine& engine() { return *engine_; }

private:
    std::shared_ptr<script_engine> engine_;
    script_host scripts_;
    keyspace keys_;
    channels channels_;
    server_state state_;
    const slot_guard* slots_ = nullptr;
    std::int64_t now_us_ = 0;
    std::int64_t told_us_ = 0;
    std::uint64_t writes_ = 0;
    script_clock clock_;
};

}  // namespace holdfast::sim
