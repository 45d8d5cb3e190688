// A small world: a few processes, one server or a few, and one lock. Everything that the network, the clocks and the
// users could do next is a choice.
//
// Events:
//   a message arrives (each direction of each link delivers in order), or a new link is established
//   a user takes the next step of its program
//   time passes, up to the next timer of a process or the end of a key's expiry at a server
//   a fault, while the scope still allows one; its end
//
// Time: what happens between two timers happens at one instant. Time passes only when nothing is under way, except in
// directions that a fault holds up. It does not pass while it would change nothing, and not beyond the horizon. There
// everything is repaired, the users give back what they have, and the end state is checked.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explore/explorer.hpp"
#include "explore/fingerprint.hpp"
#include "explore/process.hpp"
#include "world/checker.hpp"
#include "world/keeper.hpp"
#include "world/server.hpp"

namespace holdfast::sim::explore {

enum class trouble : std::uint8_t {
    cut,             // both ends notice; what is under way is lost
    client_gone,     // the client drops the link; what it has sent arrives at any time later, then the end
    lost_replies,    // nothing arrives at the client any more; it does not notice
    held_up,         // what goes to the server waits, for as long as the explorer likes
    held_down,       // what goes to the client waits
    cut_off_server,  // both, for all links of a server
    pause,           // of a process
    crash,           // of a process: its links are closed
    vanish,          // of a process: what it has sent arrives at any time later, and its links are never closed
    restart,         // of a server, with all data
    restart_empty,
    clock_forward,  // of a server, by more than a lease
    clock_back,     // of a server, by more than a lease
    script_flush,
    count_
};
std::string_view to_string(trouble kind);

class small_world;

struct scope {
    std::string name;
    std::string about;
    std::size_t servers = 1;
    std::size_t processes = 2;
    std::function<std::unique_ptr<process>(small_world&, std::size_t number)> make_process = {};
    std::vector<trouble> faults = {};
    unsigned most_faults = 1;
    /// The processes that faults of links and processes may hit: where all are alike, the first one is enough.
    std::size_t victims = 2;
    /// How often a message or a step may come before the one whose turn it is; the links take turns. Nothing: always.
    std::optional<unsigned> most_deviations = {};
    /// How often users let time pass although they could go on. Nothing: always.
    std::optional<unsigned> most_waits = {};
    /// Long enough for the checker's limits (checks.hpp) to be short beside it.
    milliseconds lease{3000};
    /// What a process does not wait for longer than this has failed.
    milliseconds request_timeout{1500};
    milliseconds horizon{4200};
    /// Lost data and clocks that jump are outside the promise, so two may hold then, with different tokens.
    bool excuses = true;
    std::size_t pollers = 0;   // so many of the processes, from the first on, hear of nothing and poll
    bool mistrusts = false;    // servers that have restarted, for a lease
    bool kill_allowed = true;  // false: late copies of requests run although their client has a new link
    key_check undeclared_keys = key_check::strict;
    checker::view seen = checker::view::of_the_server;
    // Mutants, as in scenario_options.
    std::map<std::string, std::string, std::less<>> replaced_scripts = {};
    bool pushes_overtake = false;
    bool ids_repeat = false;
    bool uptimes_look_exact = false;
    bool clock_stops_in_pauses = false;
    bool first_failure_ends_waits = false;
    // What users do not tell the engine.
    bool deadlines_ignored = false;
    bool answers_ignored = false;
    bool cancellations_ignored = false;
    bool delay_ignored = false;
    kept_mutant broken_keeper = kept_mutant::none;
};

class small_world final : public world, private network {
public:
    small_world(const scope& what, std::shared_ptr<script_engine> engine,
                std::function<void(const std::string&)> trace = {});
    ~small_world() override;

