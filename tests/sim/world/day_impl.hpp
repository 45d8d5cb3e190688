// The day from inside; see day.hpp.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "world/cluster.hpp"
#include "world/day.hpp"
#include "world/foreigners.hpp"

namespace holdfast::sim {

class day final : public network {
public:
    explicit day(const day_options& options);
    day_result run();

private:
    static constexpr milliseconds longest_lease{4000};
    static constexpr milliseconds usual_patience{40'000};
    // By so much the clocks of a primary and its replica differ at most, on replicated days.
    static constexpr milliseconds clock_skew{10};
    // Of a server's clock, where a minority of them are wrong.
    static constexpr nanoseconds furthest_off = std::chrono::hours(3);

    struct person {
        client* home;
        std::unique_ptr<actor> who;
    };

    server_options server_setup();
    std::vector<std::unique_ptr<server>> make_servers();
    void draw_plan();
    void draw_read_write();
    void draw_guests();
    void draw_mishaps();
    void draw_newcomers();
    void put_clocks_wrong(const std::vector<std::unique_ptr<server>>& servers);
    /// Who stands in line for that mutex, did so before then, and has had no trouble since.
    std::vector<std::string> waiting_since(const std::string& lock, instant since) const;
    void draw_acknowledged();
    void draw_takeovers();
    milliseconds max_lease() const;
    client& add_client();
    void note(const std::string& what) const;
    void connect(plug& from) override;
    bool run_until(instant end);
    bool everybody_idle() const;
    void check_commands();
    void watch_progress(std::map<std::string, instant> idle_since);
    std::uint64_t scripts_run() const;
    void check_night();

    // mishaps.cpp
    void plan_mishap();
    void plan_visit();
    void happen(mishap kind);
    void to_a_link(mishap kind, plug& whose);
    void to_a_client(mishap kind, client& whose);
    void to_the_server(mishap kind);
    void to_the_data(mishap kind);
    void block(plug& whose, mishap kind);
    std::size_t some_node();
    std::vector<plug*> plugs();
    void cut_off(const std::function<bool(plug&)>& is_meant);
    void slow_down(std::size_t node);
    void restart(mishap kind);
    void fail_over();
    void fail_over_to_replica();
    plug* some_link_of(client& whose);
    void trouble_all_until(instant then);
    void foreign_takes(mishap kind);
    void foreign_takes_a_vote();
    void foreign_waits(const lock_plan& plan);
    void foreign_leaves(const lock_plan& lock);
    void vandalize();
    void vandalize_line(const wire::lock_keys& keys, std::uint64_t how);
    void vandalize_rw(const wire::lock_keys& keys);
    client* somebody();
    bool several() const { return cluster_ == nullptr && servers_.size() > 1; }
    server& some_server();

    // cluster_day.cpp
    struct slot_move;
    std::vector<std::unique_ptr<server>> make_members(server_options setup);
    void draw_cluster();
    redis::server_settings cluster_settings() const;
    instant settled_since(const std::string& lock) const;
    server& home_of(const std::string& lock);
    std::string some_primary();
    void move_slot(mishap kind);
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
    void replace_in_place(const std::string& place);
    void promote_lagging(const std::string& from, const std::string& to);

    day_options options_;
    timeline time_;
    chance luck_;
    chance quorum_luck_;
    chance rw_luck_;  // so that days without read-write locks are what they were before there were any
    chance network_luck_;
    chance replica_luck_;  // of replicas that acknowledge
    chance partition_luck_;
    chance clocks_luck_;
    chance guests_luck_;  // of days on which other programs come again and again
    const bool is_acknowledged_;
    judge judge_;
    chance cluster_luck_;
    std::unique_ptr<cluster> cluster_;  // null: none; else the servers are its members
    std::vector<std::unique_ptr<server>> servers_;
    foreigners visitors_;
    habits ways_;
    instant begin_;
    bool calm_ = false;
    bool mistrusted_ = false;
    bool newcomers_ = false;
    bool has_guests_ = false;
    bool quiet_ = false;
    nanoseconds patience_ = usual_patience;
    std::vector<mishap> likely_;
    chance::span pace_{};
    chance::span delay_{microseconds(50), milliseconds(3)};
    std::vector<std::unique_ptr<link>> links_;
    std::vector<std::unique_ptr<chance>> ids_;
    std::vector<std::unique_ptr<client>> clients_;
    std::vector<person> actors_;
    std::map<std::string, client*, std::less<>> by_id_;
    // By client and server: nothing up, down, before then.
    std::map<std::pair<std::size_t, std::size_t>, std::pair<instant, instant>> blocked_;
    std::map<const server*, node::snapshot> older_;
    nanoseconds clock_ahead_{0};  // of the present primary, on replicated days
    // Of a Cluster.
    std::map<unsigned, std::shared_ptr<slot_move>> moves_;  // under way
    std::map<unsigned, instant> moved_at_;
    std::map<const server*, nanoseconds> member_ahead_;  // of whom it took over from, or he from it
    bool members_crash_ = false;
    bool replacing_ = false;  // one that has crashed
    day_result result_;
};

}  // namespace holdfast::sim
