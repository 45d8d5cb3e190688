#include "explore/small_world.hpp"

#include <algorithm>
#include <utility>

#include "wire/scripts.hpp"

namespace holdfast::sim::explore {

using namespace std::chrono_literals;

namespace {

// Servers' clocks run as fast as clients allow for: then leases end as early as they may.
constexpr double fastest_clock = 1.005;
// After the last choice everything must be over within this time, the jump of a clock not counted.
constexpr nanoseconds patience = 60s;

}  // namespace

std::string_view to_string(trouble kind) {
    constexpr std::string_view names[] = {
        "cut",   "client_gone", "lost_replies", "held_up",       "held_down",     "cut_off_server", "pause",
        "crash", "vanish",      "restart",      "restart_empty", "clock_forward", "clock_back",     "script_flush"};
    static_assert(std::size(names) == static_cast<std::size_t>(trouble::count_));
    return names[static_cast<std::size_t>(kind)];
}

small_world::small_world(const scope& what, std::shared_ptr<script_engine> engine,
                         std::function<void(const std::string&)> trace)
    : scope_(what),
      check_(time_, what.seen),
      begin_(time_.now()),
      seen_by_(what.processes),
      cut_off_(what.servers),
      stopped_(what.servers),
      faults_left_(what.faults.empty() ? 0 : what.most_faults),
      deviations_left_(what.most_deviations.value_or(0)),
      waits_left_(what.most_waits.value_or(0)) {
    check_.trace = std::move(trace);
    check_.calm_since = [this](std::string_view id, instant since) {
        const auto found = by_id_.find(id);
        return found != by_id_.end() && found->second->calm_since(since);
    };
    check_.told_within = 1ms;  // a message and its answer take no time
    check_.unused_since = [this](const std::string& id) -> std::optional<instant> {
        for (const auto& one : processes_) {
            if (!one->kept || one->is_dead()) continue;
            if (const auto unused = one->kept->unused_since(id)) return unused;
        }
        return std::nullopt;
    };
    check_.passes_of = [this](const std::string& id) -> std::optional<unsigned> {
        for (const auto& one : processes_) {
            if (one->kept && one->kept->has_hold(id)) return one->kept->setup().passes;
        }
        return std::nullopt;
    };
    server_options options;
    options.engine = std::move(engine);
    options.rate = fastest_clock;
    options.kill_allowed = scope_.kill_allowed;
    options.undeclared_keys = scope_.undeclared_keys;
    options.replaced_scripts = scope_.replaced_scripts;
    options.pushes_overtake = scope_.pushes_overtake;
    options.uptimes_look_exact = scope_.uptimes_look_exact;
    for (std::size_t i = 0; i < scope_.servers; ++i) {
        servers_.push_back(std::make_unique<server>(time_, random_stream(i), options, check_));
        for (const auto& script : wire::all()) servers_[i]->run({"SCRIPT", "LOAD", std::string(script.text)});
        for (const auto& [original, mutant] : scope_.replaced_scripts) servers_[i]->run({"SCRIPT", "LOAD", mutant});
    }
    check_.watched = servers_[0].get();
    for (std::size_t i = 0; i < scope_.processes; ++i) {
        ids_.push_back(std::make_unique<random_stream>(scope_.ids_repeat ? 1 : 100 + i));
        processes_.push_back(scope_.make_process(*this, i));
    }
    // They connect undisturbed. The world begins when that counts as trouble no longer.
    for (const auto& one : processes_) one->start();
    for (list_arrivals(); !events_.empty(); list_arrivals()) take(0);
    const instant settled = time_.now() + 2 * aftermath;
    while (time_.step(settled)) {
    }
    for (fingerprint& seen : seen_by_) seen = {};
    begin_ = time_.now();
}

small_world::~small_world() = default;

client_setup small_world::settings_of(std::size_t number) const {
    client_setup out;
    out.number = number;
    out.servers = scope_.servers;
    out.server.connect_timeout = out.server.request_timeout = scope_.request_timeout;
    out.server.health_interval = 10s;  // an answer that is missing tells as much
    out.server.backoff_max = 100ms;
    out.engine.request_timeout = scope_.request_timeout;
    out.engine.fence_retention = 180s;
    out.clock_stops_in_pauses = scope_.clock_stops_in_pauses;
    out.first_failure_ends_waits = scope_.first_failure_ends_waits;
    if (scope_.mistrusts) out.max_lease = scope_.lease;
    if (number < scope_.pollers) {
        out.wakes = engine::woken_by::poll;
        out.server.wake = redis::wake_choice::poll;
    }
    return out;
}

void small_world::note(const std::string& what) const {
    if (check_.trace) check_.trace(what);
}

// --- links

void small_world::connect(plug& from) {
    ++passed_;
    attempts_.push_back({&from, from.attempt()});
}

link& small_world::add_link(std::size_t number, std::size_t server_number, pipe::sink to_client) {
    server& there = *servers_[server_number];
    const std::size_t n = connections_.size();
    connections_.push_back(std::make_unique<connection>());
    connection& fresh = *connections_.back();
    fresh.real = std::make_unique<link>(
        time_, network_random_, [this, &there, n](const packet& p) { there.received(*connections_[n]->real, p); },
        [this, n](const packet& p) { connections_[n]->to_client(p); });
    fresh.to_client = std::move(to_client);
    fresh.process = number;
    fresh.server = server_number;
    fresh.real->client = number;
    fresh.real->up.deliver_by_hand();
    fresh.real->down.deliver_by_hand();
    there.accept(*fresh.real);
    return *fresh.real;
}

link& small_world::open(std::size_t number, std::size_t server_number, pipe::sink to_client) {
    link& fresh = add_link(number, server_number, std::move(to_client));
    fresh.client_open = true;
    return fresh;
}

void small_world::establish(std::size_t which) {
    const attempt done = attempts_[which];
    attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(which));
    plug& from = *done.from;
    seen_by_[from.owner().number()].add(time_.now()).add("connect");
    if (!servers_[from.server_number()]->accepts()) return from.not_connected(done.number);
    const std::size_t n = connections_.size();
    link& fresh = add_link(from.owner().number(), from.server_number(),
                           [this, &from, n](const packet& p) { from.received(*connections_[n]->real, p); });
    from.connected(fresh, done.number);
}