    // --- for those who make processes
    const scope& setup() const { return scope_; }
    timeline& time() { return time_; }
    checker& check() { return check_; }
    network& net() { return *this; }
    resource& guarded() { return resource_; }
    waiting_line& line() { return line_; }
    random_source& ids_of(std::size_t number) { return *ids_[number]; }
    client_setup settings_of(std::size_t number) const;
    std::function<void(const std::string&)> trace() const { return check_.trace; }
    /// A link without a session, established at once.
    link& open(std::size_t number, std::size_t server_number, pipe::sink to_client);
    /// For checkers: how much trouble a process has had, and whether it polls.
    void knows(std::string_view client_id, client& who) {
        by_id_[std::string(client_id)] = &who;
        if (who.wakes() == engine::woken_by::poll) check_.pollers.insert(std::string(client_id));
    }

    // --- world
    std::size_t choices() override;
    std::string describe(std::size_t choice) const override;
    void take(std::size_t choice) override;
    std::uint64_t state() override;
    void end() override;
    const std::string& verdict() const override { return check_.verdict(); }

private:
    enum class event_kind : std::uint8_t {
        arrive_up,
        arrive_down,
        connect,
        step,
        time,
        fault,
        let_go,         // what a fault has held up
        resume_timers,  // of a pause
        resume_messages,
        start_server,
    };
    struct event {
        event_kind what;
        std::size_t which = 0;  // link, attempt, process or server
        std::size_t user = 0;   // step
        trouble fault = {};
    };
    /// One direction.
    enum direction : std::size_t { up, down };
    struct connection {
        std::unique_ptr<link> real;
        pipe::sink to_client;
        std::size_t process;
        std::size_t server;
        std::array<bool, 2> is_held{};
        fingerprint seen_by_server;
    };
    struct attempt {
        plug* from;
        unsigned number;
    };

    void connect(plug& from) override;
    link& add_link(std::size_t number, std::size_t server_number, pipe::sink to_client);
    pipe& pipe_of(connection& of, direction where) const { return where == up ? of.real->up : of.real->down; }
    bool is_held(const connection& of, direction where) const;
    bool is_held(std::size_t server_number) const { return cut_off_[server_number]; }
    void drop_undeliverable();
    void arrive(connection& at, direction where);
    void establish(std::size_t which);

    void list_events();
    void list_arrivals();
    void list_faults();
    bool is_only_choice(const event& one) const;
    bool deviates(std::size_t choice) const;
    bool somebody_may_step() const;
    std::size_t links_of(std::size_t number) const;
    bool may_step(std::size_t number) const;
    bool matters(std::size_t number) const;
    bool time_matters() const;
    std::optional<instant> next_instant();
    std::optional<instant> next_expiry();
    void pass_time();
    void inject(const event& what);
    void fault_on_link(trouble kind, std::size_t which);
    void fault_on_server(trouble kind, std::size_t which);
    void let_go();
    void play_on(instant limit);
    void check_end_state();
    std::uint64_t activity() const;
    void note(const std::string& what) const;

    const scope scope_;
    timeline time_;
    random_stream network_random_{1};
    checker check_;
    resource resource_{check_};
    waiting_line line_{check_};
    instant begin_;
    std::vector<std::unique_ptr<server>> servers_;
    std::vector<std::unique_ptr<connection>> connections_;
    std::vector<attempt> attempts_;
    std::vector<std::unique_ptr<random_stream>> ids_;
    std::vector<std::unique_ptr<process>> processes_;
    std::vector<fingerprint> seen_by_;  // by process
    std::map<std::string, client*, std::less<>> by_id_;
    std::vector<bool> cut_off_;                                   // by server
    std::vector<std::optional<server_model::snapshot>> stopped_;  // by server: what it starts again with
    unsigned faults_left_;
    fingerprint faults_seen_;
    std::vector<event> events_;
    unsigned deviations_left_ = 0;
    unsigned waits_left_ = 0;
    std::size_t last_link_ = 0;  // on which something arrived; where deviations are counted
    bool is_ending_ = false;
    std::uint64_t passed_ = 0;  // what was sent or has arrived
};

/// Makes worlds of a scope. They share one engine of scripts, which is not safe for threads.
world_maker maker_of(const scope& what, std::function<void(const std::string&)> trace = {});

}  // namespace holdfast::sim::explore
