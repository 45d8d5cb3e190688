// What goes wrong, and what it does to the world.

#include <algorithm>
#include <utility>

#include "wire/scripts.hpp"
#include "world/day_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

std::string_view to_string(mishap kind) {
    constexpr std::string_view names[] = {
        "cut",          "server end gone",     "client end gone",    "lost replies",   "one way up",
        "one way down", "slow link",           "client pause",       "client death",   "server stall",
        "restart",      "restart, empty",      "restart, older",     "clock forward",  "clock back",
        "script flush", "foreign holder",      "foreign, no expiry", "vandal",         "failover",
        "slot move",    "slot move cancelled", "client cut off",     "server cut off", "slow server",
        "newcomer"};
    static_assert(std::size(names) == mishap_kinds);
    return names[static_cast<std::size_t>(kind)];
}

void day::plan_mishap() {
    time_.after(luck_.within(pace_), [this] {
        if (quiet_) return;
        if (luck_.percent(20)) {
            server& which = some_server();
            older_[&which] = which.snapshot();
        }
        happen(likely_[luck_.below(likely_.size())]);
        plan_mishap();
    });
}

// Another program comes to a read-write lock, again and again.
void day::plan_visit() {
    time_.after(guests_luck_.within({20ms, 300ms}), [this] {
        if (quiet_) return;
        const lock_plan& plan = ways_.locks[guests_luck_.below(ways_.locks.size())];
        if (plan.kind == wire::lock_kind::read_write && servers_[0]->accepts())
            visitors_.visit(plan, foreigners::expiry::usual);
        plan_visit();
    });
}

client* day::somebody() {
    client& candidate = *clients_[luck_.below(clients_.size())];
    return candidate.dead() ? nullptr : &candidate;
}

server& day::some_server() {
    if (cluster_) return cluster_->at(some_primary());
    return several() ? *servers_[quorum_luck_.below(servers_.size())] : *servers_[0];
}

void day::trouble_all_until(instant then) {
    for (const auto& c : clients_) c->trouble_until(then);
}

void day::happen(mishap kind) {
    client* const whose = somebody();
    if (whose == nullptr) return;
    note("MISHAP " + std::string(to_string(kind)) + " (client " + std::to_string(whose->number()) + ")");
    ++result_.mishaps[static_cast<std::size_t>(kind)];
    if (kind <= mishap::slow_link) {
        plug* const way = some_link_of(*whose);
        if (way != nullptr && way->wire() != nullptr) to_a_link(kind, *way);
    } else if (kind <= mishap::death) {
        to_a_client(kind, *whose);
    } else if (kind <= mishap::script_flush) {
        to_the_server(kind);
    } else if (kind == mishap::fail_over) {
        fail_over();
    } else if (kind == mishap::cut_off_client) {
        cut_off([whose](plug& way) { return &way.owner() == whose; });
    } else if (kind == mishap::cut_off_server) {
        cut_off([which = some_node()](plug& way) { return way.node() == which; });
    } else if (kind == mishap::slow_server) {
        slow_down(some_node());
    } else if (kind == mishap::newcomer) {
        constexpr std::size_t most_clients = 12;
        if (clients_.size() < most_clients) add_client();
    } else if (kind > mishap::fail_over) {
        move_slot(kind);
    } else {
        to_the_data(kind);
    }
}

// Null: there is none at the moment.
plug* day::some_link_of(client& whose) {
    const std::vector<plug*> all = whose.way_to(several() ? quorum_luck_.below(servers_.size()) : 0).plugs();
    if (cluster_) return all.empty() ? nullptr : all[cluster_luck_.below(all.size())];
    return all.size() > 1 && replica_luck_.percent(30) ? all[1] : all[0];
}

void day::to_a_link(mishap kind, plug& way) {
    link& wire = *way.wire();
    client& whose = way.owner();
    server& there = *servers_[way.node()];
    whose.trouble_until(time_.now() + aftermath);
    switch (kind) {
        case mishap::cut: {
            // What was on its way up may have got through before.
            if (luck_.percent(50)) wire.up.lose();
            wire.down.lose();
            const nanoseconds heard = luck_.within({0ns, 50ms});
            time_.after(heard, [&there, &wire] { there.close(wire); });
            way.received(wire, {packet::kind::end, {}, {}});
            break;
        }
        case mishap::server_gone:
            wire.down.lose();
            wire.up.lose();
            there.close(wire);
            whose.trouble_until_noticed();
            break;
        case mishap::client_gone:
            wire.up.hold_until(time_.now() + luck_.within({0ns, 3s}));
            wire.down.lose();
            way.received(wire, {packet::kind::end, {}, {}});
            break;
        case mishap::lost_replies:
            wire.down.lose();
            whose.trouble_until_noticed();
            break;
        case mishap::slow_link:
            wire.up.delay = wire.down.delay = {1ms, 400ms};
            whose.trouble_until(never);  // as long as that link lasts, and nobody knows how long that is
            break;
        default:
            block(way, kind);
    }
}