bool small_world::is_held(const connection& of, direction where) const {
    return of.is_held[where] || cut_off_[of.server];
}

// What was sent to an end that is closed.
void small_world::drop_undeliverable() {
    for (const auto& one : connections_) {
        while (!one->real->server_open && !one->real->up.under_way().empty()) one->real->up.deliver_first();
        while (!one->real->client_open && !one->real->down.under_way().empty()) one->real->down.deliver_first();
    }
    std::erase_if(attempts_,
                  [](const attempt& one) { return one.number != one.from->attempt() || one.from->owner().dead(); });
}

void small_world::arrive(connection& at, direction where) {
    const packet& first = pipe_of(at, where).under_way().front().second;
    fingerprint& seen = where == up ? at.seen_by_server : seen_by_[at.process];
    seen.add(time_.now())
        .add(first.bytes)
        .add(static_cast<std::uint64_t>(at.server) * 2 + (first.bytes.empty() ? 1 : 0));
    pipe_of(at, where).deliver_first();
}

// --- events

void small_world::list_arrivals() {
    events_.clear();
    drop_undeliverable();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
        for (const direction where : {up, down}) {
            if (!pipe_of(*connections_[i], where).under_way().empty() && !is_held(*connections_[i], where))
                events_.push_back({.what = where == up ? event_kind::arrive_up : event_kind::arrive_down, .which = i});
        }
    }
    // Where deviations are counted, the link after the last one is the next.
    if (scope_.most_deviations) {
        std::stable_partition(events_.begin(), events_.end(),
                              [this](const event& one) { return one.which > last_link_; });
    }
    for (std::size_t i = 0; i < attempts_.size(); ++i) {
        if (!is_held(attempts_[i].from->server_number())) events_.push_back({.what = event_kind::connect, .which = i});
    }
}

bool small_world::may_step(std::size_t number) const {
    const process& one = *processes_[number];
    return !one.is_dead() && !one.is_paused() &&
           std::any_of(one.users.begin(), one.users.end(), [](const auto& u) { return u->may_step(); });
}

// It still does something that others could be disturbed by.
bool small_world::matters(std::size_t number) const {
    const process& one = *processes_[number];
    if (one.is_dead()) return false;
    if (!one.is_quiet()) return true;
    return std::any_of(one.users.begin(), one.users.end(),
                       [](const auto& u) { return u->has_begun() && !u->is_done(); });
}

