// The faults, and their effect on links, clients, servers and data.

#include <algorithm>
#include <utility>

#include "wire/scripts.hpp"
#include "world/scenario_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

std::string_view to_string(fault kind) {
    constexpr std::string_view names[] = {
        "cut",          "server end gone",     "client end gone",    "lost replies",      "one way up",
        "one way down", "slow link",           "client pause",       "client death",      "server stall",
        "restart",      "restart, empty",      "restart, older",     "clock forward",     "clock back",
        "script flush", "foreign holder",      "foreign, no expiry", "corrupting client", "failover",
        "slot move",    "slot move cancelled", "client cut off",     "server cut off",    "slow server",
        "newcomer"};
    static_assert(std::size(names) == fault_kinds);
    return names[static_cast<std::size_t>(kind)];
}

void scenario::plan_fault() {
    time_.after(random_.within(pace_), [this] {
        if (draining_) return;
        if (random_.percent(20)) {
            server& which = random_server();
            older_[&which] = which.snapshot();
        }
        inject(fault_mix_[random_.below(fault_mix_.size())]);
        plan_fault();
    });
}

// A foreign client uses a read-write lock, again and again.
void scenario::plan_foreign_session() {
    time_.after(foreign_random_.within({20ms, 300ms}), [this] {
        if (draining_) return;
        const lock_plan& plan = workload_.locks[foreign_random_.below(workload_.locks.size())];
        if (plan.kind == wire::lock_kind::read_write && servers_[0]->accepts())
            foreign_clients_.start_session(plan, foreign_clients::expiry::usual);
        plan_foreign_session();
    });
}

client* scenario::random_client() {
    client& candidate = *clients_[random_.below(clients_.size())];
    return candidate.dead() ? nullptr : &candidate;
}

server& scenario::random_server() {
    if (cluster_) return cluster_->at(random_primary());
    return several() ? *servers_[quorum_random_.below(servers_.size())] : *servers_[0];
}

void scenario::trouble_all_until(instant then) {
    for (const auto& c : clients_) c->trouble_until(then);
}

void scenario::inject(fault kind) {
    client* const whose = random_client();
    if (whose == nullptr) return;
    note("FAULT " + std::string(to_string(kind)) + " (client " + std::to_string(whose->number()) + ")");
    ++result_.faults[static_cast<std::size_t>(kind)];
    if (kind <= fault::slow_link) {
        plug* const endpoint = random_link_of(*whose);
        if (endpoint != nullptr && endpoint->wire() != nullptr) fault_on_link(kind, *endpoint);
    } else if (kind <= fault::death) {
        fault_on_client(kind, *whose);
    } else if (kind <= fault::script_flush) {
        fault_on_server(kind);
    } else if (kind == fault::fail_over) {
        fail_over();
    } else if (kind == fault::cut_off_client) {
        cut_off([whose](plug& endpoint) { return &endpoint.owner() == whose; });
    } else if (kind == fault::cut_off_server) {
        cut_off([which = random_server_number()](plug& endpoint) { return endpoint.server_number() == which; });
    } else if (kind == fault::slow_server) {
        slow_down(random_server_number());
    } else if (kind == fault::newcomer) {
        constexpr std::size_t most_clients = 12;
        if (clients_.size() < most_clients) add_client();
    } else if (kind > fault::fail_over) {
        move_slot(kind);
    } else {
        fault_on_data(kind);
    }
}

// Null: the client has no link at the moment.
plug* scenario::random_link_of(client& whose) {
    const std::vector<plug*> all = whose.backend_to(several() ? quorum_random_.below(servers_.size()) : 0).plugs();
    if (cluster_) return all.empty() ? nullptr : all[cluster_random_.below(all.size())];
    return all.size() > 1 && replica_random_.percent(30) ? all[1] : all[0];
}

