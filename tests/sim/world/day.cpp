#include "world/day.hpp"

#include <algorithm>

#include "wire/keys.hpp"
#include "wire/scripts.hpp"
#include "world/day_impl.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {
// Such that the days that once went wrong for a mutex still have nothing else.
constexpr std::uint64_t read_write_salt = 49;
constexpr std::uint64_t quorum_salt = 0x71756f72756d;
constexpr std::uint64_t replica_salt = 0x7265706c696361;
constexpr std::uint64_t partition_salt = 0x7061727469;
// Such that the days that once went wrong have none of what is drawn by these.
constexpr std::uint64_t max_lease_salt = 0x6d61786ce6;
constexpr std::uint64_t clocks_salt = 0x636c6f636b86;

// How likely it is that a day has mishaps of a kind at all; those outside the promise are rarer. A day's mishaps come
// at one pace, and each is one of its kinds.
struct likelihood {
    mishap kind;
    unsigned percent;
};
constexpr likelihood likelihoods[] = {
    {mishap::cut, 30},          {mishap::server_gone, 30},     {mishap::client_gone, 30}, {mishap::lost_replies, 30},
    {mishap::one_way_up, 30},   {mishap::one_way_down, 30},    {mishap::slow_link, 30},   {mishap::pause, 30},
    {mishap::death, 30},        {mishap::stall, 30},           {mishap::restart, 30},     {mishap::restart_empty, 8},
    {mishap::restart_older, 8}, {mishap::clock_forward, 8},    {mishap::clock_back, 8},   {mishap::script_flush, 30},
    {mishap::foreign, 30},      {mishap::foreign_forever, 30}, {mishap::vandal, 8},
};
// By a chance of their own: days that have none of these are what they were before there were any.
constexpr likelihood later_likelihoods[] = {
    {mishap::cut_off_client, 8}, {mishap::cut_off_server, 8}, {mishap::slow_server, 8}};

// Of the days that the seed gives one server, one in six has a Cluster instead. Such that those that once went wrong,
// or are known for something, have none.
constexpr std::uint64_t cluster_salt = 0x636c7573746572;
constexpr std::uint64_t cluster_one_in = 6;
constexpr std::uint64_t cluster_days = 3;

// One in three of those days has locks that ask for replicas.
constexpr std::uint64_t acknowledged_salt = 0x61636b;
constexpr std::uint64_t acknowledged_one_in = 3;
// And some of these have nothing but moves.
constexpr std::uint64_t moves_alone_salt = 0x6d6f766573;

// On one in eight of the days with one server other programs come to its read-write locks all day. Such that those that
// once went wrong, or are known for something, are what they were.
constexpr std::uint64_t guests_salt = 0x677565737473;
constexpr std::uint64_t guests_one_in = 8;
constexpr std::uint64_t guests_days = 0;

// One day in five has three servers, one in twenty-five has five.
std::size_t servers_on(const day_options& day) {
    if (day.replicated) return 1;
    return day.servers != 0 ? day.servers : day.seed % 25 == 1 ? 5 : day.seed % 5 == 3 ? 3 : 1;
}

bool has_cluster(const day_options& day) {
    if (day.cluster == day_options::clusters::always) return true;
    if (day.replicated || day.servers != 0 || servers_on(day) > 1) return false;
    return chance(day.seed ^ cluster_salt).below(cluster_one_in) == cluster_days;
}

std::unique_ptr<cluster> make_cluster(const day_options& day) {
    if (!has_cluster(day)) return nullptr;
    return std::make_unique<cluster>([](std::string_view key) { return static_cast<unsigned>(redis::slot_of(key)); });
}

bool is_acknowledged(const day_options& day) {
    if (day.replicated || !has_cluster(day)) return day.replicated;
    return chance(day.seed ^ acknowledged_salt).below(acknowledged_one_in) == 0;
}

bool is_seen_by_beliefs(const day_options& day) {
    return is_acknowledged(day) || (!has_cluster(day) && servers_on(day) > 1);
}
}  // namespace

