#include "explore/scopes.hpp"

#include <algorithm>
#include <utility>

#include "explore/kept_lock_user.hpp"
#include "explore/other_locks/other_locks.hpp"
#include "wire/scripts.hpp"

namespace holdfast::sim::explore {
namespace {

using namespace std::chrono_literals;

constexpr const char* user_names[] = {"A", "B", "C", "D"};

/// The users of one process, and whether it keeps the lock for them.
struct process_plan {
    std::vector<program> users;
    bool keeps = false;
    milliseconds keep{0};
    unsigned passes = 0;
};

std::shared_ptr<const wire::lock_keys> keys_of_the_lock() {
    static const auto keys = std::make_shared<const wire::lock_keys>(
        wire::make_keys(wire::lock_name("lock"), wire::key_naming::tagged, "hf:"));
    return keys;
}

std::unique_ptr<process> make_engine_process(small_world& where, std::size_t number, const process_plan& plan) {
    client_setup setup = where.settings_of(number);
    setup.locks = {keys_of_the_lock()};
    auto fresh = std::make_unique<engine_process>(where.time(), where.ids_of(number), setup, where.net());
    client& real = fresh->real();
    where.knows(real.engine().id().text(), real);
    for (std::size_t i = 0; i < plan.users.size(); ++i) {
        lock_user_setup user;
        user.name = user_names[number] + (plan.users.size() > 1 ? std::to_string(i) : "");
        user.keys = keys_of_the_lock();
        user.what = plan.users[i];
        user.what.options.lease = where.setup().lease;
        if (!where.setup().delay_ignored)
            user.what.options.delay_ms = static_cast<std::uint32_t>(user.what.delay.count());
        if (user.what.has_note) user.what.options.note = std::make_shared<const std::string>("note of " + user.name);
        user.guarded = &where.guarded();
        user.trace = where.trace();
        user.deadlines_ignored = where.setup().deadlines_ignored;
        user.answers_ignored = where.setup().answers_ignored;
        user.cancellations_ignored = where.setup().cancellations_ignored;
        if (!plan.keeps) {
            fresh->users.push_back(std::make_unique<lock_user>(where.time(), real, where.check(), user));
            continue;
        }
        if (!fresh->kept) {
            keeper_setup kept;
            kept.keys = user.keys;
            kept.options = user.what.options;
            kept.options.kept = true;
            kept.keep = plan.keep;
            kept.passes = plan.passes;
            kept.mutant = where.setup().broken_keeper;
            fresh->kept = std::make_unique<keeper>(where.time(), real, where.check(), kept, where.trace());
        }
        fresh->users.push_back(std::make_unique<kept_lock_user>(real, *fresh->kept, where.check(), user));
    }
    return fresh;
}

void play(scope& in, std::vector<process_plan> plans) {
    in.processes = plans.size();
    in.make_process = [plans = std::move(plans)](small_world& where, std::size_t number) {
        return make_engine_process(where, number, plans[number]);
    };
}

program mutex_program(std::vector<act> steps) {
    return {.steps = std::move(steps), .options = {.kind = wire::lock_kind::mutex}};
}

program rw_program(std::vector<act> steps, wire::preference prefer = wire::preference::arrival) {
    return {.steps = std::move(steps), .options = {.kind = wire::lock_kind::read_write, .prefer = prefer}};
}

program permits_program(std::uint32_t permits, std::vector<act> steps) {
    return {.steps = std::move(steps), .options = {.limit = 2, .permits = permits, .kind = wire::lock_kind::semaphore}};
}

process_plan one_user(program what) {
    return {.users = {std::move(what)}};
}

// One scope for each kind.
void add_faults(std::vector<scope>& all, const scope& base, const std::vector<trouble>& kinds) {
    for (const trouble kind : kinds) {
        scope broken = base;
        broken.name = base.name + "/" + std::string(to_string(kind));
        broken.about = base.about + ", one fault: " + std::string(to_string(kind));
        broken.faults = {kind};
        broken.mistrusts = kind == trouble::restart_empty;
        all.push_back(broken);
    }
}

// Without a fault, and with each kind.
void add_with_each(std::vector<scope>& all, const scope& base, const std::vector<trouble>& kinds) {
    scope quiet = base;
    quiet.name = base.name + "/quiet";
    quiet.about = base.about + ", no fault";
    all.push_back(quiet);
    add_faults(all, base, kinds);
}

std::vector<trouble> faults_of_one_server() {
    std::vector<trouble> all;
    for (std::size_t i = 0; i < static_cast<std::size_t>(trouble::count_); ++i) {
        if (static_cast<trouble>(i) != trouble::cut_off_server) all.push_back(static_cast<trouble>(i));
    }
    return all;
}

void add_mutex(std::vector<scope>& all) {
    const process_plan once = one_user(mutex_program({act::acquire, act::release}));
    scope two{.name = "mutex", .about = "mutex, 2 clients acquire and release", .victims = 1};
    play(two, {once, once});
    add_with_each(all, two, {});
    two.most_waits = 2;
    add_faults(all, two, faults_of_one_server());

    two.name = "late";
    two.about = "the same, and clients may not end their former links";
    two.most_waits = 1;
    two.kill_allowed = false;
    add_faults(all, two, {trouble::client_gone, trouble::held_up, trouble::vanish});

    scope three{.name = "mutex3", .about = "mutex, 3 clients acquire and release"};
    three.most_waits = 2;
    play(three, {once, once, once});
    add_with_each(all, three, {});

    three.most_waits = 1;
    three.victims = 1;
    add_faults(all, three, {trouble::crash, trouble::client_gone});

    scope four{.name = "mutex4", .about = "mutex, 4 clients acquire and release"};
    four.most_waits = 0;
    play(four, {once, once, once, once});
    add_with_each(all, four, {});

    program slow_to_pass = mutex_program({act::acquire, act::release});
    slow_to_pass.delay = 500ms;
    scope delayed{.name = "delay", .about = "mutex with a delay of 0.5 s, 2 clients acquire and release", .victims = 1};
    delayed.most_waits = 1;
    play(delayed, {one_user(slow_to_pass), one_user(slow_to_pass)});
    add_with_each(all, delayed, {trouble::crash, trouble::pause});

    scope polling{.name = "polls", .about = "mutex, A polls, 2 clients acquire and release", .victims = 1};
    polling.most_waits = 1;
    polling.pollers = 1;
    play(polling, {once, once});
    add_with_each(all, polling, {trouble::crash, trouble::held_down});

    program with_note = mutex_program({act::acquire, act::release});
    program tries = mutex_program({act::try_once, act::release, act::acquire, act::release});
    with_note.has_note = tries.has_note = true;
    scope notes{
        .name = "notes", .about = "mutex with notes, A acquires and releases, B tries once and again", .victims = 1};
    notes.most_waits = 1;
    play(notes, {one_user(with_note), one_user(tries)});
    add_with_each(all, notes, {trouble::crash, trouble::client_gone});

    program impatient = mutex_program({act::acquire, act::cancel, act::release});
    impatient.patience = 500ms;
    scope leaving{
        .name = "leaving", .about = "mutex, A has a deadline or cancels, B tries once and again", .victims = 1};
    play(leaving,
         {one_user(impatient), one_user(mutex_program({act::try_once, act::release, act::acquire, act::release}))});
    leaving.most_waits = 1;
    add_with_each(all, leaving, {trouble::cut, trouble::held_down});

    // Whether a late write is refused: what Redlock cannot do.
    const process_plan writing = one_user(mutex_program({act::acquire, act::check, act::write, act::release}));
    scope writes{
        .name = "writes", .about = "mutex, 2 clients acquire, look, write with the token, release", .victims = 1};
    writes.most_waits = 1;
    play(writes, {writing, writing});
    add_with_each(all, writes, {trouble::pause, trouble::clock_forward});
}

void add_read_write(std::vector<scope>& all) {
    const process_plan upgrading = one_user(rw_program({act::read, act::upgrade, act::release, act::release}));
    scope two{.name = "rw", .about = "read-write, 2 clients read, upgrade and release twice", .victims = 1};
    two.most_waits = 1;
    play(two, {upgrading, upgrading});
    add_with_each(all, two, {});
    scope both = two;
    both.name = "rw-both";
    both.most_waits = 0;
    add_faults(all, both, faults_of_one_server());
    const process_plan reader = one_user(rw_program({act::read, act::release}));
    two.about = "read-write, A reads, upgrades and releases twice, B reads and releases";
    two.most_waits = 0;
    two.victims = 2;
    play(two, {upgrading, reader});
    add_faults(all, two, faults_of_one_server());
    two.name = "rw-late";
    two.about += ", clients may not end their former links";
    two.kill_allowed = false;
    add_faults(all, two, {trouble::client_gone, trouble::held_up});

    scope three{.name = "rw3", .about = "read-write, 2 clients read, 1 writes"};
    three.most_waits = 1;
    play(three, {reader, reader, one_user(rw_program({act::acquire, act::release}))});
    add_with_each(all, three, {});

    const process_plan writer = one_user(rw_program({act::acquire, act::release}));
    scope dead{.name = "rw3-dead", .about = "read-write, A writes, B and C read", .victims = 1};
    dead.most_waits = 1;
    play(dead, {writer, reader, reader});
    add_with_each(all, dead, {trouble::crash});

    const process_plan cancelling =
        one_user(rw_program({act::read, act::upgrade, act::cancel, act::release, act::release}));
    scope cancelled{.name = "rw-cancel", .about = "read-write, A reads, upgrades or cancels that, B reads, C writes"};
    cancelled.most_waits = 0;
    play(cancelled, {cancelling, reader, writer});
    add_with_each(all, cancelled, {});

    scope third{.name = "rw-third", .about = "read-write, A reads and upgrades, B and C read"};
    third.most_waits = 1;
    play(third, {upgrading, reader, reader});
    add_with_each(all, third, {});

    const auto of_writer = [](wire::preference prefer) {
        return one_user(rw_program({act::acquire, act::release}, prefer));
    };
    const auto of_reader = [](wire::preference prefer) {
        return one_user(rw_program({act::read, act::release}, prefer));
    };
    using wire::preference;
    three.name = "rw-writers";
    three.about = "read-write that prefers writers, A and C write, B reads";
    play(three, {of_writer(preference::writers), of_reader(preference::writers), of_writer(preference::writers)});
    add_with_each(all, three, {});
    three.name = "rw-readers";
    three.about = "read-write that prefers readers, A and C read, B writes";
    play(three, {of_reader(preference::readers), of_writer(preference::readers), of_reader(preference::readers)});
    add_with_each(all, three, {});

    program noted = rw_program({act::read, act::upgrade, act::release, act::release});
    program writes = rw_program({act::try_once, act::release, act::acquire, act::release});
    noted.has_note = writes.has_note = true;
    scope notes{
        .name = "rw-notes", .about = "read-write with notes, A reads and upgrades, B tries and writes", .victims = 1};
    notes.most_waits = 1;
    play(notes, {one_user(noted), one_user(writes)});
    add_with_each(all, notes, {});

    scope changing{.name = "rw-change", .about = "read-write, A writes, downgrades and releases, B reads, C writes"};
    changing.most_waits = 1;
    play(changing, {one_user(rw_program({act::acquire, act::downgrade, act::release})), reader,
                    one_user(rw_program({act::acquire, act::release}))});
    add_with_each(all, changing, {});
}

void add_semaphore(std::vector<scope>& all) {
    const std::vector<act> once{act::acquire, act::release};
    const process_plan one = one_user(permits_program(1, once));
    const process_plan two = one_user(permits_program(2, once));
    scope pair{.name = "permits", .about = "semaphore of 2 permits, A takes 2, B 1, twice", .victims = 1};
    pair.most_waits = 1;
    play(pair, {two, one_user(permits_program(1, {act::acquire, act::release, act::acquire, act::release}))});
    add_with_each(all, pair, {trouble::crash, trouble::client_gone, trouble::pause});
    scope three{.name = "permits3", .about = "semaphore of 2 permits, A and B take 1, C 2"};
    three.most_waits = 1;
    play(three, {one, one, two});
    add_with_each(all, three, {});
}

void add_kept(std::vector<scope>& all) {
    const program once = mutex_program({act::acquire, act::release});
    const program numbered = mutex_program({act::acquire, act::number, act::release});
    const process_plan keeping{.users = {numbered, once}, .keeps = true, .keep = 1500ms, .passes = 1};
    scope kept{.name = "kept", .about = "kept mutex, A's 2 users and B acquire and release"};
    kept.most_waits = 1;
    play(kept, {keeping, {.users = {numbered}, .keeps = true, .keep = 1500ms, .passes = 1}});
    add_with_each(all, kept, {});
    kept.most_waits = 0;
    add_faults(all, kept, faults_of_one_server());

    const program twice =
        mutex_program({act::acquire, act::number, act::release, act::acquire, act::number, act::release});
    scope more{.name = "kept-more", .about = "kept mutex, A's 2 users acquire twice, with numbers, B once"};
    more.most_waits = 0;
    play(more, {{.users = {twice, twice}, .keeps = true, .keep = 1500ms, .passes = 1},
                {.users = {numbered}, .keeps = true, .keep = 1500ms, .passes = 1}});
    add_with_each(all, more, {});
}

void add_quorum(std::vector<scope>& all) {
    const process_plan once = one_user(mutex_program({act::acquire, act::release}));
    scope three{.name = "quorum", .about = "mutex on 3 servers, 2 clients acquire and release"};
    three.servers = 3;
    three.seen = checker::view::of_beliefs;
    three.most_deviations = 1;
    three.most_waits = 1;
    play(three, {once, once});
    add_with_each(all, three, {trouble::cut_off_server, trouble::restart});
    // More time instead of more orders.
    three.name = "quorum-slow";
    three.most_deviations = 0;
    three.most_waits = 3;
    add_with_each(all, three, {trouble::restart_empty, trouble::clock_forward, trouble::clock_back, trouble::pause});
}

using maker_of_other = std::unique_ptr<process> (*)(small_world&, std::size_t, std::vector<act>);

scope other_lock(std::string name, std::string about, maker_of_other make, std::vector<std::vector<act>> programs) {
    scope out{.name = "other/" + std::move(name), .about = std::move(about)};
    out.processes = programs.size();
    out.undeclared_keys = key_check::off;
    out.excuses = false;
    out.seen = checker::view::of_beliefs;
    out.make_process = [make, programs = std::move(programs)](small_world& where, std::size_t number) {
        return make(where, number, programs[number]);
    };
    return out;
}

// The locks of others. All of these are broken.
void add_others(std::vector<scope>& all) {
    const std::vector<act> once{act::acquire, act::release};
    const std::vector<act> writes{act::acquire, act::check, act::write, act::release};

    const scope queue = other_lock("queue/quiet", "queue of SETNX and RPUSH, 2 clients", make_queue_lock, {once, once});
    all.push_back(queue);
    scope crash = queue;
    crash.name = "other/queue/crash";
    crash.about += ", one crashes";
    crash.faults = {trouble::crash};
    all.push_back(crash);
    all.push_back(other_lock("queue/order", "the same, 3 clients, which subscribe before they ask",
                             make_subscribed_queue_lock, {once, once, once}));

    all.push_back(other_lock("wait-mark/quiet", "read-write with a wait mark, 1 client reads, 1 writes",
                             make_wait_mark_lock, {{act::read, act::release}, once}));
    all.push_back(other_lock("wait-mark/again", "the same, the reader reads once more", make_polling_wait_mark_lock,
                             {{act::read, act::read, act::release}, once}));

    scope redlock =
        other_lock("redlock/pause", "Redlock on 3 servers, one client is paused", make_redlock, {writes, writes});
    redlock.servers = 3;
    redlock.faults = {trouble::pause};
    redlock.most_deviations = redlock.most_waits = 0;
    all.push_back(redlock);
    redlock.name = "other/redlock/clock_forward";
    redlock.about = "Redlock on 3 servers, the clock of one jumps";
    redlock.faults = {trouble::clock_forward};
    redlock.most_deviations = redlock.most_waits = 1;
    all.push_back(redlock);
}

// No small world has a Cluster, a replica, a foreign program, or a client that connects for the first time.
bool has_what_is_broken(const scope& in, const scenario_options& broken) {
    const auto is_of = [&in](std::string_view family) { return in.name.starts_with(family); };
    const bool needs_a_newcomer = broken.first_failure_ends_waits || broken.uptimes_look_exact;
    if (broken.cluster == scenario_options::clusters::always || broken.replicated || needs_a_newcomer) return false;
    if (broken.servers > 1 && in.servers == 1) return false;
    if (broken.kept == scenario_options::keeping::always && !is_of("kept")) return false;
    if (broken.semaphores == scenario_options::counting::always && !is_of("permits")) return false;
    if (broken.notes == scenario_options::noting::always && !is_of("notes") && !is_of("rw-notes")) return false;
    if (broken.polls == scenario_options::polling::always && in.pollers == 0) return false;
    if (broken.delay_ignored) return is_of("delay");
    if (broken.clock_stops_in_pauses)
        return std::find(in.faults.begin(), in.faults.end(), trouble::pause) != in.faults.end();
    if (broken.forgetful_servers_vote) return in.mistrusts;
    if (broken.replaced_scripts.empty()) return true;
    const std::string_view kind = is_of("rw") ? "rw/" : is_of("permits") ? "semaphore/" : "mutex/";
    return std::any_of(wire::all().begin(), wire::all().end(), [&](const wire::script& one) {
        return one.name.starts_with(kind) && broken.replaced_scripts.contains(one.text);
    });
}

std::vector<scope> make_scopes() {
    std::vector<scope> all;
    add_mutex(all);
    add_read_write(all);
    add_semaphore(all);
    add_kept(all);
    add_quorum(all);
    add_others(all);
    return all;
}

}  // namespace

const std::vector<scope>& all_scopes() {
    static const std::vector<scope> all = make_scopes();
    return all;
}

bool apply(const mutant& which, scope& to) {
    scenario_options broken;
    which.apply(broken);
    if (which.is_about_foreigners || !has_what_is_broken(to, broken)) return false;
    to.replaced_scripts = broken.replaced_scripts;
    to.pushes_overtake = broken.pushes_overtake;
    to.ids_repeat = broken.ids_repeat;
    to.deadlines_ignored = broken.deadlines_ignored;
    to.answers_ignored = broken.answers_ignored;
    to.delay_ignored = broken.delay_ignored;
    to.cancellations_ignored = broken.cancellations_ignored;
    to.first_failure_ends_waits = broken.first_failure_ends_waits;
    to.clock_stops_in_pauses = broken.clock_stops_in_pauses;
    to.uptimes_look_exact = broken.uptimes_look_exact;
    to.broken_keeper = broken.broken_keeper;
    if (broken.forgetful_servers_vote) to.mistrusts = false;
    return true;
}

std::vector<scope> find_scopes(std::string_view name) {
    std::vector<scope> found;
    for (const scope& one : all_scopes()) {
        const bool is_ours = !one.name.starts_with("other/");
        if ((name == "all" && is_ours) || one.name == name || one.name.starts_with(std::string(name) + "/"))
            found.push_back(one);
    }
    return found;
}

}  // namespace holdfast::sim::explore