// Otherwise everything would only happen later.
bool small_world::time_matters() const {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (matters(i)) return true;
    }
    const bool somebody_may_begin = std::any_of(processes_.begin(), processes_.end(), [](const auto& one) {
        return !one->is_dead() &&
               std::any_of(one->users.begin(), one->users.end(), [](const auto& u) { return !u->is_done(); });
    });
    const bool is_broken =
        std::any_of(stopped_.begin(), stopped_.end(), [](const auto& one) { return one.has_value(); }) ||
        std::any_of(cut_off_.begin(), cut_off_.end(), [](bool one) { return one; });
    const bool is_dead =
        std::any_of(processes_.begin(), processes_.end(), [](const auto& one) { return one->is_dead(); });
    const bool is_late = std::any_of(connections_.begin(), connections_.end(), [](const auto& one) {
        return !one->real->up.under_way().empty() || !one->real->down.under_way().empty();
    });
    return somebody_may_begin && (is_broken || is_dead || is_late);
}

std::optional<instant> small_world::next_expiry() {
    std::optional<instant> first;
    for (const auto& one : servers_) {
        const std::int64_t now_ms = one->now_us() / 1000;
        const std::optional<std::int64_t> soonest = one->first_expiry_ms();
        if (!soonest) continue;
        const instant over = time_.now() + milliseconds(*soonest - now_ms + 1);
        if (!first || over < *first) first = over;
    }
    return first;
}

std::optional<instant> small_world::next_instant() {
    std::optional<instant> next = next_expiry();
    if (time_.next() != never && (!next || time_.next() < *next)) next = time_.next();
    if (next && !is_ending_ && *next > begin_ + scope_.horizon) return std::nullopt;
    return next;
}

std::uint64_t small_world::activity() const {
    std::uint64_t sum = passed_;
    for (const auto& one : connections_) sum += one->real->up.under_way().size() + one->real->down.under_way().size();
    for (const auto& one : processes_) sum += one->runs();
    return sum;
}

// Up to the next instant at which something happens. Timers that were set and are not needed any more are nothing.
void small_world::pass_time() {
    const std::uint64_t before = activity();
    const std::optional<instant> over = next_expiry();
    while (activity() == before && !check_.failed()) {
        const std::optional<instant> next = next_instant();
        if (!next) break;
        std::vector<std::uint64_t> runs;
        for (const auto& one : processes_) runs.push_back(one->runs());
        time_.step(*next);
        for (std::size_t i = 0; i < processes_.size(); ++i) {
            if (processes_[i]->runs() != runs[i]) seen_by_[i].add(time_.now()).add("timer");
        }
        if (over && time_.now() >= *over) break;
    }
}

std::size_t small_world::links_of(std::size_t number) const {
    return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), [&](const auto& one) {
        return one->process == number && (one->real->client_open || !one->real->down.under_way().empty());
    }));
}

// What arrives at a process that can do nothing else, over its only link, commutes with all other events of this
// instant, and no later event can come before it. So nothing is missed if it comes first.
bool small_world::is_only_choice(const event& one) const {
    if (one.what != event_kind::arrive_down || faults_left_ > 0) return false;
    const std::size_t number = connections_[one.which]->process;
    if (links_of(number) > 1) return false;
    return processes_[number]->is_paused() || !may_step(number);
}

void small_world::list_faults() {
    if (faults_left_ == 0) return;
    const bool has_begun = std::any_of(processes_.begin(), processes_.end(), [](const auto& one) {
        return std::any_of(one->users.begin(), one->users.end(), [](const auto& u) { return u->has_begun(); });
    });
    if (!has_begun) return;
    for (const trouble fault : scope_.faults) {
        switch (fault) {
            case trouble::cut:
            case trouble::client_gone:
            case trouble::lost_replies:
            case trouble::held_up:
            case trouble::held_down:
                for (std::size_t i = 0; i < connections_.size(); ++i) {
                    const connection& at = *connections_[i];
                    if (at.real->client_open && at.real->server_open && at.process < scope_.victims &&
                        matters(at.process))
                        events_.push_back({.what = event_kind::fault, .which = i, .fault = fault});
                }
                break;
            case trouble::pause:
            case trouble::crash:
            case trouble::vanish:
                for (std::size_t i = 0; i < std::min(scope_.victims, processes_.size()); ++i) {
                    if (matters(i)) events_.push_back({.what = event_kind::fault, .which = i, .fault = fault});
                }
                break;
            default:
                for (std::size_t i = 0; i < servers_.size(); ++i)
                    events_.push_back({.what = event_kind::fault, .which = i, .fault = fault});
        }
    }
}

