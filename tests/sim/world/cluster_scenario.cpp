// Scenarios with a Cluster: slots move to other members and back, some moves are cancelled, and replicas take over. All
// other faults happen as well.
//
// A move goes step by step, at random instants. The keys that a holder of a read-write lock needs move together, as
// MIGRATE with several keys moves them. So they are at two members only for moments. The keys of the queue may be away
// from the others for as long as the move takes.
//
// While the slot of a lock moves, and for `settling` longer, waiters need not be served and may be overtaken: a script
// needs all of its keys at one member, and a client has to be subscribed there. But no holder may lose its hold because
// of a move, and once the slot has settled, waiters are served as promptly as before.

#include <algorithm>

#include "redis/slots/hash_slot.hpp"
#include "world/cluster_backend.hpp"
#include "world/scenario_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

// From the end of a move until all clients know the new owner, are subscribed there and have polled there.
constexpr milliseconds settling{300};

unsigned slot_of(const lock_plan& lock) {
    return static_cast<unsigned>(redis::slot_of(lock.keys->lock()));
}

}  // namespace

struct scenario::slot_move {
    unsigned slot;
    bool cancelled;
    bool turned = false;  // the keys that have moved are moving back
    std::string from;
    std::string to;
    lock_plan lock;
    random_stream::span pace;
    std::size_t steps_to_turn = 0;  // of a move that is cancelled
};

// The first members are primaries, the others replicas. Their clocks never agree exactly.
std::vector<std::unique_ptr<server>> scenario::make_members(server_options setup) {
    if (cluster_random_.percent(30)) setup.half_run_percent = 10;
    const std::size_t primaries = 2 + cluster_random_.below(2);
    const std::size_t replicas = 1 + cluster_random_.below(2);
    const std::uint64_t apart_us = cluster_random_.percent(50) ? 20'000 : 1'000'000;
    std::vector<std::unique_ptr<server>> made;
    for (std::size_t i = 0; i < primaries + replicas; ++i) {
        made.push_back(std::make_unique<server>(time_, cluster_random_.fork(), setup, checker_));
        const std::string address = to_text(address_of_member(i));
        if (i == 0) {
            cluster_->add(*made[0], address);
            continue;
        }
        made[i]->set_clock(made[0]->now_us() + static_cast<std::int64_t>(cluster_random_.below(apart_us)));
        if (i < primaries) {
            cluster_->add(*made[i], address);
        } else {
            cluster_->add_replica(*made[i], address, to_text(address_of_member(cluster_random_.below(primaries))));
        }
    }
    checker_.excused.set_back = true;  // lost data has the same effect
    return made;
}

redis::server_settings scenario::cluster_settings() const {
    redis::server_settings out;
    out.use = redis::link_use::cluster;
    for (std::size_t i = 0; i < servers_.size(); ++i) out.seeds.push_back(address_of_member(i));
    return out;
}

void scenario::draw_cluster() {
    for (const lock_plan& lock : workload_.locks) cluster_->assign(slot_of(lock), random_primary());
    checker_.server_of = [this](const std::string& lock) -> server& { return server_of(lock); };
    checker_.watches().is_cluster = true;
    checker_.settled_since = [this](const std::string& lock) { return settled_since(lock); };
    checker_.channel_of = [](const std::string& lock, std::string_view client) {
        const auto keys = wire::make_keys(wire::lock_name(lock), wire::key_naming::raw, "");
        return wire::channel_of(keys, client);
    };
    if (fault_free_) return;
    std::erase(fault_mix_, fault::corrupting_client);
    // Some scenarios have no faults but moves.
    const std::size_t others = fault_mix_.size();
    fault_mix_.insert(fault_mix_.end(), 1 + others / 2, fault::slot_move);
    fault_mix_.insert(fault_mix_.end(), 1 + others / 4, fault::slot_move_cancelled);
    std::erase(fault_mix_, fault::fail_over);
    members_crash_ = cluster_random_.percent(8);
    if (others > 0 && (members_crash_ || cluster_random_.percent(30))) fault_mix_.push_back(fault::fail_over);
    if (pace_.to == 0ns) pace_ = {10ms, 1s};
}

std::string scenario::random_primary() {
    const std::vector<std::string> all = cluster_->primaries();
    return all[cluster_random_.below(all.size())];
}