void day::block(plug& way, mishap kind) {
    const instant end = time_.now() + luck_.within({10ms, 2s});
    auto& [up, down] = blocked_[{way.owner().number(), way.node()}];
    way.owner().trouble_until(end + aftermath);
    if (kind == mishap::one_way_up) {
        up = std::max(up, end);
        way.wire()->up.hold_until(end);
    } else {
        down = std::max(down, end);
        way.wire()->down.hold_until(end);
    }
}

std::size_t day::some_node() {
    const server& chosen = some_server();
    const auto found =
        std::find_if(servers_.begin(), servers_.end(), [&](const auto& one) { return one.get() == &chosen; });
    return static_cast<std::size_t>(found - servers_.begin());
}

std::vector<plug*> day::plugs() {
    std::vector<plug*> all;
    for (const auto& one : clients_) {
        if (one->dead()) continue;
        for (const auto& way : one->ways()) {
            for (plug* const each : way->plugs()) all.push_back(each);
        }
    }
    return all;
}

// A partition, both ways, of existing links and of new ones.
void day::cut_off(const std::function<bool(plug&)>& is_meant) {
    const instant end = time_.now() + partition_luck_.within({10ms, 2s});
    for (plug* const each : plugs()) {
        if (!is_meant(*each)) continue;
        auto& [up, down] = blocked_[{each->owner().number(), each->node()}];
        up = std::max(up, end);
        down = std::max(down, end);
        each->owner().trouble_until(end + aftermath);
        if (each->wire() == nullptr) continue;
        each->wire()->up.hold_until(end);
        each->wire()->down.hold_until(end);
    }
}

void day::slow_down(std::size_t node) {
    const instant end = time_.now() + partition_luck_.within({10ms, 2s});
    const chance::span slow{1ms, 80ms};
    for (plug* const each : plugs()) {
        link* const wire = each->wire();
        if (each->node() != node || wire == nullptr) continue;
        wire->up.delay = wire->down.delay = slow;
        time_.at(end, [this, wire] { wire->up.delay = wire->down.delay = delay_; });
    }
    trouble_all_until(end + aftermath);
}

void day::to_a_client(mishap kind, client& whose) {
    if (kind == mishap::pause) {
        const instant end = time_.now() + luck_.within({1ms, luck_.percent(50) ? nanoseconds(300ms) : nanoseconds(5s)});
        whose.pause_until(end);
        return;
    }
    for (const person& p : actors_) {
        if (p.home == &whose) p.who->died();
    }
    std::vector<link*> wires;
    for (const auto& way : whose.ways()) {
        for (plug* const each : way->plugs()) {
            if (each->wire() != nullptr) wires.push_back(each->wire());
        }
    }
    whose.die();
    for (link* const wire : wires) {
        if (luck_.percent(70)) {
            wire->up.end();  // the system closes what the process had
        } else {
            wire->up.hold_until(time_.now() + luck_.within({0ns, 2s}));
        }
    }
    time_.after(luck_.within({0ns, 1s}), [this] {
        if (!quiet_) add_client();
    });
}

void day::to_the_server(mishap kind) {
    switch (kind) {
        case mishap::stall: {
            const instant end = time_.now() + luck_.within({1ms, 1500ms});
            some_server().stall_until(end);
            trouble_all_until(end + aftermath);
            break;
        }
        case mishap::clock_forward:
        case mishap::clock_back: {
            // Set back, leases of the dead last longer by as much: nobody could be patient enough for more.
            const bool forward = kind == mishap::clock_forward;
            nanoseconds size = luck_.within({1ms, forward && luck_.percent(30) ? nanoseconds(30min) : nanoseconds(3s)});
            // By a leap of minutes a member's fencing marks end; then the slot moves to one that is behind.
            if (cluster_) size = std::min<nanoseconds>(size, 3s);
            const nanoseconds by = forward ? size : -size;
            patience_ += size;
            some_server().jump(by);
            judge_.clock_jumped(by);
            trouble_all_until(time_.now() + aftermath);
            break;
        }
        case mishap::script_flush:
            some_server().flush_scripts();
            break;
        default:
            restart(kind);
    }
}