void small_world::list_events() {
    list_arrivals();
    for (const event& one : events_) {
        if (!is_only_choice(one)) continue;
        events_ = {event(one)};
        return;
    }
    const bool is_still = events_.empty();
    bool is_over = true;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const process& one = *processes_[i];
        if (one.is_dead()) continue;
        if (one.is_paused()) {
            is_over = false;
            events_.push_back({.what = event_kind::resume_messages, .which = i});
            events_.push_back({.what = event_kind::resume_timers, .which = i});
            continue;
        }
        for (std::size_t n = 0; n < one.users.size(); ++n) {
            if (one.users[n]->may_step()) events_.push_back({.what = event_kind::step, .which = i, .user = n});
            if (!one.users[n]->is_done()) is_over = false;
        }
        if (!one.is_quiet()) is_over = false;
    }
    if (is_still && is_over) return events_.clear();
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        if (stopped_[i]) events_.push_back({.what = event_kind::start_server, .which = i});
    }
    const bool is_broken = std::any_of(cut_off_.begin(), cut_off_.end(), [](bool one) { return one; }) ||
                           std::any_of(connections_.begin(), connections_.end(),
                                       [](const auto& one) { return one->is_held[up] || one->is_held[down]; });
    if (is_broken) events_.push_back({.what = event_kind::let_go});
    const bool may_wait = !scope_.most_waits || waits_left_ > 0 || !somebody_may_step();
    if (is_still && may_wait && time_matters() && next_instant()) events_.push_back({.what = event_kind::time});
    list_faults();
}