void scenario::fault_on_link(fault kind, plug& endpoint) {
    link& wire = *endpoint.wire();
    client& whose = endpoint.owner();
    server& there = *servers_[endpoint.server_number()];
    whose.trouble_until(time_.now() + aftermath);
    switch (kind) {
        case fault::cut: {
            // Requests in flight may have arrived before the cut.
            if (random_.percent(50)) wire.up.lose();
            wire.down.lose();
            const nanoseconds heard = random_.within({0ns, 50ms});
            time_.after(heard, [&there, &wire] { there.close(wire); });
            endpoint.received(wire, {packet::kind::end, {}, {}});
            break;
        }
        case fault::server_gone:
            wire.down.lose();
            wire.up.lose();
            there.close(wire);
            whose.trouble_until_noticed();
            break;
        case fault::client_gone:
            wire.up.hold_until(time_.now() + random_.within({0ns, 3s}));
            wire.down.lose();
            endpoint.received(wire, {packet::kind::end, {}, {}});
            break;
        case fault::lost_replies:
            wire.down.lose();
            whose.trouble_until_noticed();
            break;
        case fault::slow_link:
            wire.up.delay = wire.down.delay = {1ms, 400ms};
            whose.trouble_until(never);  // lasts as long as the link, which is unknown
            break;
        default:
            block(endpoint, kind);
    }
}

void scenario::block(plug& endpoint, fault kind) {
    const instant end = time_.now() + random_.within({10ms, 2s});
    auto& [up, down] = blocked_[{endpoint.owner().number(), endpoint.server_number()}];
    endpoint.owner().trouble_until(end + aftermath);
    if (kind == fault::one_way_up) {
        up = std::max(up, end);
        endpoint.wire()->up.hold_until(end);
    } else {
        down = std::max(down, end);
        endpoint.wire()->down.hold_until(end);
    }
}

std::size_t scenario::random_server_number() {
    const server& chosen = random_server();
    const auto found =
        std::find_if(servers_.begin(), servers_.end(), [&](const auto& one) { return one.get() == &chosen; });
    return static_cast<std::size_t>(found - servers_.begin());
}

std::vector<plug*> scenario::plugs() {
    std::vector<plug*> all;
    for (const auto& one : clients_) {
        if (one->dead()) continue;
        for (const auto& each_backend : one->backends()) {
            for (plug* const each : each_backend->plugs()) all.push_back(each);
        }
    }
    return all;
}

// A partition in both directions, for existing links and new ones.
void scenario::cut_off(const std::function<bool(plug&)>& is_meant) {
    const instant end = time_.now() + partition_random_.within({10ms, 2s});
    for (plug* const each : plugs()) {
        if (!is_meant(*each)) continue;
        auto& [up, down] = blocked_[{each->owner().number(), each->server_number()}];
        up = std::max(up, end);
        down = std::max(down, end);
        each->owner().trouble_until(end + aftermath);
        if (each->wire() == nullptr) continue;
        each->wire()->up.hold_until(end);
        each->wire()->down.hold_until(end);
    }
}

void scenario::slow_down(std::size_t node) {
    const instant end = time_.now() + partition_random_.within({10ms, 2s});
    const random_stream::span slow{1ms, 80ms};
    for (plug* const each : plugs()) {
        link* const wire = each->wire();
        if (each->server_number() != node || wire == nullptr) continue;
        wire->up.delay = wire->down.delay = slow;
        time_.at(end, [this, wire] { wire->up.delay = wire->down.delay = delay_; });
    }
    trouble_all_until(end + aftermath);
}

void scenario::fault_on_client(fault kind, client& whose) {
    if (kind == fault::pause) {
        const instant end =
            time_.now() + random_.within({1ms, random_.percent(50) ? nanoseconds(300ms) : nanoseconds(5s)});
        whose.pause_until(end);
        return;
    }
    for (const placed_actor& p : actors_) {
        if (p.process == &whose) p.self->died();
    }
    std::vector<link*> wires;
    for (const auto& each_backend : whose.backends()) {
        for (plug* const each : each_backend->plugs()) {
            if (each->wire() != nullptr) wires.push_back(each->wire());
        }
    }
    whose.die();
    for (link* const wire : wires) {
        if (random_.percent(70)) {
            wire->up.end();  // the operating system closes the sockets
        } else {
            wire->up.hold_until(time_.now() + random_.within({0ns, 2s}));
        }
    }
    time_.after(random_.within({0ns, 1s}), [this] {
        if (!draining_) add_client();
    });
}