void day::restart(mishap kind) {
    server& which = some_server();
    if (!which.accepts()) return;
    node::snapshot data;
    if (kind == mishap::restart) data = which.snapshot();
    if (kind == mishap::restart_older) data = older_[&which];
    which.stop();
    const instant back = time_.now() + luck_.within({0ns, newcomers_ ? nanoseconds(100ms) : nanoseconds(1s)});
    trouble_all_until(back + aftermath);
    // A slot may move from one whom nobody believes yet to one whom everybody does.
    if (kind != mishap::restart) judge_.data_lost(mistrusted_ && cluster_ == nullptr);
    time_.at(back, [&which, data] { which.start(data); });
}

// Whoever connects for the first time afterwards takes the replica for the server that it replaced. That is outside the
// promise, with one server or with several.
void day::fail_over() {
    if (cluster_) return is_acknowledged_ ? fail_over_to_replica_of_member() : fail_over_member();
    if (is_acknowledged_) return fail_over_to_replica();
    server& which = some_server();
    if (!which.accepts()) return;
    const nanoseconds ahead = quorum_luck_.within({0ms, 20ms}) - nanoseconds(10ms);
    which.fail_over(older_[&which], ahead);
    judge_.data_lost(false);
    judge_.clock_jumped(ahead);
    trouble_all_until(time_.now() + aftermath);
}

// It has been behind for a while, and lacks what was done meanwhile. Nobody may have believed in that.
void day::fail_over_to_replica() {
    const instant then = time_.now() + replica_luck_.within({0ms, 400ms});
    servers_[0]->hold_replica_until(then);
    trouble_all_until(then + aftermath);
    time_.at(then, [this] {
        if (!servers_[0]->accepts()) return;
        const nanoseconds ahead = replica_luck_.within({0ms, clock_skew});
        ++result_.takeovers;
        servers_[0]->fail_over(servers_[0]->replica(), ahead - std::exchange(clock_ahead_, ahead));
        trouble_all_until(time_.now() + aftermath);
    });
}

void day::to_the_data(mishap kind) {
    if (several()) return foreign_takes_a_vote();
    if (cluster_) return foreign_takes(kind);
    if (!servers_[0]->accepts()) return;
    if (kind == mishap::vandal) return vandalize();
    foreign_takes(kind);
}

// One server of several: another program has the key there, for a while.
void day::foreign_takes_a_vote() {
    const lock_plan& plan = ways_.locks[luck_.below(ways_.locks.size())];
    server& which = some_server();
    if (plan.kind == wire::lock_kind::read_write || !which.accepts()) return;
    const auto ms = std::chrono::duration_cast<milliseconds>(luck_.within({5ms, 1500ms})).count();
    which.run({"SET", plan.keys->lock(), "foreign", "NX", "PX", std::to_string(ms)});
}

// SET NX, as other programs lock; or the hash of a read-write lock, as those do that know it.
void day::foreign_takes(mishap kind) {
    const lock_plan& plan = ways_.locks[luck_.below(ways_.locks.size())];
    const nanoseconds stay = luck_.within({5ms, 1500ms});
    const bool for_ever = kind == mishap::foreign_forever;
    if (plan.kind == wire::lock_kind::read_write) {
        if (cluster_) return;  // they know one server only
        return visitors_.visit(plan, for_ever ? foreigners::expiry::none : foreigners::expiry::usual);
    }
    const std::string& lock = plan.keys->lock();
    if (!home_of(lock).accepts()) return;
    std::vector<std::string> command{"SET", lock, "foreign", "NX"};
    const auto ms = std::chrono::duration_cast<milliseconds>(stay).count();
    if (kind == mishap::foreign) command.insert(command.end(), {"PX", std::to_string(ms)});
    if (home_of(lock).run(command).type == value::kind::nil) return;
    judge_.foreign_took(lock, for_ever ? never : time_.now() + stay);
    if (guests_luck_.percent(50)) foreign_waits(plan);
    if (!for_ever && luck_.percent(50)) return;
    time_.after(for_ever ? stay : stay / 2, [this, plan] { foreign_leaves(plan); });
}

