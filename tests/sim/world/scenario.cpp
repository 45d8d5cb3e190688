#include "world/scenario.hpp"

#include <algorithm>

#include "wire/keys.hpp"
#include "wire/scripts.hpp"
#include "world/scenario_impl.hpp"
#include "world/set_actor.hpp"
#include "world/watch_actor.hpp"

namespace holdfast::sim {

using namespace std::chrono_literals;

namespace {
// The salts below are chosen such that the regression seeds keep what they had when they showed a bug: this one leaves
// them without read-write locks.
constexpr std::uint64_t read_write_salt = 49;
constexpr std::uint64_t quorum_salt = 0x71756f72756d;
constexpr std::uint64_t replica_salt = 0x7265706c696361;
constexpr std::uint64_t partition_salt = 0x7061727469;
// These leave the regression seeds without what they draw.
constexpr std::uint64_t max_lease_salt = 0x6d61786ce6;
constexpr std::uint64_t set_salt = 15838;  // this and the next leave the seeds that detect mutants what they were
constexpr std::uint64_t delay_salt = 104729;
constexpr std::uint64_t note_salt = 0x6e6f7465;
constexpr std::uint64_t clocks_salt = 0x636c6f636b86;

// In one of five scenarios some users watch mutexes. The salt leaves the regression seeds without.
constexpr std::uint64_t watch_salt = 0x77617473;

// The percentage of scenarios that have a kind of fault at all. Faults outside the promise are rarer. The faults of a
// scenario come at one pace, and each is one of its kinds.
struct likelihood {
    fault kind;
    unsigned percent;
};
constexpr likelihood likelihoods[] = {
    {fault::cut, 30},          {fault::server_gone, 30},     {fault::client_gone, 30},      {fault::lost_replies, 30},
    {fault::one_way_up, 30},   {fault::one_way_down, 30},    {fault::slow_link, 30},        {fault::pause, 30},
    {fault::death, 30},        {fault::stall, 30},           {fault::restart, 30},          {fault::restart_empty, 8},
    {fault::restart_older, 8}, {fault::clock_forward, 8},    {fault::clock_back, 8},        {fault::script_flush, 30},
    {fault::foreign, 30},      {fault::foreign_forever, 30}, {fault::corrupting_client, 8},
};
// Drawn from a stream of their own: scenarios without them draw what they drew before these kinds existed.
constexpr likelihood later_likelihoods[] = {
    {fault::cut_off_client, 8}, {fault::cut_off_server, 8}, {fault::slow_server, 8}};

// Of the scenarios with one server, one in six has a Cluster instead. The residue leaves the regression seeds without
// one.
constexpr std::uint64_t cluster_salt = 0x636c7573746572;
constexpr std::uint64_t cluster_one_in = 6;
constexpr std::uint64_t cluster_residue = 3;

// One Cluster scenario in three has locks that require replicas.
constexpr std::uint64_t acknowledged_salt = 0x61636b;
constexpr std::uint64_t acknowledged_one_in = 3;
// Some of these have no faults but slot moves.
constexpr std::uint64_t moves_alone_salt = 0x6d6f766573;

// In one of eight scenarios with one server, foreign clients use its read-write locks all the time. The residue leaves
// the regression seeds as they were.
constexpr std::uint64_t foreign_traffic_salt = 0x677565737473;
constexpr std::uint64_t foreign_traffic_one_in = 8;
constexpr std::uint64_t foreign_traffic_residue = 0;

// In half of all scenarios clients keep locks. The salt leaves the regression seeds without.
constexpr std::uint64_t kept_salt = 0x6b657114;

// In one of seven scenarios some clients poll, or take messages for hints. The residue leaves the regression seeds
// without.
constexpr std::uint64_t polling_salt = 0x706f6c6c;
constexpr std::uint64_t polling_one_in = 7;
constexpr std::uint64_t polling_residue = 5;

// In one of five scenarios some locks are semaphores. The salt leaves the regression seeds without.
constexpr std::uint64_t semaphore_salt = 0x73656d61;

// One scenario in five has three servers, one in twenty-five has five.
std::size_t servers_on(const scenario_options& scenario) {
    if (scenario.replicated) return 1;
    return scenario.servers != 0 ? scenario.servers : scenario.seed % 25 == 1 ? 5 : scenario.seed % 5 == 3 ? 3 : 1;
}

bool has_cluster(const scenario_options& scenario) {
    if (scenario.cluster == scenario_options::clusters::always) return true;
    if (scenario.replicated || scenario.servers != 0 || servers_on(scenario) > 1) return false;
    return random_stream(scenario.seed ^ cluster_salt).below(cluster_one_in) == cluster_residue;
}

std::unique_ptr<cluster> make_cluster(const scenario_options& scenario) {
    if (!has_cluster(scenario)) return nullptr;
    return std::make_unique<cluster>([](std::string_view key) { return static_cast<unsigned>(redis::slot_of(key)); });
}

bool is_acknowledged(const scenario_options& scenario) {
    if (scenario.replicated || !has_cluster(scenario)) return scenario.replicated;
    return random_stream(scenario.seed ^ acknowledged_salt).below(acknowledged_one_in) == 0;
}

bool has_keepers(const scenario_options& scenario) {
    using keeping = scenario_options::keeping;
    if (scenario.kept != keeping::by_seed) return scenario.kept == keeping::always;
    return random_stream(scenario.seed ^ kept_salt).percent(50);
}

bool has_pollers(const scenario_options& scenario) {
    using polling = scenario_options::polling;
    if (scenario.polls != polling::by_seed) return true;
    return scenario.seed % polling_one_in == polling_residue;
}

bool has_semaphores(const scenario_options& scenario) {
    using counting = scenario_options::counting;
    if (scenario.semaphores != counting::by_seed) return scenario.semaphores == counting::always;
    return random_stream(scenario.seed ^ semaphore_salt).percent(20);
}

bool has_notes(const scenario_options& scenario) {
    using noting = scenario_options::noting;
    if (scenario.notes != noting::by_seed) return scenario.notes == noting::always;
    return random_stream(scenario.seed ^ note_salt).percent(25);
}

bool has_watchers(const scenario_options& scenario) {
    using watching = scenario_options::watching;
    if (!has_cluster(scenario) && servers_on(scenario) > 1) return false;
    if (scenario.watchers != watching::by_seed) return scenario.watchers == watching::always;
    return random_stream(scenario.seed ^ watch_salt).percent(20);
}

bool is_seen_by_beliefs(const scenario_options& scenario) {
    return is_acknowledged(scenario) || (!has_cluster(scenario) && servers_on(scenario) > 1);
}
}  // namespace

scenario::scenario(const scenario_options& options)
    : options_(options),
      random_(options.seed),
      quorum_random_(options.seed ^ quorum_salt),
      rw_random_(options.seed ^ read_write_salt),
      network_random_(random_.fork()),
      replica_random_(options.seed ^ replica_salt),
      partition_random_(options.seed ^ partition_salt),
      clocks_random_(options.seed ^ clocks_salt),
      foreign_random_(options.seed ^ foreign_traffic_salt),
      kept_random_(options.seed ^ kept_salt),
      polling_random_(options.seed ^ polling_salt),
      semaphore_random_(random_stream(options.seed ^ semaphore_salt).fork()),
      watch_random_(random_stream(options.seed ^ watch_salt).fork()),
      is_kept_(has_keepers(options)),
      is_watched_(has_watchers(options)),
      is_acknowledged_(is_acknowledged(options)),
      checker_(time_, is_seen_by_beliefs(options) ? checker::view::of_beliefs : checker::view::of_the_server),
      cluster_random_(random_stream(options.seed ^ cluster_salt).fork()),
      cluster_(make_cluster(options)),
      servers_(make_servers()),
      foreign_clients_(time_, rw_random_.fork(), *servers_[0], checker_),
      begin_(time_.now()) {
    checker_.watched = servers_[0].get();
    checker_.trace = options_.trace ? [this](const std::string& what) { note(what); } : checker_.trace;
    checker_.calm_since = [this](std::string_view id, instant since) {
        const auto found = by_id_.find(id);
        return found != by_id_.end() && found->second->calm_since(since);
    };
    if (several()) {
        checker_.waiting_since = [this](const std::string& lock, instant since) { return waiting_since(lock, since); };
    }
    checker_.told_within = std::chrono::ceil<milliseconds>(2 * delay_.to) + 1ms;
    checker_.unused_since = [this](const std::string& id) -> std::optional<instant> {
        for (const auto& each : keepers_) {
            if (const auto unused = each->unused_since(id); unused && !each->process().dead()) return unused;
        }
        return std::nullopt;
    };
    checker_.passes_of = [this](const std::string& id) -> std::optional<unsigned> {
        for (const auto& each : keepers_) {
            if (each->has_hold(id)) return each->setup().passes;
        }
        return std::nullopt;
    };
    draw_plan();
    const std::size_t clients = 1 + random_.below(4);
    for (std::size_t i = 0; i < clients; ++i) add_client();
    if (is_watched_) {
        if (watch_random_.percent(60)) add_observer();
        watch_the_watchers();
    }
}

std::vector<std::unique_ptr<server>> scenario::make_servers() {
    std::vector<std::unique_ptr<server>> made;
    const server_options setup = server_setup();
    if (cluster_) return make_members(setup);
    made.push_back(std::make_unique<server>(time_, random_.fork(), setup, checker_));
    // In most scenarios the clocks agree within a second. Where they do not, lost data is equivalent to a clock set
    // back.
    const bool agree = quorum_random_.percent(75);
    while (made.size() < servers_on(options_)) {
        made.push_back(std::make_unique<server>(time_, quorum_random_.fork(), setup, checker_));
        if (agree)
            made.back()->set_clock(made[0]->now_us() + static_cast<std::int64_t>(quorum_random_.below(1'000'000)));
    }
    const bool hours_off = made.size() > 1 && clocks_random_.percent(30);
    if (hours_off) skew_clocks(made);
    if (made.size() > 1 && (!agree || hours_off)) checker_.excused.set_back = true;
    return made;
}

// Sets the clocks of a minority wrong by hours.
void scenario::skew_clocks(const std::vector<std::unique_ptr<server>>& servers) {
    const std::size_t first = clocks_random_.below(servers.size());
    for (std::size_t i = 0; i < (servers.size() - 1) / 2; ++i) {
        const nanoseconds by = clocks_random_.within({-max_clock_error, max_clock_error});
        servers[(first + i) % servers.size()]->begin_with_clock_ahead(by);
    }
}

server_options scenario::server_setup() {
    server_options out;
    out.engine = options_.engine;
    out.replaced_scripts = options_.replaced_scripts;
    out.pushes_overtake = options_.pushes_overtake;
    out.kill_allowed = random_.percent(80);
    out.runs_look_alike = options_.runs_look_alike;
    out.uptimes_look_exact = options_.uptimes_look_exact;
    out.acks_write_nothing = options_.acks_write_nothing;
    out.asks_remembered = options_.asks_remembered;
    out.slots_leave_silently = options_.slots_leave_silently;
    out.half_runs_look_refused = options_.half_runs_look_refused;
    out.confirm_answers_ignored = options_.confirm_answers_ignored;
    out.lease_left_ignored = options_.lease_left_ignored;
    out.moved_keys_unconfirmed = options_.moved_keys_unconfirmed;
    return out;
}

void scenario::draw_plan() {
    workload_.deadlines_ignored = options_.deadlines_ignored;
    workload_.answers_ignored = options_.answers_ignored;
    workload_.cancellations_ignored = options_.cancellations_ignored;
    workload_.delay_ignored = options_.delay_ignored;
    workload_.broken_watcher = options_.broken_watcher;
    const std::size_t locks = 1 + random_.below(3);
    for (std::size_t i = 0; i < locks; ++i) {
        const auto naming = random_.percent(70) ? wire::key_naming::tagged : wire::key_naming::raw;
        workload_.locks.push_back({.keys = std::make_shared<wire::lock_keys>(
                                       wire::make_keys(wire::lock_name("lock" + std::to_string(i)), naming, "hf:"))});
    }
    mistrusted_ = random_.percent(50) || several();
    fault_free_ = random_.percent(8);
    if (fault_free_) {
        // Only queueing and hand-over: here the number of commands is promised.
        workload_.leases = {30'000ms};
        workload_.hold = {100us, 20ms};
        workload_.try_percent = workload_.deadline_percent = workload_.cancel_percent = 0;
        workload_.owner_percent = workload_.fixed_percent = workload_.renew_percent = 0;
        workload_.yield_after_ms = 0;
    } else {
        // Short leases beside long ones: a waiter that polls rarely must still learn soon that a short lease has ended.
        if (random_.percent(40)) workload_.leases = {200ms, 3600ms};
        const std::size_t more = random_.below(3);
        for (std::size_t i = 0; i < more || workload_.leases.empty(); ++i)
            workload_.leases.push_back(200ms * static_cast<int>(1 + random_.below(3) * random_.below(7)));
        if (random_.percent(40)) workload_.hold = {100us, 900ms};
        draw_faults();
    }
    // In a fourth of the scenarios mutexes have a delay.
    random_stream delay_random(options_.seed ^ delay_salt);
    if (!fault_free_ && delay_random.percent(25)) workload_.delay = 100ms * static_cast<int>(1 + delay_random.below(4));
    if (!fault_free_ && has_notes(options_)) workload_.note_percent = 60;
    has_sets_ = !fault_free_ && random_stream(options_.seed ^ set_salt).percent(25);
    const nanoseconds busy = random_.within({2s, 6s});
    workload_.stop = begin_ + busy;
    draw_read_write();
    if (has_semaphores(options_) && !several()) draw_semaphores();
    draw_foreign_traffic();
    if (is_acknowledged_) draw_acknowledged();
    if (cluster_) draw_cluster();
    if (is_acknowledged_) draw_takeovers();
}

// No fault outside the promise happens, so the checker excuses nothing.
void scenario::draw_acknowledged() {
    fault_free_ = mistrusted_ = false;
    workload_.replicas_may_lag = true;
    if (!options_.nobody_acknowledges) {
        workload_.replicas = 1;
        workload_.replica_timeout_ms = 50;
    }
    for (const auto& one : servers_) one->be_followed({50us, 5ms});
    std::erase_if(fault_mix_, [](fault kind) {
        return kind == fault::restart_empty || kind == fault::restart_older || kind == fault::clock_forward ||
               kind == fault::clock_back || kind == fault::foreign || kind == fault::foreign_forever ||
               kind == fault::corrupting_client;
    });
    if (workload_.leases.front() > longest_lease) workload_.leases = {400ms, 2000ms};
}

void scenario::draw_takeovers() {
    if (cluster_ && random_stream(options_.seed ^ moves_alone_salt).percent(20)) return draw_moves_alone();
    if (cluster_) draw_members_that_fail();
    fault_mix_.insert(fault_mix_.end(), 1 + fault_mix_.size() / 2, fault::fail_over);
    pace_ = {10ms, 1s};
}

// Half of these scenarios have no other faults and few events that would wake a waiter. A long wait is then caused by
// foreign clients.
void scenario::draw_foreign_traffic() {
    const bool drawn = foreign_random_.below(foreign_traffic_one_in) == foreign_traffic_residue;
    has_foreign_traffic_ = drawn && !fault_free_ && !several() && !cluster_ && !options_.replicated;
    if (!has_foreign_traffic_ || foreign_random_.percent(50)) return;
    fault_mix_.clear();
    workload_.leases = {3000ms, 3900ms};
    workload_.rest = {300ms, 3s};
}

// Half of all scenarios have read-write locks.
void scenario::draw_read_write() {
    if (rw_random_.percent(50)) return;
    for (lock_plan& lock : workload_.locks) {
        if (&lock != &workload_.locks.front() && rw_random_.percent(40)) continue;
        lock.kind = wire::lock_kind::read_write;
        lock.prefer = static_cast<wire::preference>(rw_random_.below(3));
    }
    workload_.read_percent = 30 + static_cast<unsigned>(rw_random_.below(60));
    workload_.upgrade_percent = static_cast<unsigned>(rw_random_.below(50));
    workload_.downgrade_percent = static_cast<unsigned>(rw_random_.below(50));
    if (rw_random_.percent(40)) foreign_clients_.use_short_leases();
    // Frequent upgrades and downgrades over links that break: old copies of requests run late.
    if (fault_free_ || fault_mix_.empty() || !rw_random_.percent(25)) return;
    workload_.upgrade_percent = workload_.downgrade_percent = 70;
    workload_.release_percent = 8;
    workload_.leases = {1000ms, 3600ms};
    workload_.rest = {1ms, 60ms};
    workload_.hold = {100us, 15ms};
    fault_mix_.insert(fault_mix_.end(), 1 + fault_mix_.size() / 2, fault::client_gone);
    for (const auto& one : servers_) one->forbid_kill();
}

// Other programs know no semaphores.
void scenario::draw_semaphores() {
    for (std::size_t i = 0; i < workload_.locks.size(); ++i) {
        lock_plan& lock = workload_.locks[i];
        if (i != 0 && semaphore_random_.percent(50)) continue;
        lock.keys = std::make_shared<wire::lock_keys>(
            wire::make_keys(wire::lock_name("pool" + std::to_string(i)), wire::key_naming::tagged, "hf:"));
        lock.kind = wire::lock_kind::semaphore;
        lock.limit = 1 + static_cast<std::uint32_t>(semaphore_random_.below(5));
    }
    workload_.limits_differ = !fault_free_ && !is_acknowledged_ && !cluster_ && semaphore_random_.percent(50);
}

void scenario::draw_faults() {
    for (const auto& [kind, percent] : likelihoods) {
        if (random_.percent(percent)) fault_mix_.push_back(kind);
    }
    for (const auto& [kind, percent] : later_likelihoods) {
        if (partition_random_.percent(percent)) fault_mix_.push_back(kind);
    }
    if (quorum_random_.percent(6)) fault_mix_.push_back(fault::fail_over);
    draw_newcomers();
    if (options_.forgetful_servers_vote) fault_mix_.insert(fault_mix_.end(), 4, fault::restart_empty);
    if (random_.percent(15)) fault_mix_.clear();
    pace_ = {10ms, random_.percent(50) ? nanoseconds(300ms) : nanoseconds(1500ms)};
}

// Looks for trust that is granted too early: a new client trusts a restarted server while another client still believes
// in a lease of maximum length and does not contact that server.
void scenario::draw_newcomers() {
    if (!mistrusted_ || is_acknowledged_ || !clocks_random_.percent(25)) return;
    newcomers_ = true;
    fault_mix_ = {fault::newcomer, fault::newcomer, fault::restart_empty, fault::pause};
    workload_.leases = {clocks_random_.percent(50) ? 1200ms : 2000ms};
    workload_.hold = {100us, 1500ms};
    workload_.fixed_percent = 60;
}

// In half of the other scenarios, too, some leases have the maximum length.
milliseconds scenario::max_lease() const {
    const bool is_tight = newcomers_ || random_stream(options_.seed ^ max_lease_salt).percent(50);
    return is_tight ? workload_.longest_lease() : longest_lease;
}

client& scenario::make_client(client_kind kind) {
    client_setup setup;
    setup.number = clients_.size();
    setup.servers = several() ? servers_.size() : 1;
    if (cluster_) setup.server = cluster_settings();
    for (const lock_plan& lock : workload_.locks) setup.locks.push_back(lock.keys);
    setup.server.connect_timeout = 500ms;
    setup.server.request_timeout = 500ms;
    setup.server.health_interval = 1000ms;
    setup.server.backoff_max = 400ms;
    setup.engine.request_timeout = 500ms;
    if (is_acknowledged_ || cluster_) setup.engine.clock_skew = clock_skew;
    if (options_.seed % 5 == 3)
        setup.engine.most_renewals = 1;  // renewals wait for each other as in a client with thousands of holds
    setup.engine.fence_retention = random_.percent(50) ? 60'000ms : 3'600'000ms;
    if (mistrusted_ && !options_.forgetful_servers_vote) setup.max_lease = max_lease();
    setup.clock_stops_in_pauses = options_.clock_stops_in_pauses;
    setup.first_failure_ends_waits = options_.first_failure_ends_waits;
    setup.is_deaf_to_changes = options_.broken_watcher == watch_mutant::is_deaf;
    setup.subscribes_late = kind == client_kind::observer && options_.broken_watcher == watch_mutant::subscribes_late;
    draw_wake_up(setup);
    ids_.push_back(std::make_unique<random_stream>(options_.ids_repeat ? options_.seed : random_.next()));
    clients_.push_back(std::make_unique<client>(time_, random_.fork(), *ids_.back(), setup, *this));
    client& fresh = *clients_.back();
    by_id_[fresh.engine().id().text()] = &fresh;
    if (setup.wakes == engine::woken_by::poll) checker_.pollers.insert(fresh.engine().id().text());
    return fresh;
}

client& scenario::add_client() {
    client& fresh = make_client(client_kind::user);
    const std::vector<keeper*> kept = is_kept_ ? add_keepers(fresh) : std::vector<keeper*>();
    const std::size_t actors = 1 + random_.below(4);
    for (std::size_t i = 0; i < actors; ++i) {
        const std::string name = "c" + std::to_string(fresh.number()) + "." + std::to_string(i);
        actor::environment where{time_, fresh, checker_, workload_, checker_.trace};
        random_stream random = random_.fork();
        if (!kept.empty() && kept_random_.percent(60)) {
            actors_.push_back({&fresh, std::make_unique<kept_actor>(where, kept, random, name, i + 1)});
        } else {
            actors_.push_back({&fresh, std::make_unique<actor>(where, random, name, i + 1)});
        }
        actors_.back().self->start();
    }
    if (has_sets_) {
        const actor::environment where{time_, fresh, checker_, workload_, checker_.trace};
        const std::string name = "c" + std::to_string(fresh.number()) + ".set";
        actors_.push_back(
            {&fresh, std::make_unique<set_actor>(where, random_stream(options_.seed ^ fresh.number()), name)});
        actors_.back().self->start();
    }
    if (is_watched_ && watch_random_.percent(50)) add_watchers(fresh);
    fresh.start();
    return fresh;
}

// A client that does nothing but watch.
void scenario::add_observer() {
    client& fresh = make_client(client_kind::observer);
    add_watchers(fresh);
    fresh.start();
}

// Nobody watches a raw key, where other programs announce nothing.
void scenario::add_watchers(client& process) {
    const actor::environment where{time_, process, checker_, workload_, checker_.trace};
    for (const lock_plan& lock : workload_.locks) {
        if (lock.kind != wire::lock_kind::mutex || lock.keys->is_raw() || watch_random_.percent(30)) continue;
        const std::size_t watchers = 1 + watch_random_.below(2);
        for (std::size_t i = 0; i < watchers; ++i) {
            const std::string name = "c" + std::to_string(process.number()) + ".w" + std::to_string(i);
            actors_.push_back({&process, std::make_unique<watch_actor>(where, lock.keys, watch_random_.fork(), name)});
            actors_.back().self->start();
        }
    }
}

void scenario::watch_the_watchers() {
    time_.after(10ms, [this] {
        checker_.watches().look();
        if (!is_over_) watch_the_watchers();
    });
}

void scenario::draw_wake_up(client_setup& setup) {
    if (!has_pollers(options_)) return;
    const bool all_hinted = options_.polls == scenario_options::polling::all_hinted;
    if (!all_hinted && polling_random_.percent(50)) {
        setup.wakes = engine::woken_by::poll;
        setup.server.wake = redis::wake_choice::poll;
    } else if (all_hinted || (!cluster_ && polling_random_.percent(50))) {
        setup.wakes = engine::woken_by::hint;
    }
}

std::vector<keeper*> scenario::add_keepers(client& process) {
    std::vector<keeper*> added;
    for (const lock_plan& lock : workload_.locks) {
        // Other programs cannot ask.
        if (lock.keys->is_raw() || !kept_random_.percent(80)) continue;
        if (lock.kind == wire::lock_kind::semaphore) continue;
        keeper_setup setup;
        setup.keys = lock.keys;
        setup.mutant = options_.broken_keeper;
        setup.options.kind = lock.kind;
        setup.options.prefer = lock.prefer;
        setup.options.lease = workload_.leases[kept_random_.below(workload_.leases.size())];
        setup.options.replicas = workload_.replicas;
        setup.options.replica_timeout_ms = workload_.replica_timeout_ms;
        setup.options.kept = true;
        constexpr std::array<milliseconds, 4> keeps{0ms, 20ms, 300ms, 2000ms};
        constexpr std::array<unsigned, 4> passes{0, 1, 3, 16};
        setup.keep = keeps[kept_random_.below(keeps.size())];
        setup.passes = passes[kept_random_.below(passes.size())];
        keepers_.push_back(std::make_unique<keeper>(time_, process, checker_, setup, checker_.trace));
        added.push_back(keepers_.back().get());
    }
    return added;
}

void scenario::note(const std::string& what) const {
    if (!options_.trace) return;
    const auto us = std::chrono::duration_cast<microseconds>(time_.now() - begin_).count();
    std::string stamp = std::to_string(us);
    stamp.insert(0, stamp.size() < 9 ? 9 - stamp.size() : 0, ' ');
    options_.trace(stamp + " " + what);
}

// A link is up after one round trip.
void scenario::connect(plug& from) {
    const unsigned attempt = from.attempt();
    const nanoseconds there = network_random_.within(delay_);
    const std::pair path{from.owner().number(), from.server_number()};
    const auto& [up, down] = blocked_[path];
    const instant arrives = std::max(time_.now() + there, up);
    time_.at(arrives, [this, &from, attempt, path] {
        const nanoseconds back = network_random_.within(delay_);
        const instant known = std::max(time_.now() + back, blocked_[path].second);
        server& there_is = *servers_[from.server_number()];
        if (!there_is.accepts()) return time_.at(known, [&from, attempt] { from.not_connected(attempt); });
        links_.push_back(std::make_unique<link>(
            time_, network_random_,
            [this, &there_is, n = links_.size()](const packet& p) { there_is.received(*links_[n], p); },
            [this, &from, n = links_.size()](const packet& p) { from.received(*links_[n], p); }));
        link& fresh = *links_.back();
        fresh.client = from.owner().number();
        fresh.up.delay = fresh.down.delay = delay_;
        fresh.up.hold_until(blocked_[path].first);
        fresh.down.hold_until(blocked_[path].second);
        there_is.accept(fresh);
        time_.at(known, [&from, &fresh, attempt] { from.connected(fresh, attempt); });
    });
}

bool scenario::run_until(instant end) {
    std::uint64_t steps = 0;
    while (!checker_.failed() && time_.step(end)) {
        if (++steps > 3'000'000) checker_.fail("the scenario does not end: an endless loop of events");
    }
    return !checker_.failed();
}

bool scenario::all_idle() const {
    return std::all_of(actors_.begin(), actors_.end(),
                       [](const placed_actor& p) { return p.process->dead() || p.self->idle(); });
}

scenario_result scenario::run() {
    if (!fault_mix_.empty()) plan_fault();
    if (has_foreign_traffic_) plan_foreign_session();
    if (workload_.limits_differ) plan_resize();
    if (fault_free_ && several()) check_progress({});
    run_until(workload_.stop);
    draining_ = true;
    // An older snapshot may have restored a foreign hold without expiry: remove it.
    for (const lock_plan& lock : workload_.locks) {
        if (!several()) foreign_release(lock);
    }
    // Where the checker sees only beliefs: start when the leases of dead clients and the last distrust of a server are
    // over.
    if (is_seen_by_beliefs(options_) && !fault_free_) {
        time_.after(patience_ - usual_patience + 3 * longest_lease, [this] { check_progress({}); });
    }
    // Newcomers make the queue long: each waiter in it may hold for a lease, one after the other.
    const instant patience = time_.now() + patience_ + actors_.size() * workload_.longest_lease();
    while (!checker_.failed() && !all_idle() && time_.now() < patience) run_until(time_.now() + 200ms);
    for (const placed_actor& p : actors_) {
        if (!checker_.failed() && !p.process->dead() && !p.self->idle())
            checker_.fail("still not served long after all faults: " + p.self->describe());
    }
    if (!checker_.failed()) run_until(time_.now() + 2s);
    if (!checker_.failed() && is_watched_) check_watchers_know();
    if (!checker_.failed()) check_commands();
    is_over_ = true;
    for (const auto& c : clients_) {
        if (!checker_.failed() && !c->dead()) c->close();
    }
    if (!checker_.failed()) check_final_state();
    result_.verdict = checker_.verdict();
    result_.holds = checker_.cycles();
    result_.scripts = scripts_run();
    result_.simulated = time_.now() - begin_;
    return result_;
}

// Without messages, too, a watcher asks every ten seconds.
void scenario::check_watchers_know() {
    const instant patience = time_.now() + 12s;
    while (!checker_.failed() && !checker_.watches().all_know() && time_.now() < patience)
        run_until(time_.now() + 200ms);
    if (!checker_.watches().all_know()) checker_.fail("a watcher does not know in the end how things are");
}

// A contended cycle costs two commands, an upgrade or downgrade one each. A script that a server does not know costs
// one more, once per client and script, on each member of a Cluster.
void scenario::check_commands() {
    // Who waits beside a keeper polls more often, and so does who hears of nothing.
    if (!fault_free_ || is_kept_ || has_pollers(options_)) return;
    const std::size_t members = cluster_ ? servers_.size() : 1;
    std::uint64_t allowed = 2 * checker_.cycles() + checker_.changes() + 4 * members * actors_.size();
    allowed += checker_.watches().questions();
    // A split vote costs more: node holds are given up and granted again, and tokens raised.
    if (several()) allowed = servers_.size() * (4 * checker_.cycles() + 2 * checker_.changes() + 6 * actors_.size());
    if (scripts_run() > allowed)
        checker_.fail("too many commands: " + std::to_string(scripts_run()) + " for " +
                      std::to_string(checker_.cycles()) + " holds");
}

std::uint64_t scenario::scripts_run() const {
    std::uint64_t sum = 0;
    for (const auto& one : servers_) sum += one->scripts_run();
    return sum;
}

std::vector<std::string> scenario::waiting_since(const std::string& lock, instant since) const {
    std::vector<std::string> found;
    const bool by_arrival = std::any_of(workload_.locks.begin(), workload_.locks.end(), [&](const lock_plan& one) {
        return one.keys->lock() == lock && one.kind == wire::lock_kind::mutex;
    });
    for (const placed_actor& p : actors_) {
        if (by_arrival && p.self->has_own_position() && p.self->waits_for(lock) && p.self->asked_at() < since &&
            p.process->calm_since(since))
            found.push_back(p.self->describe());
    }
    return found;
}

// Without faults a wanted lock is acquired soon: no split vote lasts.
void scenario::check_progress(std::map<std::string, instant> idle_since) {
    // What a server has handed over to a waiter that polls, it learns late.
    const milliseconds soon = milliseconds(250) + (has_pollers(options_) ? longest_told_interval : milliseconds(0));
    for (const lock_plan& lock : workload_.locks) {
        const std::string& name = lock.keys->lock();
        const bool wanted = std::any_of(actors_.begin(), actors_.end(), [&](const placed_actor& p) {
            return !p.process->dead() && p.self->waits_for(name);
        });
        const bool kept = std::any_of(actors_.begin(), actors_.end(),
                                      [&](const placed_actor& p) { return !p.process->dead() && p.self->keeps(name); });
        if (!wanted || kept || checker_.may_be_taken(name)) {
            idle_since.erase(name);
        } else if (time_.now() - idle_since.emplace(name, time_.now()).first->second > soon) {
            checker_.fail("nobody acquires " + name + " although an actor waits for it");
        }
    }
    if (draining_ && all_idle()) return;
    time_.after(10ms, [this, idle_since] { check_progress(idle_since); });
}

void scenario::check_final_state() {
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
        if (item.second.expires_ms == no_expiry) checker_.fail("a key without expiry is left: " + item.first);
    });
    // The last lease, then the lifetime of a queue without polls: six intervals of a third of a lease.
    run_until(time_.now() + patience_ + 3 * workload_.longest_lease() + 60s);
    check([this](const auto& item) {
        const bool is_mark = std::any_of(workload_.locks.begin(), workload_.locks.end(), [&](const lock_plan& lock) {
            // The limit of a semaphore that was resized is kept as long as the mark.
            const bool is_limit =
                workload_.limits_differ && lock.kind == wire::lock_kind::semaphore && item.first == lock.keys->lock();
            return is_limit || item.first == lock.keys->fence();
        });
        if (!is_mark) checker_.fail("a key is left after all clients ended: " + item.first);
    });
    // Other servers remember longer a token that came from a server whose clock is ahead.
    run_until(time_.now() + (several() ? 3h + 2 * max_clock_error + patience_ : nanoseconds(2h)));
    check([this](const auto& item) { checker_.fail("a key outlives every retention: " + item.first); });
}

scenario_result simulate(const scenario_options& options) {
    scenario played(options);
    return played.run();
}

}  // namespace holdfast::sim
