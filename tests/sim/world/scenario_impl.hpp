// The implementation of a scenario; see scenario.hpp. Every part draws from a random stream of its own: adding a part
// does not change what the other parts of an existing seed draw.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "world/cluster.hpp"
#include "world/foreign_clients.hpp"
#include "world/kept_actor.hpp"
#include "world/scenario.hpp"

namespace holdfast::sim {

class scenario final : public network {
public:
    explicit scenario(const scenario_options& options);
    scenario_result run();

private:
    static constexpr milliseconds longest_lease{4000};
    static constexpr milliseconds usual_patience{40'000};
    // Maximum difference of the clocks of a primary and its replica, in replicated scenarios.
    static constexpr milliseconds clock_skew{10};
    // Maximum error of a server's clock, where a minority of the clocks is wrong.
    static constexpr nanoseconds max_clock_error = std::chrono::hours(3);

    struct placed_actor {
        client* process;
        std::unique_ptr<user> self;
    };

    server_options server_setup();
    std::vector<std::unique_ptr<server>> make_servers();
    void draw_plan();
    void draw_read_write();
    void draw_semaphores();
    void draw_foreign_traffic();
    void draw_faults();
    void draw_newcomers();
    void skew_clocks(const std::vector<std::unique_ptr<server>>& servers);
    /// The actors that have waited for this mutex since before `since`, without trouble since then.
    std::vector<std::string> waiting_since(const std::string& lock, instant since) const;
    void draw_acknowledged();
    void draw_takeovers();
    milliseconds max_lease() const;
    client& add_client();
    std::vector<keeper*> add_keepers(client& process);
    void draw_wake_up(client_setup& setup);
    void note(const std::string& what) const;
    void connect(plug& from) override;
    bool run_until(instant end);
    bool all_idle() const;
    void check_commands();
    void check_progress(std::map<std::string, instant> idle_since);
    std::uint64_t scripts_run() const;
    void check_final_state();

    // faults.cpp
    void plan_fault();
    void plan_foreign_session();
    void inject(fault kind);
    void fault_on_link(fault kind, plug& whose);
    void fault_on_client(fault kind, client& whose);
    void fault_on_server(fault kind);
    void fault_on_data(fault kind);
    void block(plug& whose, fault kind);
    std::size_t random_server_number();
    std::vector<plug*> plugs();
    void cut_off(const std::function<bool(plug&)>& is_meant);
    void slow_down(std::size_t node);
    void restart(fault kind);
    void fail_over();
    void fail_over_to_replica();
    plug* random_link_of(client& whose);
    void trouble_all_until(instant then);
    void foreign_acquire(fault kind);
    void foreign_acquire_at_one_node();
    void foreign_enqueue(const lock_plan& plan);
    void foreign_wait_in_vain(const lock_plan& plan, int polls);
    void foreign_release(const lock_plan& lock);
    void corrupt();
    void corrupt_queue(const wire::lock_keys& keys, std::uint64_t how);
    void corrupt_rw(const wire::lock_keys& keys);
    void corrupt_semaphore(const wire::lock_keys& keys);
    void plan_resize();
    void resize(const lock_plan& plan);
    client* random_client();
    bool several() const { return cluster_ == nullptr && servers_.size() > 1; }
    server& random_server();

    // cluster_scenario.cpp
    struct slot_move;
    std::vector<std::unique_ptr<server>> make_members(server_options setup);
    void draw_cluster();
    redis::server_settings cluster_settings() const;
    instant settled_since(const std::string& lock) const;
    server& server_of(const std::string& lock);
    std::string random_primary();
    void move_slot(fault kind);
    void continue_move(const std::shared_ptr<slot_move>& move);
    void move_some_keys(slot_move& move);
    void end_move(const std::shared_ptr<slot_move>& move);
    void forget_moves(const std::string& member);
    void clear_up_strays();
    bool moves_a_slot(const std::string& member) const;
    void fail_over_member();
    std::int64_t clock_of_successor(const server& from, const server& to);
    void switch_members(const std::string& from, const std::string& to);
    void lose_member(const std::string& from, const std::string& to);

    // member_replicas.cpp
    void draw_members_that_fail();
    void draw_moves_alone();
    void fail_over_to_replica_of_member();
    void member_fails(const std::string& which);
    void hold_up_answers_of(const server& failing, instant until);
    void replace_in_place(const std::string& address);
    void promote_lagging(const std::string& from, const std::string& to);

    scenario_options options_;
    timeline time_;
    random_stream random_;
    random_stream quorum_random_;
    random_stream rw_random_;  // scenarios without read-write locks draw what they drew before these locks existed
    random_stream network_random_;
    random_stream replica_random_;  // replicas that acknowledge
    random_stream partition_random_;
    random_stream clocks_random_;
    random_stream foreign_random_;  // foreign clients that come again and again
    random_stream kept_random_;
    random_stream polling_random_;
    random_stream semaphore_random_;
    std::vector<std::vector<std::string>> resizes_;                // as they were sent
    std::map<std::string, std::size_t, std::less<>> last_resize_;  // by semaphore: of those that were carried out
    const bool is_kept_;                                           // clients keep locks
    const bool is_acknowledged_;
    checker checker_;
    random_stream cluster_random_;
    std::unique_ptr<cluster> cluster_;  // null: no Cluster; else the servers are its members
    std::vector<std::unique_ptr<server>> servers_;
    foreign_clients foreign_clients_;
    workload workload_;
    instant begin_;
    bool fault_free_ = false;
    bool mistrusted_ = false;
    bool has_sets_ = false;  // each client has a user of several locks at once
    bool newcomers_ = false;
    bool has_foreign_traffic_ = false;
    bool draining_ = false;
    nanoseconds patience_ = usual_patience;
    std::vector<fault> fault_mix_;
    random_stream::span pace_{};
    random_stream::span delay_{microseconds(50), milliseconds(3)};
    std::vector<std::unique_ptr<link>> links_;
    std::vector<std::unique_ptr<random_stream>> ids_;
    std::vector<std::unique_ptr<client>> clients_;
    std::vector<placed_actor> actors_;
    std::vector<std::unique_ptr<keeper>> keepers_;  // go before the actors, whose claims they list
    std::map<std::string, client*, std::less<>> by_id_;
    // By client and server: nothing arrives up or down before then.
    std::map<std::pair<std::size_t, std::size_t>, std::pair<instant, instant>> blocked_;
    std::map<const server*, server_model::snapshot> older_;
    nanoseconds clock_ahead_{0};  // of the present primary, in replicated scenarios
    // Cluster.
    std::map<unsigned, std::shared_ptr<slot_move>> moves_;  // in progress
    std::map<unsigned, instant> moved_at_;
    // How far the clock of a member is ahead of the base that successive primaries share.
    std::map<const server*, nanoseconds> member_ahead_;
    bool members_crash_ = false;
    bool replacing_ = false;  // a member that has crashed
    scenario_result result_;
};

}  // namespace holdfast::sim