day::day(const day_options& options)
    : options_(options),
      luck_(options.seed),
      quorum_luck_(options.seed ^ quorum_salt),
      rw_luck_(options.seed ^ read_write_salt),
      network_luck_(luck_.fork()),
      replica_luck_(options.seed ^ replica_salt),
      partition_luck_(options.seed ^ partition_salt),
      clocks_luck_(options.seed ^ clocks_salt),
      guests_luck_(options.seed ^ guests_salt),
      is_acknowledged_(is_acknowledged(options)),
      judge_(time_, is_seen_by_beliefs(options) ? judge::view::of_beliefs : judge::view::of_the_server),
      cluster_luck_(chance(options.seed ^ cluster_salt).fork()),
      cluster_(make_cluster(options)),
      servers_(make_servers()),
      visitors_(time_, rw_luck_.fork(), *servers_[0], judge_),
      begin_(time_.now()) {
    judge_.watched = servers_[0].get();
    judge_.trace = options_.trace ? [this](const std::string& what) { note(what); } : judge_.trace;
    judge_.calm_since = [this](std::string_view id, instant since) {
        const auto found = by_id_.find(id);
        return found != by_id_.end() && found->second->calm_since(since);
    };
    if (several()) {
        judge_.waiting_since = [this](const std::string& lock, instant since) { return waiting_since(lock, since); };
    }
    draw_plan();
    const std::size_t clients = 1 + luck_.below(4);
    for (std::size_t i = 0; i < clients; ++i) add_client();
}

std::vector<std::unique_ptr<server>> day::make_servers() {
    std::vector<std::unique_ptr<server>> made;
    const server_options setup = server_setup();
    if (cluster_) return make_members(setup);
    made.push_back(std::make_unique<server>(time_, luck_.fork(), setup, judge_));
    // Most people's clocks agree within a second. Where they do not, data that is lost is like a clock that is set
    // back.
    const bool agree = quorum_luck_.percent(75);
    while (made.size() < servers_on(options_)) {
        made.push_back(std::make_unique<server>(time_, quorum_luck_.fork(), setup, judge_));
        if (agree) made.back()->set_clock(made[0]->now_us() + static_cast<std::int64_t>(quorum_luck_.below(1'000'000)));
    }
    const bool hours_off = made.size() > 1 && clocks_luck_.percent(30);
    if (hours_off) put_clocks_wrong(made);
    if (made.size() > 1 && (!agree || hours_off)) judge_.excused.set_back = true;
    return made;
}

// Those of a minority, by hours.
void day::put_clocks_wrong(const std::vector<std::unique_ptr<server>>& servers) {
    const std::size_t first = clocks_luck_.below(servers.size());
    for (std::size_t i = 0; i < (servers.size() - 1) / 2; ++i) {
        const nanoseconds by = clocks_luck_.within({-furthest_off, furthest_off});
        servers[(first + i) % servers.size()]->begin_with_clock_ahead(by);
    }
}

server_options day::server_setup() {
    server_options out;
    out.engine = options_.engine;
    out.replaced_scripts = options_.replaced_scripts;
    out.pushes_overtake = options_.pushes_overtake;
    out.kill_allowed = luck_.percent(80);
    out.runs_look_alike = options_.runs_look_alike;
    out.uptimes_look_exact = options_.uptimes_look_exact;
    out.acks_write_nothing = options_.acks_write_nothing;
    out.asks_remembered = options_.asks_remembered;
    out.slots_leave_silently = options_.slots_leave_silently;
    out.half_runs_look_refused = options_.half_runs_look_refused;
    out.showings_overlooked = options_.showings_overlooked;
    out.lease_left_overlooked = options_.lease_left_overlooked;
    out.newcomers_unconfirmed = options_.newcomers_unconfirmed;
    return out;
}

