// What goes wrong, and what it does to the world.

#include "scripts/registry.hpp"
#include "world/day_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {
// A trouble's end is when its last consequence is over.
constexpr milliseconds aftermath{150};
}  // namespace

std::string_view to_string(mishap kind) {
    constexpr std::string_view names[] = {
        "cut",          "server end gone", "client end gone",    "lost replies",  "one way up",
        "one way down", "slow link",       "client pause",       "client death",  "server stall",
        "restart",      "restart, empty",  "restart, older",     "clock forward", "clock back",
        "script flush", "foreign holder",  "foreign, no expiry", "vandal"};
    static_assert(std::size(names) == mishap_kinds);
    return names[static_cast<std::size_t>(kind)];
}

void day::plan_mishap() {
    time_.after(luck_.within(pace_), [this] {
        if (quiet_) return;
        if (luck_.percent(20)) older_ = server_.snapshot();
        happen(likely_[luck_.below(likely_.size())]);
        plan_mishap();
    });
}

client* day::somebody() {
    client& candidate = *clients_[luck_.below(clients_.size())];
    return candidate.dead() ? nullptr : &candidate;
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
        if (whose->wire() != nullptr) to_a_link(kind, *whose);
    } else if (kind <= mishap::death) {
        to_a_client(kind, *whose);
    } else if (kind <= mishap::script_flush) {
        to_the_server(kind);
    } else {
        to_the_data(kind);
    }
}

void day::to_a_link(mishap kind, client& whose) {
    link& wire = *whose.wire();
    whose.trouble_until(time_.now() + aftermath);
    switch (kind) {
        case mishap::cut: {
            // What was on its way up may have got through before.
            if (luck_.percent(50)) wire.up.lose();
            wire.down.lose();
            const nanoseconds heard = luck_.within({0ns, 50ms});
            time_.after(heard, [this, &wire] { server_.close(wire); });
            whose.received(wire, {packet::kind::end, {}});
            break;
        }
        case mishap::server_gone:
            wire.down.lose();
            wire.up.lose();
            server_.close(wire);
            whose.trouble_until(time_.now() + 2s);  // until it is noticed
            break;
        case mishap::client_gone:
            wire.up.hold_until(time_.now() + luck_.within({0ns, 3s}));
            wire.down.lose();
            whose.received(wire, {packet::kind::end, {}});
            break;
        case mishap::lost_replies:
            wire.down.lose();
            whose.trouble_until(time_.now() + 2s);
            break;
        case mishap::slow_link:
            wire.up.delay = wire.down.delay = {1ms, 400ms};
            whose.trouble_until(never);  // as long as that link lasts, and nobody knows how long that is
            break;
        default:
            block(whose, kind);
    }
}

void day::block(client& whose, mishap kind) {
    const instant end = time_.now() + luck_.within({10ms, 2s});
    auto& [up, down] = blocked_[whose.number()];
    whose.trouble_until(end + aftermath);
    if (kind == mishap::one_way_up) {
        up = std::max(up, end);
        whose.wire()->up.hold_until(end);
    } else {
        down = std::max(down, end);
        whose.wire()->down.hold_until(end);
    }
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
    link* const wire = whose.wire();
    whose.die();
    if (wire != nullptr) {
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
            server_.stall_until(end);
            trouble_all_until(end + aftermath);
            break;
        }
        case mishap::clock_forward:
        case mishap::clock_back: {
            // Set back, leases of the dead last longer by as much: nobody could be patient enough for more.
            const bool forward = kind == mishap::clock_forward;
            const nanoseconds size =
                luck_.within({1ms, forward && luck_.percent(30) ? nanoseconds(30min) : nanoseconds(3s)});
            const nanoseconds by = forward ? size : -size;
            patience_ += size;
            server_.jump(by);
            judge_.clock_jumped(by);
            trouble_all_until(time_.now() + aftermath);
            break;
        }
        case mishap::script_flush:
            server_.flush_scripts();
            break;
        default:
            restart(kind);
    }
}

void day::restart(mishap kind) {
    if (!server_.accepts()) return;
    node::snapshot data;
    if (kind == mishap::restart) data = server_.snapshot();
    if (kind == mishap::restart_older) data = older_;
    server_.stop();
    const instant back = time_.now() + luck_.within({0ns, 1s});
    trouble_all_until(back + aftermath);
    if (kind != mishap::restart) judge_.data_lost(mistrusted_);
    time_.at(back, [this, data] { server_.start(data); });
}

void day::to_the_data(mishap kind) {
    if (!server_.accepts()) return;
    if (kind == mishap::vandal) return vandalize();
    foreign_takes(kind);
}