server& scenario::server_of(const std::string& lock) {
    return cluster_ ? cluster_->server_of(lock) : *servers_[0];
}

instant scenario::settled_since(const std::string& lock) const {
    const auto slot = static_cast<unsigned>(redis::slot_of(lock));
    if (moves_.contains(slot)) return never;
    const auto moved = moved_at_.find(slot);
    return moved == moved_at_.end() ? instant{} : moved->second + settling;
}

// --- moves

void scenario::move_slot(fault kind) {
    const lock_plan& lock = workload_.locks[cluster_random_.below(workload_.locks.size())];
    const unsigned slot = slot_of(lock);
    const std::string to = random_primary();
    if (moves_.contains(slot) || to == cluster_->owner(slot)) return;
    const auto move = std::make_shared<slot_move>(slot_move{.slot = slot,
                                                            .cancelled = kind == fault::slot_move_cancelled,
                                                            .from = cluster_->owner(slot),
                                                            .to = to,
                                                            .lock = lock,
                                                            .pace = {1ms, 50ms},
                                                            .steps_to_turn = cluster_random_.below(6)});
    if (cluster_random_.percent(40)) move->pace = {0ms, 3ms};
    if (cluster_random_.percent(20)) move->pace = {50ms, 1500ms};
    note("SLOT " + std::to_string(slot) + " of " + lock.keys->lock() + " moves from " + move->from + " to " + to);
    moves_[slot] = move;
    cluster_->begin_move(slot, to);
    continue_move(move);
}

void scenario::continue_move(const std::shared_ptr<slot_move>& move) {
    time_.after(cluster_random_.within(move->pace), [this, move] {
        const auto present = moves_.find(move->slot);
        if (present == moves_.end() || present->second != move) return;  // a failover has ended the move
        const auto is_busy = [this](const std::string& address) {
            return !cluster_->at(address).accepts() || cluster_->at(address).stalls();
        };
        if (is_busy(move->from) || is_busy(move->to)) return continue_move(move);
        if (move->cancelled && !move->turned && move->steps_to_turn-- == 0) move->turned = true;
        move_some_keys(*move);
        end_move(move);
    });
}

// Moves one key, or all keys that a holder of a read-write lock needs.
void scenario::move_some_keys(slot_move& move) {
    const wire::lock_keys& keys = *move.lock.keys;
    server& from = cluster_->at(move.turned ? move.to : move.from);
    server& to = cluster_->at(move.turned ? move.from : move.to);
    const std::vector<std::string> all{keys.lock(),  keys.leases(),  keys.grants(),
                                       keys.queue(), keys.waiters(), keys.fence()};
    std::size_t chosen = cluster_random_.below(all.size());
    // Choose a key that exists, otherwise a slow move could last a minute.
    for (std::size_t i = 0; i < all.size() && from.peek(all[chosen]) == nullptr; ++i)
        chosen = (chosen + 1) % all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool goes_along = i == chosen || (i < 3 && chosen < 3);
        // A clock set back may have revived the key at the target: the moved key replaces it.
        if (goes_along) from.migrate(all[i], to);
    }
}

void scenario::end_move(const std::shared_ptr<slot_move>& move) {
    const wire::lock_keys& keys = *move->lock.keys;
    server& from = cluster_->at(move->turned ? move->to : move->from);
    for (const std::string& key :
         {keys.lock(), keys.leases(), keys.grants(), keys.queue(), keys.waiters(), keys.fence()}) {
        if (from.peek(key) != nullptr) return continue_move(move);
    }
    if (move->cancelled) {
        if (!move->turned) return continue_move(move);
        note("SLOT " + std::to_string(move->slot) + " stays at " + move->from);
        cluster_->cancel_move(move->slot);
        moves_.erase(move->slot);
        moved_at_[move->slot] = time_.now();
        return;
    }
    note("SLOT " + std::to_string(move->slot) + " has arrived at " + move->to);
    cluster_->arrive(move->slot);
    time_.after(cluster_random_.within({0ms, 30ms}), [this, move] {
        const auto present = moves_.find(move->slot);
        if (present == moves_.end() || present->second != move) return;
        note("SLOT " + std::to_string(move->slot) + " has left " + move->from);
        cluster_->finish_move(move->slot);
        moves_.erase(move->slot);
        const nanoseconds heard = cluster_random_.within({0ms, 200ms});
        moved_at_[move->slot] = time_.now() + heard;
        time_.after(heard, [this, slot = move->slot] {
            if (!moves_.contains(slot)) cluster_->propagate(slot);
        });
        // Moves back, perhaps while many clients still have the old map.
        if (draining_ || !cluster_random_.percent(25)) return;
        time_.after(cluster_random_.within({0ms, 100ms}), [this] {
            if (!draining_) move_slot(cluster_random_.percent(70) ? fault::slot_move : fault::slot_move_cancelled);
        });
    });
}