void scenario::fault_on_server(fault kind) {
    switch (kind) {
        case fault::stall: {
            const instant end = time_.now() + random_.within({1ms, 1500ms});
            random_server().stall_until(end);
            trouble_all_until(end + aftermath);
            break;
        }
        case fault::clock_forward:
        case fault::clock_back: {
            // A clock set back prolongs the leases of dead clients by as much, so backward jumps stay small.
            const bool forward = kind == fault::clock_forward;
            nanoseconds size =
                random_.within({1ms, forward && random_.percent(30) ? nanoseconds(30min) : nanoseconds(3s)});
            // In a Cluster a jump of minutes would expire a member's fencing marks, and the slot could move to a member
            // that is behind.
            if (cluster_) size = std::min<nanoseconds>(size, 3s);
            const nanoseconds by = forward ? size : -size;
            patience_ += size;
            random_server().jump(by);
            checker_.clock_jumped(by);
            trouble_all_until(time_.now() + aftermath);
            break;
        }
        case fault::script_flush:
            random_server().flush_scripts();
            break;
        default:
            restart(kind);
    }
}

void scenario::restart(fault kind) {
    server& which = random_server();
    if (!which.accepts()) return;
    server_model::snapshot data;
    if (kind == fault::restart) data = which.snapshot();
    if (kind == fault::restart_older) data = older_[&which];
    which.stop();
    const instant back = time_.now() + random_.within({0ns, newcomers_ ? nanoseconds(100ms) : nanoseconds(1s)});
    trouble_all_until(back + aftermath);
    // In a Cluster a slot may move from a member that is not trusted yet to one that is.
    if (kind != fault::restart) checker_.data_lost(mistrusted_ && cluster_ == nullptr);
    time_.at(back, [&which, data] { which.start(data); });
}

// A client that connects for the first time afterwards takes the replica for the server that it replaced. That is
// outside the promise, with one server or several.
void scenario::fail_over() {
    if (cluster_) return is_acknowledged_ ? fail_over_to_replica_of_member() : fail_over_member();
    if (is_acknowledged_) return fail_over_to_replica();
    server& which = random_server();
    if (!which.accepts()) return;
    const nanoseconds ahead = quorum_random_.within({0ms, 20ms}) - nanoseconds(10ms);
    which.fail_over(older_[&which], ahead);
    checker_.data_lost(false);
    checker_.clock_jumped(ahead);
    trouble_all_until(time_.now() + aftermath);
}

// The replica has lagged for a while and lacks the latest writes. No client may have believed in those.
void scenario::fail_over_to_replica() {
    const instant then = time_.now() + replica_random_.within({0ms, 400ms});
    servers_[0]->hold_replica_until(then);
    trouble_all_until(then + aftermath);
    time_.at(then, [this] {
        if (!servers_[0]->accepts()) return;
        const nanoseconds ahead = replica_random_.within({0ms, clock_skew});
        ++result_.takeovers;
        servers_[0]->fail_over(servers_[0]->replica(), ahead - std::exchange(clock_ahead_, ahead));
        trouble_all_until(time_.now() + aftermath);
    });
}

void scenario::fault_on_data(fault kind) {
    if (several()) return foreign_acquire_at_one_node();
    if (cluster_) return foreign_acquire(kind);
    if (!servers_[0]->accepts()) return;
    if (kind == fault::corrupting_client) return corrupt();
    foreign_acquire(kind);
}

// A foreign client holds the key at one server of several, for a while.
void scenario::foreign_acquire_at_one_node() {
    const lock_plan& plan = workload_.locks[random_.below(workload_.locks.size())];
    server& which = random_server();
    if (plan.kind == wire::lock_kind::read_write || !which.accepts()) return;
    const auto ms = std::chrono::duration_cast<milliseconds>(random_.within({5ms, 1500ms})).count();
    which.run({"SET", plan.keys->lock(), "foreign", "NX", "PX", std::to_string(ms)});
}

