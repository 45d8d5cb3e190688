// A Cluster that votes: a connection for every link that its router wants. Lives in the core's serial section.
#pragma once

#include "api/backends/ack_links.hpp"
#include "api/backends/backend.hpp"
#include "api/backends/client_card.hpp"
#include "base/boot_clock.hpp"
#include "engine/cluster_node.hpp"
#include "redis/session/connection.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace holdfast::api {

class cluster_backend final : public backend, private engine::cluster_host {
public:
    cluster_backend(const surroundings& where, redis::server_settings settings);

    engine::node_link link() override { return {&node_, settings_.display(), engine::channels::one_per_tag}; }
    void attach(engine::node_input& mine, const std::string& client_id) override {
        node_.attach(mine);
        card_ = std::make_unique<client_card>(client_id);
    }
    bool up() const override { return node_.router().anybody_is_up(); }
    void submit(redis::command& request, instant now) override { node_.router().submit(request, now); }
    std::vector<redis::server_settings> members() const override;
    void look_around(instant now) override;
    void pump(instant now) override;
    bool is_sending() const override {
        return std::any_of(links_.begin(), links_.end(), [](const auto& each) { return each->is_sending(); });
    }
    void close(instant now) override;
    void on_timer(instant now) override;
    instant deadline() const noexcept override;

private:
    redis::session& open(const redis::server_settings& member, redis::session_listener& told) override;
    void close(redis::session& link) override;
    instant now() const override { return boot_now(); }
    void on_member_up(const redis::server_address& which, const redis::server_facts& facts) override {
        recorder_.on_link_up(settings_.for_member(which).display(), facts.version);
        if (facts.resp == 2 && !std::exchange(has_told_of_resp2_, true)) recorder_.on_resp2(settings_);
    }
    void on_member_down(const failure& why) override { recorder_.on_link_down(why); }
    void on_wakes_refused(const failure& why) override {
        if (!std::exchange(has_told_of_refusal_, true)) recorder_.on_wakes_refused(why);
    }
    void on_slots_up(const redis::slot_set& which, instant now) override;
    void on_map() override { has_new_map_ = true; }
    void confirm(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted) override {
        acks_.submit(request, at, wanted);
    }
    bool withdraw_confirmation(redis::command& request) override { return acks_.withdraw(request); }

    const redis::server_settings settings_;
    boost::asio::io_context& context_;
    serial_section& section_;
    api::recorder& recorder_;
    std::uint64_t next_seed_;
    bool started_ = false;
    bool has_new_map_ = false;
    bool has_told_of_refusal_ = false;
    bool has_told_of_resp2_ = false;
    engine::cluster_node node_;
    std::unique_ptr<client_card> card_;
    std::vector<std::unique_ptr<redis::connection>> links_;
    std::vector<std::unique_ptr<redis::connection>> closed_;  // freed when no operation uses their buffers any more
    member_acks acks_;
};

}  // namespace holdfast::api