// SET NX, as other programs lock; or the hash of a read-write lock, as those do that know it.
void day::foreign_takes(mishap kind) {
    const lock_plan& plan = ways_.locks[luck_.below(ways_.locks.size())];
    const nanoseconds stay = luck_.within({5ms, 1500ms});
    const bool for_ever = kind == mishap::foreign_forever;
    if (plan.kind == scripts::lock_kind::read_write)
        return visitors_.visit(plan, for_ever ? foreigners::expiry::none : foreigners::expiry::usual);
    const std::string& lock = plan.keys->lock;
    std::vector<std::string> command{"SET", lock, "foreign", "NX"};
    const auto ms = std::chrono::duration_cast<milliseconds>(stay).count();
    if (kind == mishap::foreign) command.insert(command.end(), {"PX", std::to_string(ms)});
    if (server_.run(command).type == value::kind::nil) return;
    judge_.foreign_took(lock, for_ever ? never : time_.now() + stay);
    if (!for_ever && luck_.percent(50)) return;
    time_.after(for_ever ? stay : stay / 2, [this, plan] { foreign_leaves(plan); });
}

void day::foreign_leaves(const lock_plan& plan) {
    if (!server_.accepts()) return time_.after(100ms, [this, plan] { foreign_leaves(plan); });
    if (plan.kind == scripts::lock_kind::read_write) return visitors_.clear_out(plan);
    const std::string& lock = plan.keys->lock;
    if (server_.run({"GET", lock}).text != "foreign") return;
    server_.run({"DEL", lock});
    judge_.foreign_left(lock);
}

// Nonsense in our keys, and a script called with nonsense. None of it may break anything but the line's order.
void day::vandalize() {
    const lock_plan& plan = ways_.locks[luck_.below(ways_.locks.size())];
    judge_.waiters_vandalized();
    const std::uint64_t how = luck_.below(5);
    if (plan.kind == scripts::lock_kind::read_write && rw_luck_.percent(60)) return vandalize_rw(*plan.keys);
    vandalize_line(*plan.keys, how);
    if (rw_luck_.percent(40)) vandalize_line(*plan.keys, 2);
}

void day::vandalize_line(const scripts::lock_keys& keys, std::uint64_t how) {
    const auto line = server_.run({"ZRANGE", keys.queue, "0", "0"});
    const std::string first = line.items.empty() ? "nobody" : line.items[0].text;
    switch (how) {
        case 0:
            if (line.items.empty()) break;
            server_.run({"HSET", keys.waiters, first, "12 what"});
            server_.run({"PEXPIRE", keys.waiters, "60000"});
            break;
        case 1:
            if (!line.items.empty()) server_.run({"HDEL", keys.waiters, first});
            break;
        case 2:
            if (!server_.run({"GET", keys.fence}).text.empty()) server_.run({"SET", keys.fence, "007", "PX", "60000"});
            break;
        case 3:
            server_.run({"DEL", keys.queue});
            break;
        default:
            for (const auto& script : scripts::all()) {
                std::vector<std::string> command{"EVAL",      std::string(script.text),
                                                 "6",         keys.lock,
                                                 keys.queue,  keys.waiters,
                                                 keys.fence,  keys.leases,
                                                 keys.grants, "id"};
                command.insert(command.end(), 12, "x");
                if (script.name == "mutex/renew" || server_.run({"TYPE", keys.lock}).text != "none") continue;
                if (!server_.run(command).is_error())
                    judge_.fail("nonsense was accepted by " + std::string(script.name));
            }
    }
}

// What only a read-write lock has.
void day::vandalize_rw(const scripts::lock_keys& keys) {
    const auto ids = server_.run({"HKEYS", keys.grants});
    const std::string holder = ids.items.empty() ? "" : ids.items[rw_luck_.below(ids.items.size())].text;
    const std::string nobody = "hf_nobodynobodynobo.1.xxxxxxxxxxxxxxxxxxxxxx";
    switch (rw_luck_.below(6)) {
        case 0:
            if (holder.empty()) break;
            judge_.read_write().vandalized(keys.lock);
            server_.run({"HSET", keys.grants, holder, rw_luck_.percent(50) ? "q 17" : "r 007"});
            break;
        case 1:  // a lease that nobody has
            server_.run({"ZADD", keys.leases, std::to_string(server_.now_us() / 1000 + 1500), nobody});
            server_.run({"PEXPIRE", keys.leases, "60000"});
            break;
        case 2:
            judge_.read_write().vandalized(keys.lock);
            server_.run({"DEL", keys.leases});
            break;
        case 3:
            judge_.read_write().vandalized(keys.lock);
            server_.run({"DEL", keys.grants});
            break;
        case 4:                                     // evicted: the leases know better, and nobody comes in who may not
            judge_.read_write().excuse(keys.lock);  // of a foreign hold nothing is left
            server_.run({"DEL", keys.lock});
            break;
        default:  // a reader of ours without a lease, and a field that is nobody's
            if (server_.run({"HGET", keys.lock, "mode"}).text != "read") break;
            server_.run({"HSET", keys.lock, "r:" + nobody, "1"});
            server_.run({"HINCRBY", keys.lock, "rcount", "1"});
    }
}

}  // namespace holdfast::sim