// SET NX, as other programs lock; or the hash of a read-write lock, for programs that know it.
void scenario::foreign_acquire(fault kind) {
    const lock_plan& plan = workload_.locks[random_.below(workload_.locks.size())];
    const nanoseconds stay = random_.within({5ms, 1500ms});
    const bool for_ever = kind == fault::foreign_forever;
    if (plan.kind == wire::lock_kind::semaphore) return;  // no other program knows its keys
    if (plan.kind == wire::lock_kind::read_write) {
        if (cluster_) return;  // foreign clients know one server only
        return foreign_clients_.start_session(
            plan, for_ever ? foreign_clients::expiry::none : foreign_clients::expiry::usual);
    }
    const std::string& lock = plan.keys->lock();
    if (!server_of(lock).accepts()) return;
    std::vector<std::string> command{"SET", lock, "foreign", "NX"};
    const auto ms = std::chrono::duration_cast<milliseconds>(stay).count();
    if (kind == fault::foreign) command.insert(command.end(), {"PX", std::to_string(ms)});
    if (server_of(lock).run(command).type == value::kind::nil) return foreign_wait_in_vain(plan, 10);
    checker_.foreign_acquired(lock, for_ever ? never : time_.now() + stay);
    if (foreign_random_.percent(50)) foreign_enqueue(plan);
    if (!for_ever && random_.percent(50)) return;
    time_.after(for_ever ? stay : stay / 2, [this, plan] { foreign_release(plan); });
}

// As the fair lock of go-redislock queues: under the same key, by the second of its arrival.
void scenario::foreign_enqueue(const lock_plan& plan) {
    server& home = server_of(plan.keys->lock());
    home.run({"ZADD", plan.keys->queue(), std::to_string(home.now_us() / 1'000'000), "lock_token:foreign"});
    if (home.run({"PTTL", plan.keys->queue()}).integer < 5000) home.run({"PEXPIRE", plan.keys->queue(), "5000"});
}

// Such a program polls and then gives up: its position keeps the queue for its own timeout, and no longer. Ours poll
// less often than that. Drawn from the clock, so that other scenarios stay what they were.
void scenario::foreign_wait_in_vain(const lock_plan& plan, int polls) {
    if (cluster_ || several() || !plan.keys->is_raw() || plan.kind != wire::lock_kind::mutex) return;
    server& home = server_of(plan.keys->lock());
    if (home.accepts() && home.run({"GET", plan.keys->lock()}).text != "foreign") {
        foreign_enqueue(plan);
        home.run({"PEXPIRE", plan.keys->queue(), std::to_string(1 + home.now_us() % 50)});
        checker_.queue_may_expire(plan.keys->lock());
    }
    if (polls > 1) time_.after(100ms, [this, plan, polls] { foreign_wait_in_vain(plan, polls - 1); });
}

void scenario::foreign_release(const lock_plan& plan) {
    const std::string& lock = plan.keys->lock();
    server& home = server_of(lock);
    if (!home.accepts()) return time_.after(100ms, [this, plan] { foreign_release(plan); });
    if (plan.kind == wire::lock_kind::semaphore) return;
    if (plan.kind == wire::lock_kind::read_write) return cluster_ ? void() : foreign_clients_.end_sessions(plan);
    if (home.run({"GET", lock}).text != "foreign") return;
    home.run({"DEL", lock});
    checker_.foreign_released(lock);
}

// Writes garbage into the lock's keys, or calls scripts with garbage. Nothing but the order of the queue may suffer.
void scenario::corrupt() {
    const lock_plan& plan = workload_.locks[random_.below(workload_.locks.size())];
    const std::uint64_t how = random_.below(5);
    const bool to_holders = plan.kind == wire::lock_kind::read_write && rw_random_.percent(60);
    const bool to_the_mark = !to_holders && rw_random_.percent(40);
    constexpr std::uint64_t calls_with_garbage = 4;  // change nothing, so they excuse nothing
    if (to_holders || to_the_mark || how != calls_with_garbage) checker_.waiters_corrupted();
    if (to_holders) return corrupt_rw(*plan.keys);
    if (plan.kind == wire::lock_kind::semaphore && semaphore_random_.percent(60)) return corrupt_semaphore(*plan.keys);
    corrupt_queue(*plan.keys, how);
    if (to_the_mark) corrupt_queue(*plan.keys, 2);
}