// As the fair lock of go-redislock does, which has its queue under the same key: by the second in which it came.
void day::foreign_waits(const lock_plan& plan) {
    server& home = home_of(plan.keys->lock());
    home.run({"ZADD", plan.keys->queue(), std::to_string(home.now_us() / 1'000'000), "lock_token:foreign"});
    if (home.run({"PTTL", plan.keys->queue()}).integer < 5000) home.run({"PEXPIRE", plan.keys->queue(), "5000"});
}

void day::foreign_leaves(const lock_plan& plan) {
    const std::string& lock = plan.keys->lock();
    server& home = home_of(lock);
    if (!home.accepts()) return time_.after(100ms, [this, plan] { foreign_leaves(plan); });
    if (plan.kind == wire::lock_kind::read_write) return cluster_ ? void() : visitors_.clear_out(plan);
    if (home.run({"GET", lock}).text != "foreign") return;
    home.run({"DEL", lock});
    judge_.foreign_left(lock);
}

// Nonsense in our keys, and a script called with nonsense. None of it may break anything but the line's order.
void day::vandalize() {
    const lock_plan& plan = ways_.locks[luck_.below(ways_.locks.size())];
    const std::uint64_t how = luck_.below(5);
    const bool to_holders = plan.kind == wire::lock_kind::read_write && rw_luck_.percent(60);
    const bool to_the_mark = !to_holders && rw_luck_.percent(40);
    constexpr std::uint64_t calls_with_nonsense = 4;  // change nothing, and so excuse nothing
    if (to_holders || to_the_mark || how != calls_with_nonsense) judge_.waiters_vandalized();
    if (to_holders) return vandalize_rw(*plan.keys);
    vandalize_line(*plan.keys, how);
    if (to_the_mark) vandalize_line(*plan.keys, 2);
}

void day::vandalize_line(const wire::lock_keys& keys, std::uint64_t how) {
    const auto line = servers_[0]->run({"ZRANGE", keys.queue(), "0", "0"});
    const std::string first = line.items.empty() ? "nobody" : line.items[0].text;
    switch (how) {
        case 0:
            if (line.items.empty()) break;
            servers_[0]->run({"HSET", keys.waiters(), first, "12 what"});
            servers_[0]->run({"PEXPIRE", keys.waiters(), "60000"});
            break;
        case 1:
            if (!line.items.empty()) servers_[0]->run({"HDEL", keys.waiters(), first});
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
                                            script.name.ends_with("/confirm");
                if (takes_anything || servers_[0]->run({"TYPE", keys.lock()}).text != "none") continue;
                if (!servers_[0]->run(command).is_error())
                    judge_.fail("nonsense was accepted by " + std::string(script.name));
            }
    }
}

// What only a read-write lock has.
void day::vandalize_rw(const wire::lock_keys& keys) {
    const auto ids = servers_[0]->run({"HKEYS", keys.grants()});
    const std::string holder = ids.items.empty() ? "" : ids.items[rw_luck_.below(ids.items.size())].text;
    const std::string nobody = "hf_nobodynobodynobo.1.xxxxxxxxxxxxxxxxxxxxxx";
    switch (rw_luck_.below(6)) {
        case 0:
            if (holder.empty()) break;
            judge_.read_write().vandalized(keys.lock());
            servers_[0]->run({"HSET", keys.grants(), holder, rw_luck_.percent(50) ? "q 17" : "r 007"});
            break;
        case 1:  // a lease that nobody has
            servers_[0]->run({"ZADD", keys.leases(), std::to_string(servers_[0]->now_us() / 1000 + 1500), nobody});
            // Leases that end after the last deadline are those of a clock that is behind, and last so much longer: of
            // the dead, too.
            servers_[0]->run({"PEXPIRE", keys.leases(), "60000"});
            patience_ += 60s;
            break;
        case 2:
            judge_.read_write().vandalized(keys.lock());
            servers_[0]->run({"DEL", keys.leases()});
            break;
        case 3:
            judge_.read_write().vandalized(keys.lock());
            servers_[0]->run({"DEL", keys.grants()});
            break;
        case 4:  // evicted: the leases know better, and nobody comes in who may not
            judge_.read_write().excuse(keys.lock());  // of a foreign hold nothing is left
            servers_[0]->run({"DEL", keys.lock()});
            break;
        default:  // a reader of ours without a lease, and a field that is nobody's
            if (servers_[0]->run({"HGET", keys.lock(), "mode"}).text != "read") break;
            if (servers_[0]->run({"HSET", keys.lock(), "r:" + nobody, "1"}).integer == 0) break;
            servers_[0]->run({"HINCRBY", keys.lock(), "rcount", "1"});
    }
}

}  // namespace holdfast::sim
