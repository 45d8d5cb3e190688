// Scenarios in which the locks of a Cluster require replicas. Members fail, and a replica takes over with what it has:
// at least everything that it has acknowledged. No client may have believed in anything else, so the checker excuses
// nothing.
//
// What guarantees.md excludes does not happen: a slot that moves takes its holds to a member whose replicas have not
// acknowledged them. So no member fails that takes part in a move, or whose replica lacks the last move.
//
// The answers of a failed member may arrive late. Its replacement may appear at the same address at once, as when a
// name or an address is switched to the replica.

#include <algorithm>

#include "world/cluster_backend.hpp"
#include "world/scenario_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {

constexpr milliseconds map_aftermath{500};  // until all clients have a new map

}  // namespace

// Half of these scenarios have no moves, because members must not fail during one. In some, renewals are rare, which
// shows whether a client believes in more than is left of a lease.
void scenario::draw_members_that_fail() {
    checker_.excused.slow_moves = true;
    members_crash_ = false;  // only as below
    std::erase(fault_mix_, fault::fail_over);
    if (replica_random_.percent(50)) {
        std::erase_if(fault_mix_, [](fault kind) { return kind > fault::fail_over; });
        fault_mix_.push_back(fault::cut);
    }
    if (!replica_random_.percent(60)) return;
    workload_.fixed_percent = 90;
    workload_.renew_percent = 60;
    workload_.hold = {100us, 500ms};
    workload_.leases = {600ms};
}

// No member fails and no link breaks: no client may lose by a move what the target's replicas have acknowledged.
void scenario::draw_moves_alone() {
    checker_.excused.slow_moves = true;
    members_crash_ = false;
    fault_mix_ = {fault::slot_move, fault::slot_move, fault::slot_move_cancelled};
    pace_ = {10ms, 1s};
    workload_.fixed_percent = 0;
    workload_.hold = {100us, 1500ms};
    workload_.leases = {600ms, 2000ms};
}

// The replica lags for a while before the failover.
void scenario::fail_over_to_replica_of_member() {
    if (replacing_) return;
    if (replica_random_.percent(15)) return fail_over_member();
    const std::vector<std::string> primaries = cluster_->primaries();
    const std::string which = primaries[replica_random_.below(primaries.size())];
    if (moves_a_slot(which)) return;
    const instant then = time_.now() + replica_random_.within({0ms, 250ms});
    cluster_->at(which).hold_replica_until(then);
    if (replica_random_.percent(50)) {
        hold_up_answers_of(cluster_->at(which), then + replica_random_.within({1ms, 200ms}));
    }
    trouble_all_until(then + map_aftermath);
    replacing_ = true;
    time_.at(then, [this, which] { member_fails(which); });
}

void scenario::member_fails(const std::string& which) {
    server& lost = cluster_->at(which);
    replacing_ = false;
    if (!lost.accepts() || moves_a_slot(which) || !lost.replica_knows_of_moves()) return;
    ++result_.takeovers;
    std::vector<std::string> replicas = cluster_->replicas();
    std::erase_if(replicas, [this](const std::string& each) { return !cluster_->at(each).accepts(); });
    if (replicas.empty() || replica_random_.percent(50)) return replace_in_place(which);
    promote_lagging(which, replicas[replica_random_.below(replicas.size())]);
}

// Delays only the links for locks: a client that asks for acknowledgements soon opens a new link, and asks there.
void scenario::hold_up_answers_of(const server& failing, instant until) {
    for (const auto& each : clients_) {
        for (plug* const end : each->backend_to(0).plugs()) {
            const bool leads_there = end->wire() != nullptr && servers_[end->server_number()].get() == &failing;
            const bool is_for_locks = dynamic_cast<ack_plug*>(end) == nullptr;
            if (leads_there && is_for_locks && replica_random_.percent(70)) end->wire()->down.hold_until(until);
        }
    }
}

void scenario::replace_in_place(const std::string& address) {
    server& lost = cluster_->at(address);
    note("TAKEOVER at " + address);
    const auto change = microseconds(clock_of_successor(lost, lost) - lost.now_us());
    lost.fail_over(lost.replica(), change);
    trouble_all_until(time_.now() + map_aftermath);
}

void scenario::promote_lagging(const std::string& from, const std::string& to) {
    server& lost = cluster_->at(from);
    note("CRASH of " + from + ", " + to + " takes over with what it has");
    replacing_ = true;
    lost.stop();
    const instant noticed = time_.now() + replica_random_.within({0ms, replica_random_.percent(50) ? 20ms : 1000ms});
    trouble_all_until(noticed + map_aftermath);
    if (replica_random_.percent(30)) {
        time_.at(noticed - (noticed - time_.now()) / 3, [this] { cluster_->serve(cluster::coverage::broken); });
    }
    time_.at(noticed, [this, from, to, &lost] {
        cluster_->serve(cluster::coverage::whole);
        forget_moves(from);  // begun in the meantime; no key has moved
        server& fresh = cluster_->at(to);
        fresh.step_up(lost.replica(), clock_of_successor(lost, fresh));
        cluster_->promote(to, from);
        replacing_ = false;
    });
    time_.at(noticed + replica_random_.within({1ms, 1s}), [&lost] { lost.start({}); });
}

}  // namespace holdfast::sim