// --- members that are replaced

// Deletes what a move of this member has already transferred and cancels the move.
void scenario::forget_moves(const std::string& member) {
    for (auto at = moves_.begin(); at != moves_.end();) {
        const slot_move& move = *at->second;
        if (move.from != member && move.to != member) {
            ++at;
            continue;
        }
        const wire::lock_keys& keys = *move.lock.keys;
        for (const std::string& key :
             {keys.lock(), keys.leases(), keys.grants(), keys.queue(), keys.waiters(), keys.fence()}) {
            cluster_->at(move.to).drop(key);
        }
        moved_at_[move.slot] = time_.now();
        cluster_->cancel_move(move.slot);
        at = moves_.erase(at);
    }
}

// An older snapshot may have restored a foreign hold without expiry on a member that no longer owns the slot.
void scenario::clear_up_strays() {
    for (const lock_plan& lock : workload_.locks) {
        const std::string& name = lock.keys->lock();
        for (const auto& one : servers_) {
            const bool is_stray = one.get() != &server_of(name) && one->run({"TYPE", name}).text == "string";
            if (is_stray && one->run({"GET", name}).text == "foreign") one->drop(name);
        }
    }
}

bool scenario::moves_a_slot(const std::string& member) const {
    return std::any_of(moves_.begin(), moves_.end(),
                       [&](const auto& each) { return each.second->from == member || each.second->to == member; });
}

void scenario::fail_over_member() {
    if (replacing_) return;
    const std::string from = random_primary();
    const std::vector<std::string> replicas = cluster_->replicas();
    const std::string to = replicas[cluster_random_.below(replicas.size())];
    if (!cluster_->at(from).accepts() || !cluster_->at(to).accepts()) return;
    if (members_crash_) return lose_member(from, to);
    if (!moves_a_slot(from)) switch_members(from, to);  // an operator would not do that during a move
}

// The clocks of all successive primaries agree within the skew.
std::int64_t scenario::clock_of_successor(const server& from, const server& to) {
    const nanoseconds ahead = cluster_random_.within({0ms, clock_skew});
    const nanoseconds change = ahead - member_ahead_[&from];
    member_ahead_[&to] = ahead;
    return from.now_us() + std::chrono::duration_cast<microseconds>(change).count();
}

// A planned switch: the replica has all data and clients keep their links, but its clock differs.
void scenario::switch_members(const std::string& from, const std::string& to) {
    server &old_primary = cluster_->at(from), &fresh = cluster_->at(to);
    note("SWITCH from " + from + " to " + to);
    fresh.step_up(old_primary.snapshot(), clock_of_successor(old_primary, fresh));
    cluster_->promote(to, from);
    old_primary.step_down();
    trouble_all_until(time_.now() + 500ms);
}

// A crash: the replica lacks the latest writes, and the slots have no primary for a while.
void scenario::lose_member(const std::string& from, const std::string& to) {
    server& lost = cluster_->at(from);
    note("CRASH of " + from + ", " + to + " takes over");
    replacing_ = true;
    forget_moves(from);
    lost.stop();
    checker_.data_lost(false);
    const instant noticed = time_.now() + cluster_random_.within({0ms, 1s});
    trouble_all_until(noticed + 500ms);
    if (cluster_random_.percent(30)) {
        time_.at(noticed - (noticed - time_.now()) / 3, [this] { cluster_->serve(cluster::coverage::broken); });
    }
    time_.at(noticed, [this, from, to, &lost] {
        cluster_->serve(cluster::coverage::whole);
        forget_moves(from);
        server& fresh = cluster_->at(to);
        fresh.step_up(older_[&lost], lost.now_us());
        cluster_->promote(to, from);
        checker_.data_lost(false);
        replacing_ = false;
    });
    time_.at(noticed + cluster_random_.within({1ms, 1s}), [&lost] { lost.start({}); });
}

}  // namespace holdfast::sim
