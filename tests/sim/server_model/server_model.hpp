// One simulated redis-server: a keyspace, listeners, known scripts and a clock that is set from outside.
//
// It answers as redis-server 7.0 does, for the commands lock scripts use (see the tables in *_commands.cpp),
// on RESP2. Nothing in it is random and nothing reads a clock: the same calls give the same answers. The
// differential test beside it compares it with a real server.
//
// Where it differs on purpose: the clock stands still while a script runs, TIME included (a real server
// freezes only what decides expiry); SCAN, KEYS and SMEMBERS answer in sorted order, all at once; hashes keep
// arrival order at any size; misdeeds of scripts that would break a Cluster or hang a server are thrown as exceptions.
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
    std::shared_ptr<script_engine> engine;  // null: one of its own
};

class server_model {
public:
    /// What is on disk, or on a replica.
    using snapshot = keyspace;

    explicit server_model(server_model_options options = {});

    /// Server time in µs since the epoch; may jump either way.
    void set_time(std::int64_t server_us) { now_us_ = server_us; }
    std::int64_t time_us() const { return now_us_; }

    /// Runs one command. Throws undeclared_key, runaway_script, or std::logic_error for what is not modelled.
    value execute(arguments command, asking asked = asking::no);
    value execute(const std::vector<std::string>& command, asking asked = asking::no);

    void subscribe(std::uint64_t connection, std::string_view channel, channel_kind kind = channel_kind::plain);
    void unsubscribe(std::uint64_t connection, std::string_view channel, channel_kind kind = channel_kind::plain);
    void unsubscribe_all(std::uint64_t connection);
    bool listens(std::string_view channel, channel_kind kind = channel_kind::plain) const {
        return channels_.listeners(kind, channel) > 0;
    }
    /// Called for each listener in turn while the publishing command runs, hence before that command's reply:
    /// the order in which 7.0 writes them, if the publisher itself listens. It must not call execute().
    void on_message(std::function<void(const message&)> callback);

    snapshot take_snapshot() const { return keys_; }
    /// The data become the snapshot's; listeners and scripts stay.
    void restore(snapshot data) { keys_ = std::move(data); }
    /// A new process on these data: listeners and known scripts are gone, it is a primary again.
    void restart(snapshot data = {});

    /// A replica answers READONLY to writes and hides expired keys instead of removing them.
    void set_role(role as) { state_.as = as; }
    /// A full server answers OOM to what adds memory.
    void set_memory(server_state::memory_state memory) { state_.memory = memory; }

    /// From now on a member of a Cluster, which refuses what that says; it stays the caller's. Null: a lone server
    /// again.
    void guard_slots(const slot_guard* slots) { slots_ = slots; }

    /// Of whatever names a slot: may a client use that sharded channel here? Nothing: it may.
    std::optional<value> channel_refusal(std::string_view channel, asking asked);

    /// As MIGRATE takes a key away and puts it elsewhere, expiry and all. Nothing: there is none.
    std::optional<entry> take(std::string_view key);
    void put(std::string_view key, entry what) { keys_.insert(key, std::move(what)); }

    /// Commands that a replica would be told of, those of scripts one by one; ever.
    std::uint64_t writes() const { return writes_; }

    /// A key as it is now, without a command; null if there is none.
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
    std::uint64_t writes_ = 0;
};

}  // namespace holdfast::sim