void day::draw_plan() {
    ways_.deadlines_forgotten = options_.deadlines_forgotten;
    ways_.answers_forgotten = options_.answers_forgotten;
    ways_.cancellations_forgotten = options_.cancellations_forgotten;
    const std::size_t locks = 1 + luck_.below(3);
    for (std::size_t i = 0; i < locks; ++i) {
        const auto naming = luck_.percent(70) ? wire::key_naming::tagged : wire::key_naming::raw;
        ways_.locks.push_back({.keys = std::make_shared<wire::lock_keys>(
                                   wire::make_keys(wire::lock_name("lock" + std::to_string(i)), naming, "hf:"))});
    }
    mistrusted_ = luck_.percent(50) || several();
    calm_ = luck_.percent(8);
    if (calm_) {
        // Nothing but waiting in line and handing over: here the number of commands is promised.
        ways_.leases = {30'000ms};
        ways_.hold = {100us, 20ms};
        ways_.try_percent = ways_.deadline_percent = ways_.cancel_percent = 0;
        ways_.owner_percent = ways_.fixed_percent = ways_.renew_percent = 0;
        ways_.yield_after_ms = 0;
    } else {
        // Short ones beside long ones: who polls rarely must still learn soon that a short lease has ended.
        if (luck_.percent(40)) ways_.leases = {200ms, 3600ms};
        const std::size_t more = luck_.below(3);
        for (std::size_t i = 0; i < more || ways_.leases.empty(); ++i)
            ways_.leases.push_back(200ms * static_cast<int>(1 + luck_.below(3) * luck_.below(7)));
        if (luck_.percent(40)) ways_.hold = {100us, 900ms};
        draw_mishaps();
    }
    const nanoseconds busy = luck_.within({2s, 6s});
    ways_.stop = begin_ + busy;
    draw_read_write();
    draw_guests();
    if (is_acknowledged_) draw_acknowledged();
    if (cluster_) draw_cluster();
    if (is_acknowledged_) draw_takeovers();
}

// Nothing happens that is outside the promise, so that nothing is excused.
void day::draw_acknowledged() {
    calm_ = mistrusted_ = false;
    ways_.replicas_may_lag = true;
    if (!options_.nobody_acknowledges) {
        ways_.acknowledged_by = engine::packed_acknowledgement({.replicas = 1, .within = 50ms});
    }
    for (const auto& one : servers_) one->be_followed({50us, 5ms});
    std::erase_if(likely_, [](mishap kind) {
        return kind == mishap::restart_empty || kind == mishap::restart_older || kind == mishap::clock_forward ||
               kind == mishap::clock_back || kind == mishap::foreign || kind == mishap::foreign_forever ||
               kind == mishap::vandal;
    });
    if (ways_.leases.front() > longest_lease) ways_.leases = {400ms, 2000ms};
}

void day::draw_takeovers() {
    if (cluster_ && chance(options_.seed ^ moves_alone_salt).percent(20)) return draw_moves_alone();
    if (cluster_) draw_members_that_fail();
    likely_.insert(likely_.end(), 1 + likely_.size() / 2, mishap::fail_over);
    pace_ = {10ms, 1s};
}

// On half of these days nothing else goes wrong, and little happens that would wake who waits for them: then whoever
// waits for long does so because of them.
void day::draw_guests() {
    const bool drawn = guests_luck_.below(guests_one_in) == guests_days;
    has_guests_ = drawn && !calm_ && !several() && !cluster_ && !options_.replicated;
    if (!has_guests_ || guests_luck_.percent(50)) return;
    likely_.clear();
    ways_.leases = {3000ms, 3900ms};
    ways_.rest = {300ms, 3s};
}

// Half of all days have locks of that kind.
void day::draw_read_write() {
    if (rw_luck_.percent(50)) return;
    for (lock_plan& lock : ways_.locks) {
        if (&lock != &ways_.locks.front() && rw_luck_.percent(40)) continue;
        lock.kind = wire::lock_kind::read_write;
        lock.prefer = static_cast<wire::preference>(rw_luck_.below(3));
    }
    ways_.read_percent = 30 + static_cast<unsigned>(rw_luck_.below(60));
    ways_.upgrade_percent = static_cast<unsigned>(rw_luck_.below(50));
    ways_.downgrade_percent = static_cast<unsigned>(rw_luck_.below(50));
    if (rw_luck_.percent(40)) visitors_.come_with_short_leases();
    // Up and down all day, over links that break: old copies of what was asked run late.
    if (calm_ || likely_.empty() || !rw_luck_.percent(25)) return;
    ways_.upgrade_percent = ways_.downgrade_percent = 70;
    ways_.lets_go_percent = 8;
    ways_.leases = {1000ms, 3600ms};
    ways_.rest = {1ms, 60ms};
    ways_.hold = {100us, 15ms};
    likely_.insert(likely_.end(), 1 + likely_.size() / 2, mishap::client_gone);
    for (const auto& one : servers_) one->forbid_kill();
}

void day::draw_mishaps() {
    for (const auto& [kind, percent] : likelihoods) {
        if (luck_.percent(percent)) likely_.push_back(kind);
    }
    for (const auto& [kind, percent] : later_likelihoods) {
        if (partition_luck_.percent(percent)) likely_.push_back(kind);
    }
    if (quorum_luck_.percent(6)) likely_.push_back(mishap::fail_over);
    draw_newcomers();
    if (options_.forgetful_servers_vote) likely_.insert(likely_.end(), 4, mishap::restart_empty);
    if (luck_.percent(15)) likely_.clear();
    pace_ = {10ms, luck_.percent(50) ? nanoseconds(300ms) : nanoseconds(1500ms)};
}

// A server that was restarted is trusted too early, if ever, by one that did not know it before, while somebody still
// believes in a lease that is as long as it may be, and does not ask the server.
void day::draw_newcomers() {
    if (!mistrusted_ || is_acknowledged_ || !clocks_luck_.percent(25)) return;
    newcomers_ = true;
    likely_ = {mishap::newcomer, mishap::newcomer, mishap::restart_empty, mishap::pause};
    ways_.leases = {clocks_luck_.percent(50) ? 1200ms : 2000ms};
    ways_.hold = {100us, 1500ms};
    ways_.fixed_percent = 60;
}

// On half of the other days, too, some leases are as long as they may be.
milliseconds day::max_lease() const {
    const bool is_tight = newcomers_ || chance(options_.seed ^ max_lease_salt).percent(50);
    return is_tight ? ways_.longest_lease() : longest_lease;
}

client& day::add_client() {
    client_setup setup;
    setup.number = clients_.size();
    setup.servers = several() ? servers_.size() : 1;
    if (cluster_) setup.server = cluster_settings();
    for (const lock_plan& lock : ways_.locks) setup.locks.push_back(lock.keys);
    setup.server.connect_timeout = 500ms;
    setup.server.request_timeout = 500ms;
    setup.server.health_interval = 1000ms;
    setup.server.backoff_max = 400ms;
    setup.engine.request_timeout = 500ms;
    if (is_acknowledged_ || cluster_) setup.engine.clock_skew = clock_skew;
    if (options_.seed % 5 == 3) setup.engine.most_renewals = 1;  // they give way as they do where there are thousands
    setup.engine.fence_retention = luck_.percent(50) ? 60'000ms : 3'600'000ms;
    if (mistrusted_ && !options_.forgetful_servers_vote) setup.max_lease = max_lease();
    setup.clock_stops_in_pauses = options_.clock_stops_in_pauses;
    setup.nobody_waits_for_first_links = options_.nobody_waits_for_first_links;
    ids_.push_back(std::make_unique<chance>(options_.ids_repeat ? options_.seed : luck_.next()));
    clients_.push_back(std::make_unique<client>(time_, luck_.fork(), *ids_.back(), setup, *this));
    client& fresh = *clients_.back();
    by_id_[fresh.engine().id().text()] = &fresh;
    const std::size_t people = 1 + luck_.below(4);
    for (std::size_t i = 0; i < people; ++i) {
        const std::string name = "c" + std::to_string(setup.number) + "." + std::to_string(i);
        actor::place where{time_, fresh, judge_, ways_, judge_.trace};
        actors_.push_back({&fresh, std::make_unique<actor>(where, luck_.fork(), name, i + 1)});
        actors_.back().who->start();
    }
    fresh.start();
    return fresh;
}

void day::note(const std::string& what) const {
    if (!options_.trace) return;
    const auto us = std::chrono::duration_cast<microseconds>(time_.now() - begin_).count();
    std::string stamp = std::to_string(us);
    stamp.insert(0, stamp.size() < 9 ? 9 - stamp.size() : 0, ' ');
    options_.trace(stamp + " " + what);
}

// A link is made when a packet has gone there and back.
void day::connect(plug& from) {
    const unsigned attempt = from.attempt();
    const nanoseconds there = network_luck_.within(delay_);
    const std::pair way{from.owner().number(), from.node()};
    const auto& [up, down] = blocked_[way];
    const instant arrives = std::max(time_.now() + there, up);
    time_.at(arrives, [this, &from, attempt, way] {
        const nanoseconds back = network_luck_.within(delay_);
        const instant known = std::max(time_.now() + back, blocked_[way].second);
        server& there_is = *servers_[from.node()];
        if (!there_is.accepts()) return time_.at(known, [&from, attempt] { from.not_connected(attempt); });
        links_.push_back(std::make_unique<link>(
            time_, network_luck_,
            [this, &there_is, n = links_.size()](const packet& p) { there_is.received(*links_[n], p); },
            [this, &from, n = links_.size()](const packet& p) { from.received(*links_[n], p); }));
        link& fresh = *links_.back();
        fresh.client = from.owner().number();
        fresh.up.delay = fresh.down.delay = delay_;
        fresh.up.hold_until(blocked_[way].first);
        fresh.down.hold_until(blocked_[way].second);
        there_is.accept(fresh);
        time_.at(known, [&from, &fresh, attempt] { from.connected(fresh, attempt); });
    });
}

bool day::run_until(instant end) {
    std::uint64_t steps = 0;
    while (!judge_.failed() && time_.step(end)) {
        if (++steps > 3'000'000) judge_.fail("the day does not end: something spins");
    }
    return !judge_.failed();
}

bool day::everybody_idle() const {
    return std::all_of(actors_.begin(), actors_.end(), [](const person& p) { return p.home->dead() || p.who->idle(); });
}

day_result day::run() {
    if (!likely_.empty()) plan_mishap();
    if (has_guests_) plan_visit();
    if (calm_ && several()) watch_progress({});
    run_until(ways_.stop);
    quiet_ = true;
    // A foreign hold without expiry may have come back with an older snapshot; somebody clears it up.
    for (const lock_plan& lock : ways_.locks) {
        if (!several()) foreign_leaves(lock);
    }
    // Where only beliefs are seen: when the leases of the dead are over, and the last of those who was mistrusted.
    if (is_seen_by_beliefs(options_) && !calm_) {
        time_.after(patience_ - usual_patience + 3 * longest_lease, [this] { watch_progress({}); });
    }
    // Newcomers make the queue long: everybody in it may hold for a lease, one after the other.
    const instant patience = time_.now() + patience_ + actors_.size() * ways_.longest_lease();
    while (!judge_.failed() && !everybody_idle() && time_.now() < patience) run_until(time_.now() + 200ms);
    for (const person& p : actors_) {
        if (!judge_.failed() && !p.home->dead() && !p.who->idle())
            judge_.fail("still not served long after all mishaps: " + p.who->describe());
    }
    if (!judge_.failed()) run_until(time_.now() + 2s);
    if (!judge_.failed()) check_commands();
    for (const auto& c : clients_) {
        if (!judge_.failed() && !c->dead()) c->close();
    }
    if (!judge_.failed()) check_night();
    result_.verdict = judge_.verdict();
    result_.holds = judge_.cycles();
    result_.scripts = scripts_run();
    result_.simulated = time_.now() - begin_;
    return result_;
}

// A contended cycle costs two commands, an upgrade and a downgrade one each. A script that is not known yet costs one
// more, once per client and script, on each member of a Cluster.
void day::check_commands() {
    if (!calm_) return;
    const std::size_t members = cluster_ ? servers_.size() : 1;
    std::uint64_t allowed = 2 * judge_.cycles() + judge_.changes() + 4 * members * actors_.size();
    // A split vote costs more: votes are given up and granted again, tokens raised.
    if (several()) allowed = servers_.size() * (4 * judge_.cycles() + 2 * judge_.changes() + 6 * actors_.size());
    if (scripts_run() > allowed)
        judge_.fail("too many commands: " + std::to_string(scripts_run()) + " for " + std::to_string(judge_.cycles()) +
                    " holds");
}

std::uint64_t day::scripts_run() const {
    std::uint64_t sum = 0;
    for (const auto& one : servers_) sum += one->scripts_run();
    return sum;
}

std::vector<std::string> day::waiting_since(const std::string& lock, instant since) const {
    std::vector<std::string> found;
    const bool by_arrival = std::any_of(ways_.locks.begin(), ways_.locks.end(), [&](const lock_plan& one) {
        return one.keys->lock() == lock && one.kind == wire::lock_kind::mutex;
    });
    for (const person& p : actors_) {
        if (by_arrival && p.who->waits_for(lock) && p.who->asked_at() < since && p.home->calm_since(since))
            found.push_back(p.who->describe());
    }
    return found;
}

// Where nothing goes wrong, somebody has the lock soon if anybody wants it: no split vote lasts.
void day::watch_progress(std::map<std::string, instant> idle_since) {
    constexpr milliseconds soon{250};
    for (const lock_plan& lock : ways_.locks) {
        const std::string& name = lock.keys->lock();
        const bool wanted = std::any_of(actors_.begin(), actors_.end(),
                                        [&](const person& p) { return !p.home->dead() && p.who->waits_for(name); });
        if (!wanted || judge_.may_be_taken(name)) {
            idle_since.erase(name);
        } else if (time_.now() - idle_since.emplace(name, time_.now()).first->second > soon) {
            judge_.fail("nobody gets " + name + " though somebody wants it");
        }
    }
    if (quiet_ && everybody_idle()) return;
    time_.after(10ms, [this, idle_since] { watch_progress(idle_since); });
}

void day::check_night() {
    if (cluster_) clear_up_strays();
    run_until(time_.now() + 5s);
    const auto check = [this](auto&& what) {
        for (const auto& one : servers_) {
            const auto here = one->snapshot();
            const keyspace::instant look{one->now_us() / 1000, role::primary};
            for (const auto* item : here.living_entries(look)) what(*item);
        }
    };
    check([this](const auto& item) {
        if (item.second.expires_ms == no_expiry) judge_.fail("a key without expiry is left: " + item.first);
    });
    // The last lease, then what a line keeps without a poll: six intervals of a third of a lease.
    run_until(time_.now() + patience_ + 3 * ways_.longest_lease() + 60s);
    check([this](const auto& item) {
        const bool is_mark = std::any_of(ways_.locks.begin(), ways_.locks.end(),
                                         [&](const lock_plan& lock) { return item.first == lock.keys->fence(); });
        if (!is_mark) judge_.fail("nobody is there any more, and still there is " + item.first);
    });
    // A token that came from a server whose clock is ahead is remembered longer by others.
    run_until(time_.now() + (several() ? 3h + 2 * furthest_off + patience_ : nanoseconds(2h)));
    check([this](const auto& item) { judge_.fail("a key is left for ever: " + item.first); });
}

day_result simulate(const day_options& options) {
    day today(options);
    return today.run();
}

}  // namespace holdfast::sim
