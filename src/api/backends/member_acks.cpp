#include "api/backends/member_acks.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {
namespace {

constexpr std::uint64_t seeds_for_each = 8;  // more than the links of a member

}  // namespace

member_acks::member_acks(boost::asio::io_context& context, serial_section& section,
                         const redis::server_settings& cluster, std::uint64_t jitter_seed)
    : context_(context), section_(section), cluster_(cluster), next_seed_(jitter_seed) {}

member_acks::~member_acks() = default;

void member_acks::submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted) {
    if (at == nullptr) {
        redis::routing::begin(request);
        redis::routing::set_waiting(request);
        nowhere_.push_back(&request);
        return;
    }
    std::unique_ptr<ack_links>& there = members_[*at];
    if (there == nullptr) {
        ack_listener& told = *this;
        there = std::make_unique<ack_links>(context_, section_, told, next_seed_ += seeds_for_each);
    }
    redis::server_settings server = cluster_.for_member(*at);
    server.use = redis::link_use::member;
    there->submit(request, {.wanted = wanted, .run_id = {}}, server, {});
}

bool member_acks::withdraw(redis::command& request) {
    if (std::erase(nowhere_, &request) != 0) {
        redis::routing::set_idle(request);
        return true;
    }
    return std::any_of(members_.begin(), members_.end(),
                       [&](const auto& each) { return each.second->withdraw(request); }) ||
           std::any_of(left_.begin(), left_.end(), [&](const auto& each) { return each->withdraw(request); });
}

void member_acks::keep_primaries(const redis::slot_map& map, instant now) {
    const std::size_t before = left_.size();
    for (auto next = members_.begin(); next != members_.end();) {
        const auto each = next++;
        if (map.is_primary(each->first)) continue;
        left_.push_back(std::move(each->second));
        members_.erase(each);
    }
    // All links are moved before the first failure is reported: its receiver may ask again.
    const failure why{errc::outcome_unknown, cluster_.display() + ": whose replicas were asked for is no primary now"};
    for (std::size_t i = before; i < left_.size(); ++i) left_[i]->give_up(why, now);
}

void member_acks::flush(instant now) {
    while (!nowhere_.empty()) {
        redis::command& request = *nowhere_.back();
        nowhere_.pop_back();
        redis::routing::fail(request, {errc::cluster_down, cluster_.display() + ": nobody owns the lock's slot"}, now);
    }
    for (const auto& [place, each] : members_) each->flush(now);
}

void member_acks::pump(instant now) {
    for (const auto& [place, each] : members_) each->pump(now);
    std::erase_if(left_, [](const auto& each) { return each->is_quiet(); });
}

void member_acks::close(instant now) {
    for (const auto& [place, each] : members_) each->close(now);
}

void member_acks::on_timer(instant now) {
    for (const auto& [place, each] : members_) each->on_timer(now);
}

instant member_acks::deadline() const noexcept {
    instant due = never;
    for (const auto& [place, each] : members_) due = std::min(due, each->deadline());
    return due;
}

}  // namespace holdfast::api
