#include "world/ack_plug.hpp"

#include <algorithm>
#include <utility>

#include "wire/keys.hpp"
#include "world/client.hpp"
#include "world/cluster_backend.hpp"

namespace holdfast::sim {
namespace {

redis::ack_queue queue_on(redis::session& link, const std::string& client_id) {
    if (link.settings().use == redis::link_use::server) return redis::ack_queue(link, wire::ack_channel_of(client_id));
    return redis::ack_queue(link);
}

}  // namespace

ack_plug::ack_plug(client& owner, std::size_t server_number, const redis::server_settings& server, network& net)
    : plug(owner, server_number, *this, server, server_number + 1, net),
      queue(queue_on(session(), owner.engine().id().text())) {
    session().on_timer(now());  // starts to connect
}

void member_ack_plugs::submit(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted) {
    if (at == nullptr) {
        redis::routing::begin(request);
        redis::routing::set_waiting(request);
        nowhere_.push_back(&request);
        return;
    }
    std::unique_ptr<ack_plug>& there = members_[*at];
    if (there == nullptr) {
        redis::server_settings server = cluster_.for_member(*at);
        server.use = redis::link_use::member;
        there = std::make_unique<ack_plug>(owner_, member_at(*at), server, net_);
    }
    there->queue.submit(request, {.wanted = wanted, .run_id = {}});
}

bool member_ack_plugs::withdraw(redis::command& request) {
    if (std::erase(nowhere_, &request) != 0) {
        redis::routing::set_idle(request);
        return true;
    }
    return std::any_of(members_.begin(), members_.end(),
                       [&](const auto& each) { return each.second->queue.withdraw(request); }) ||
           std::any_of(left_.begin(), left_.end(), [&](const auto& each) { return each->queue.withdraw(request); });
}

// Order: drop all links first, then fail their commands. The completion of a command may ask again.
void member_ack_plugs::keep_primaries(const redis::slot_map& map) {
    const std::size_t before = left_.size();
    for (auto next = members_.begin(); next != members_.end();) {
        const auto each = next++;
        if (map.is_primary(each->first)) continue;
        left_.push_back(std::move(each->second));
        members_.erase(each);
    }
    for (std::size_t i = before; i < left_.size(); ++i) {
        left_[i]->queue.give_up({errc::outcome_unknown, "not a primary any more"}, owner_.now());
        left_[i]->drop();
    }
}

void member_ack_plugs::flush() {
    while (!nowhere_.empty()) {
        redis::command& request = *nowhere_.back();
        nowhere_.pop_back();
        redis::routing::fail(request, {errc::cluster_down, "the lock's slot has no owner"}, owner_.now());
    }
    for (const auto& [address, each] : members_) each->queue.flush(owner_.now());
}

void member_ack_plugs::settle() {
    for (const auto& [address, each] : members_) each->settle();
}

void member_ack_plugs::on_timer() {
    for (const auto& [address, each] : members_) each->session().on_timer(owner_.now());
}

instant member_ack_plugs::deadline() const {
    instant due = never;
    for (const auto& [address, each] : members_) due = std::min(due, each->session().deadline());
    return due;
}

void member_ack_plugs::forget_links() {
    for (const auto& [address, each] : members_) each->forget_link();
}

void member_ack_plugs::close() {
    for (const auto& [address, each] : members_) each->session().close(owner_.now());
}

void member_ack_plugs::add_to(std::vector<plug*>& all) const {
    for (const auto& [address, each] : members_) all.push_back(each.get());
}

}  // namespace holdfast::sim