std::size_t small_world::choices() {
    list_events();
    if (scope_.most_deviations && deviations_left_ == 0) {
        for (std::size_t i = events_.size(); i-- > 1;) {
            if (deviates(i)) events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return events_.size();
}

// Faults, their ends and time have their own limits.
bool small_world::deviates(std::size_t choice) const {
    const auto has_a_turn = [](const event& one) {
        return one.what == event_kind::arrive_up || one.what == event_kind::arrive_down ||
               one.what == event_kind::connect || one.what == event_kind::step;
    };
    const auto chosen = events_.begin() + static_cast<std::ptrdiff_t>(choice);
    return has_a_turn(*chosen) && std::any_of(events_.begin(), chosen, has_a_turn);
}

bool small_world::somebody_may_step() const {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        if (may_step(i)) return true;
    }
    return false;
}

std::string small_world::describe(std::size_t choice) const {
    const event& what = events_[choice];
    const auto us = std::chrono::duration_cast<microseconds>(time_.now() - begin_).count();
    std::string text = std::to_string(us / 1000) + "." + std::to_string(us % 1000 / 100) + " ms: ";
    const auto link_name = [&](const char* arrow) {
        const connection& at = *connections_[what.which];
        return "client " + std::to_string(at.process) + arrow + "server " + std::to_string(at.server);
    };
    const auto content = [&](direction where) {
        const packet& first = pipe_of(*connections_[what.which], where).under_way().front().second;
        if (first.what == packet::kind::end) return std::string(": the end of the link");
        std::string words;
        for (const char c : first.bytes.substr(0, 400)) {
            if (c != '\r') words += c == '\n' ? ' ' : c;
        }
        return ": " + words;
    };
    switch (what.what) {
        case event_kind::arrive_up:
            return text + link_name(" -> ") + content(up);
        case event_kind::arrive_down:
            return text + link_name(" <- ") + content(down);
        case event_kind::connect:
            return text + "a new link of client " + std::to_string(attempts_[what.which].from->owner().number());
        case event_kind::step:
            return text + processes_[what.which]->users[what.user]->next_step();
        case event_kind::time:
            return text + "time passes";
        case event_kind::fault:
            return text + "FAULT " + std::string(to_string(what.fault)) + " " + std::to_string(what.which);
        case event_kind::let_go:
            return text + "what was held up goes on";
        case event_kind::resume_timers:
            return text + "client " + std::to_string(what.which) + " goes on, its timers first";
        case event_kind::resume_messages:
            return text + "client " + std::to_string(what.which) + " goes on, its messages first";
        case event_kind::start_server:
            return text + "server " + std::to_string(what.which) + " starts again";
    }
    return text;
}

void small_world::take(std::size_t choice) {
    const event what = events_[choice];
    if (scope_.most_deviations && !is_ending_ && deviates(choice)) --deviations_left_;
    if (scope_.most_waits && !is_ending_ && what.what == event_kind::time && somebody_may_step()) --waits_left_;
    if (what.what == event_kind::arrive_up || what.what == event_kind::arrive_down) last_link_ = what.which;
    ++passed_;
    switch (what.what) {
        case event_kind::arrive_up:
            return arrive(*connections_[what.which], up);
        case event_kind::arrive_down:
            return arrive(*connections_[what.which], down);
        case event_kind::connect:
            return establish(what.which);
        case event_kind::step:
            seen_by_[what.which].add(time_.now()).add(what.user);
            return processes_[what.which]->users[what.user]->step();
        case event_kind::time:
            return pass_time();
        case event_kind::fault:
            --faults_left_;
            faults_seen_.add(time_.now()).add(static_cast<std::uint64_t>(what.fault)).add(what.which);
            return inject(what);
        case event_kind::let_go:
            return let_go();
        case event_kind::resume_timers:
        case event_kind::resume_messages:
            seen_by_[what.which].add(time_.now()).add(what.what == event_kind::resume_timers ? "timers" : "messages");
            return processes_[what.which]->resume(what.what == event_kind::resume_timers ? client::first::timers
                                                                                         : client::first::messages);
        case event_kind::start_server:
            servers_[what.which]->start(*std::exchange(stopped_[what.which], std::nullopt));
    }
}

// --- state

std::uint64_t small_world::state() {
    fingerprint all;
    all.add(time_.now()).add(faults_seen_.value()).add(faults_left_).add(deviations_left_).add(waits_left_);
    if (scope_.most_deviations) all.add(last_link_);
    for (std::size_t i = 0; i < processes_.size(); ++i) {
        const process& one = *processes_[i];
        const bool is_over =
            !one.is_paused() && one.is_quiet() &&
            std::all_of(one.users.begin(), one.users.end(), [](const auto& u) { return u->is_done(); });
        if (one.is_dead()) {
            all.add("dead");
        } else if (is_over) {
            all.add("over");
        } else {
            all.add(seen_by_[i].value()).add(one.is_paused() ? 1 : 0);
        }
    }
    for (const auto& one : connections_) {
        const link& real = *one->real;
        all.add(one->seen_by_server.value());  // also of links that are over: what they did may still matter
        if (!real.client_open && !real.server_open) continue;
        all.add(one->process).add(one->server).add(real.client_open ? 1 : 0).add(real.server_open ? 1 : 0);
        for (const direction where : {up, down}) {
            all.add(is_held(*one, where) ? 1 : 0).add(pipe_of(*one, where).is_lost() ? 1 : 0);
            for (const auto& [due, what] : pipe_of(*one, where).under_way())
                all.add(what.sent).add(what.bytes).add(what.what == packet::kind::end ? 1 : 0);
        }
    }
    for (const attempt& one : attempts_) all.add(one.from->owner().number()).add(one.from->server_number());
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        all.add(servers_[i]->dump()).add(static_cast<std::uint64_t>(servers_[i]->now_us()));
        all.add(stopped_[i] ? 1 : 0).add(cut_off_[i] ? 1 : 0);
    }
    // What those remember who judge.
    resource_.add_to(all);
    line_.add_to(all);
    for (const auto& one : processes_) {
        for (const auto& u : one->users) all.add(u->turn());
    }
    for (const std::string& line : check_.memory()) all.add(line);
    return all.value();
}

// --- faults

void small_world::inject(const event& what) {
    switch (what.fault) {
        case trouble::cut:
        case trouble::client_gone:
        case trouble::lost_replies:
        case trouble::held_up:
        case trouble::held_down:
            return fault_on_link(what.fault, what.which);
        case trouble::pause:
            seen_by_[what.which].add("pause");
            processes_[what.which]->has_trouble();
            return processes_[what.which]->pause();
        case trouble::crash:
        case trouble::vanish:
            processes_[what.which]->has_trouble();
            for (const auto& one : processes_[what.which]->users) one->died();
            for (const auto& one : connections_) {
                if (one->process != what.which || !one->real->client_open) continue;
                if (what.fault == trouble::crash) one->real->up.end();
                if (what.fault == trouble::vanish) one->is_held[up] = true;
            }
            return processes_[what.which]->die();
        default:
            return fault_on_server(what.fault, what.which);
    }
}

void small_world::fault_on_link(trouble kind, std::size_t which) {
    connection& at = *connections_[which];
    link& real = *at.real;
    processes_[at.process]->has_trouble();
    seen_by_[at.process].add(to_string(kind));
    switch (kind) {
        case trouble::cut:
            real.up.lose();
            real.down.lose();
            servers_[at.server]->close(real);
            return at.to_client({packet::kind::end, {}, {}});
        case trouble::client_gone:
            at.is_held[up] = true;
            real.down.lose();
            return at.to_client({packet::kind::end, {}, {}});
        case trouble::lost_replies:
            return real.down.lose();
        case trouble::held_up:
            at.is_held[up] = true;
            return;
        default:
            at.is_held[down] = true;
    }
}