void scenario::corrupt_queue(const wire::lock_keys& keys, std::uint64_t how) {
    const auto queue = servers_[0]->run({"ZRANGE", keys.queue(), "0", "0"});
    const std::string first = queue.items.empty() ? "nobody" : queue.items[0].text;
    switch (how) {
        case 0:
            if (queue.items.empty()) break;
            servers_[0]->run({"HSET", keys.waiters(), first, "12 what"});
            servers_[0]->run({"PEXPIRE", keys.waiters(), "60000"});
            break;
        case 1:
            if (!queue.items.empty()) servers_[0]->run({"HDEL", keys.waiters(), first});
            break;
        case 2:
            if (!servers_[0]->run({"GET", keys.fence()}).text.empty())
                servers_[0]->run({"SET", keys.fence(), "007", "PX", "60000"});
            break;
        case 3:
            servers_[0]->run({"DEL", keys.queue()});
            break;
        default:
            for (const auto& script : wire::all()) {
                std::vector<std::string> command{"EVAL",        std::string(script.text),
                                                 "6",           keys.lock(),
                                                 keys.queue(),  keys.waiters(),
                                                 keys.fence(),  keys.leases(),
                                                 keys.grants(), "id"};
                command.insert(command.end(), 12, "x");
                const bool takes_anything = script.name == "mutex/renew" || script.name == "mutex/release_alone" ||
                                            script.name.ends_with("/confirm") || script.name.ends_with("/look");
                if (takes_anything || servers_[0]->run({"TYPE", keys.lock()}).text != "none") continue;
                if (!servers_[0]->run(command).is_error())
                    checker_.fail("garbage was accepted by " + std::string(script.name));
            }
    }
}

// Loses or spoils a part of what only a semaphore has. Nobody knows then how many permits are out.
void scenario::corrupt_semaphore(const wire::lock_keys& keys) {
    checker_.waiters_corrupted();
    const auto holders = servers_[0]->run({"HKEYS", keys.grants()});
    const std::string holder = holders.items.empty() ? "" : holders.items[0].text;
    switch (semaphore_random_.below(5)) {
        case 0:
            if (!holder.empty()) servers_[0]->run({"HSET", keys.grants(), holder, "many"});
            break;
        case 1:
            if (!holder.empty()) servers_[0]->run({"HDEL", keys.grants(), holder});
            break;
        case 2:
            // A deadline that is no time is as good as none.
            if (!holder.empty() && holder.back() % 2 == 0) servers_[0]->run({"ZADD", keys.leases(), "1e30", holder});
            if (!holder.empty() && holder.back() % 2 != 0) servers_[0]->run({"ZREM", keys.leases(), holder});
            break;
        case 3:
            if (servers_[0]->run({"TYPE", keys.lock()}).text == "hash")
                servers_[0]->run({"HSET", keys.lock(), "out", "many"});
            break;
        default:
            servers_[0]->run({"HSET", keys.lock(), "limit", "none"});
            servers_[0]->run({"PEXPIRE", keys.lock(), "500"});
    }
    checker_.semaphores().changed(keys.lock());
}

// An operator sets another limit from time to time, sends a request again, or sends an old one.
void scenario::plan_resize() {
    time_.after(semaphore_random_.within({50ms, 900ms}), [this] {
        if (draining_) return;
        const lock_plan& plan = workload_.locks[semaphore_random_.below(workload_.locks.size())];
        if (plan.kind == wire::lock_kind::semaphore && servers_[0]->accepts()) resize(plan);
        plan_resize();
    });
}

void scenario::resize(const lock_plan& plan) {
    server& where = *servers_[0];
    const wire::lock_keys& keys = *plan.keys;
    const auto eval = [&](const char* script, std::vector<std::string> more) {
        std::string text(wire::find(script).text);
        const auto replaced = options_.replaced_scripts.find(text);
        if (replaced != options_.replaced_scripts.end()) text = replaced->second;
        std::vector<std::string> command{"EVAL", std::move(text)};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    };
    const bool again = !resizes_.empty() && semaphore_random_.percent(30);
    const std::size_t which = again ? semaphore_random_.below(resizes_.size()) : resizes_.size();
    if (!again) {
        const value known =
            where.run(eval("semaphore/look", {"4", keys.lock(), keys.queue(), keys.leases(), keys.grants()}));
        const std::string version = known.items.at(1).items.at(2).text;
        const std::string limit = std::to_string(plan.limit + (semaphore_random_.percent(5) ? 1 : 0));
        resizes_.push_back(
            eval("semaphore/resize",
                 {"6", keys.lock(), keys.queue(), keys.waiters(), keys.fence(), keys.leases(), keys.grants(),
                  "v" + std::to_string(resizes_.size()), "60000", limit, std::to_string(1 + semaphore_random_.below(7)),
                  semaphore_random_.percent(10) ? "v0" : version}));
    }
    const auto& command = resizes_[which];
    const value answer = where.run(command);
    if (!answer.is_error() && answer.items.at(0).integer == 1) {
        std::size_t& last = last_resize_.try_emplace(command[3], which).first->second;
        // A clock that is set forward by minutes ends the time for which the version is remembered.
        const bool may_be_forgotten =
            checker_.excused.data_lost || checker_.excused.corrupted || checker_.excused.overlap;
        if (which < last && !may_be_forgotten) checker_.fail("a late copy undid a later resize");
        last = std::max(last, which);
    }
    note("  RESIZE " + command[3] + " to " + command[12] + ": " + answer.to_string());
    if (answer.is_error() && !checker_.excused.corrupted) checker_.fail("a resize failed: " + answer.text);
    checker_.semaphores().resized(where, wire::make_keys(wire::lock_name(command[3]), wire::key_naming::raw, ""));
}

// Corrupts the keys that only a read-write lock has.
void scenario::corrupt_rw(const wire::lock_keys& keys) {
    const auto ids = servers_[0]->run({"HKEYS", keys.grants()});
    const std::string holder = ids.items.empty() ? "" : ids.items[rw_random_.below(ids.items.size())].text;
    const std::string nobody = "hf_nobodynobodynobo.1.xxxxxxxxxxxxxxxxxxxxxx";
    switch (rw_random_.below(6)) {
        case 0:
            if (holder.empty()) break;
            checker_.read_write().corrupted(keys.lock());
            servers_[0]->run({"HSET", keys.grants(), holder, rw_random_.percent(50) ? "q 17" : "r 007"});
            break;
        case 1:  // a lease without a holder
            servers_[0]->run({"ZADD", keys.leases(), std::to_string(servers_[0]->now_us() / 1000 + 1500), nobody});
            // A leases key that expires after the last deadline looks like one from a clock that is behind: the scripts
            // prolong all leases by the difference, also those of dead clients.
            servers_[0]->run({"PEXPIRE", keys.leases(), "60000"});
            patience_ += 60s;
            break;
        case 2:
            checker_.read_write().corrupted(keys.lock());
            servers_[0]->run({"DEL", keys.leases()});
            break;
        case 3:
            checker_.read_write().corrupted(keys.lock());
            servers_[0]->run({"DEL", keys.grants()});
            break;
        case 4:  // evicted: the scripts restore the hash from the leases and admit nobody wrongly
            checker_.read_write().excuse(keys.lock());  // a foreign hold is lost
            servers_[0]->run({"DEL", keys.lock()});
            break;
        default:  // one of our readers without a lease
            if (servers_[0]->run({"HGET", keys.lock(), "mode"}).text != "read") break;
            if (servers_[0]->run({"HSET", keys.lock(), "r:" + nobody, "1"}).integer == 0) break;
            servers_[0]->run({"HINCRBY", keys.lock(), "rcount", "1"});
    }
}

}  // namespace holdfast::sim