void small_world::fault_on_server(trouble kind, std::size_t which) {
    server& at = *servers_[which];
    for (const auto& one : processes_) one->has_trouble();
    const nanoseconds jump = scope_.lease + 100ms;
    switch (kind) {
        case trouble::cut_off_server:
            cut_off_[which] = true;
            break;
        case trouble::restart:
            stopped_[which] = at.snapshot();
            at.stop();
            break;
        case trouble::restart_empty:
            stopped_[which].emplace();
            at.stop();
            if (scope_.excuses) check_.data_lost(scope_.mistrusts);
            break;
        case trouble::clock_forward:
            at.jump(jump);
            if (scope_.excuses) check_.clock_jumped(jump);
            break;
        case trouble::clock_back:
            at.jump(-jump);
            if (scope_.excuses) check_.clock_jumped(-jump);
            break;
        default:
            at.flush_scripts();
    }
}

void small_world::let_go() {
    for (std::size_t i = 0; i < cut_off_.size(); ++i) cut_off_[i] = false;
    for (const auto& one : connections_) one->is_held = {};
}

// --- the end

// The oldest events first, without choices, until nothing is left to do.
void small_world::play_on(instant limit) {
    while (!check_.failed() && time_.now() < limit) {
        list_arrivals();
        if (events_.empty()) {
            for (std::size_t i = 0; i < processes_.size() && events_.empty(); ++i) {
                for (std::size_t n = 0; n < processes_[i]->users.size(); ++n) {
                    if (!processes_[i]->is_dead() && processes_[i]->users[n]->may_step())
                        events_.push_back({.what = event_kind::step, .which = i, .user = n});
                }
            }
        }
        if (events_.empty()) {
            bool is_over = true;
            for (std::size_t i = 0; i < processes_.size(); ++i) is_over = is_over && !matters(i);
            if (is_over || !next_instant()) return;
            events_.push_back({.what = event_kind::time});
        }
        take(0);
    }
}

void small_world::end() {
    is_ending_ = true;
    faults_left_ = 0;
    let_go();
    for (std::size_t i = 0; i < servers_.size(); ++i) {
        if (stopped_[i]) servers_[i]->start(*std::exchange(stopped_[i], std::nullopt));
    }
    for (const auto& one : processes_) {
        for (const auto& u : one->users) u->begin_nothing_more();
        if (one->is_paused() && !one->is_dead()) one->resume(client::first::messages);
    }
    note("the end: everything is repaired, and the users give back what they have");
    play_on(time_.now() + patience);
    for (const auto& one : processes_) {
        if (one->is_dead()) continue;
        for (const auto& u : one->users) {
            if (!check_.failed() && u->has_begun() && !u->is_done())
                check_.fail("still not served long after all faults: " + u->describe());
        }
    }
    for (const auto& one : processes_) {
        if (!check_.failed() && !one->is_dead()) one->close();
    }
    if (!check_.failed()) check_end_state();
}

void small_world::check_end_state() {
    const auto run_until = [this](instant then) {
        while (!check_.failed() && time_.step(then)) {
        }
    };
    const auto each_key = [this](const auto& look_at) {
        for (const auto& one : servers_) {
            const server_model::snapshot here = one->snapshot();
            for (const auto* item : here.living_entries({one->now_us() / 1000, role::primary})) look_at(*item);
        }
    };
    each_key([this](const keyspace::item& item) {
        if (item.second.expires_ms == no_expiry) check_.fail("a key without expiry is left: " + item.first);
    });
    run_until(time_.now() + patience);
    each_key([this](const keyspace::item& item) {
        if (!item.first.ends_with(":fence")) check_.fail("a key is left after all clients ended: " + item.first);
    });
    run_until(time_.now() + (scope_.servers > 1 ? nanoseconds(3h) : nanoseconds(10min)));
    each_key([this](const keyspace::item& item) { check_.fail("a key outlives every retention: " + item.first); });
}

world_maker maker_of(const scope& what, std::function<void(const std::string&)> trace) {
    return [what, trace, engine = std::make_shared<script_engine>()]() -> std::unique_ptr<world> {
        return std::make_unique<small_world>(what, engine, trace);
    };
}

}  // namespace holdfast::sim::explore
