#include "api/backends/ack_links.hpp"

#include "base/boot_clock.hpp"
#include "wire/keys.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::api {
namespace {

constexpr std::size_t most_links = 4;
constexpr std::uint64_t seeds_for_each = 2 * most_links;  // of the members of a Cluster

// Only the backend asks the sentinels. These links follow its own link.
redis::server_settings alone(redis::server_settings server) {
    server.sentinels.reset();
    return server;
}

std::string channel_for(const redis::server_settings& server, const std::string& client_id) {
    return server.use == redis::link_use::server ? wire::ack_channel_of(client_id) : std::string();
}

}  // namespace

// The state of a link shows in the results of its commands.
struct ack_links::one final : redis::session_listener {
    one(const ack_links& owner, redis::acknowledgement wish, redis::server_settings server,
        const std::string& client_id)
        : wanted(wish),
          told(owner.told_),
          link(owner.context_, owner.section_, alone(std::move(server)), *this,
               owner.jitter_seed_ + owner.links_.size()),
          queue(link.session(), channel_for(link.session().settings(), client_id)) {}

    void on_link_up(const redis::server_facts& facts, instant now) override { told.on_ack_link_up(facts, now); }
    void on_link_down(const failure&, instant) override {}
    void on_subscription_refused(const failure&, instant) override {}
    void on_push(const redis::reply_view&, instant) override {}

    const redis::acknowledgement wanted;
    ack_listener& told;
    redis::connection link;
    redis::ack_queue queue;
};

ack_links::ack_links(boost::asio::io_context& context, serial_section& section, ack_listener& told,
                     std::uint64_t jitter_seed)
    : context_(context), section_(section), told_(told), jitter_seed_(jitter_seed) {
    links_.reserve(most_links);  // a link may be added during an iteration
}

ack_links::~ack_links() = default;

void ack_links::submit(redis::command& request, const redis::ack_queue::question& about,
                       const redis::server_settings& server, const std::string& client_id) {
    const auto is_for_it = [&about](const auto& each) { return each->wanted == about.wanted; };
    auto found = std::find_if(links_.begin(), links_.end(), is_for_it);
    if (found == links_.end() && links_.size() == most_links) found = std::prev(links_.end());
    if (found == links_.end()) {
        links_.push_back(std::make_unique<one>(*this, about.wanted, server, client_id));
        found = std::prev(links_.end());
        if (links_.size() > 1) (*found)->queue.know_history_of(links_.front()->queue);
        (*found)->link.session().on_timer(boot_now());  // connects
    }
    (*found)->queue.submit(request, about);
}

bool ack_links::withdraw(redis::command& request) {
    return std::any_of(links_.begin(), links_.end(), [&](const auto& each) { return each->queue.withdraw(request); });
}

void ack_links::follow(const redis::server_settings& server, const std::string& run_id, instant now) {
    for (const auto& each : links_) {
        redis::session& session = each->link.session();
        session.found({server.host, server.port}, now);
        if (session.up() && session.facts().run_id != run_id) {
            session.distrust({errc::unreachable, server.display() + ": another server answers there by now"}, now);
        }
    }
}

unsigned ack_links::lost_histories() const noexcept {
    unsigned sum = 0;
    for (const auto& each : links_) sum += each->queue.lost_histories();
    return sum;
}

void ack_links::flush(instant now) {
    for (const auto& each : links_) each->queue.flush(now);
}

void ack_links::pump(instant now) {
    for (const auto& each : links_) each->link.pump(now);
}

void ack_links::close(instant now) {
    for (const auto& each : links_) each->link.close(now);
}

void ack_links::give_up(const failure& why, instant now) {
    for (const auto& each : links_) {
        each->queue.give_up(why, now);
        each->link.drop();
    }
}

bool ack_links::is_quiet() const noexcept {
    return std::all_of(links_.begin(), links_.end(), [](const auto& each) { return each->link.is_quiet(); });
}

void ack_links::on_timer(instant now) {
    for (const auto& each : links_) each->link.session().on_timer(now);
}

instant ack_links::deadline() const noexcept {
    instant due = never;
    for (const auto& each : links_) due = std::min(due, each->link.session().deadline());
    return due;
}

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
    for (const auto& [member, each] : members_) each->flush(now);
}

void member_acks::pump(instant now) {
    for (const auto& [member, each] : members_) each->pump(now);
    std::erase_if(left_, [](const auto& each) { return each->is_quiet(); });
}

void member_acks::close(instant now) {
    for (const auto& [member, each] : members_) each->close(now);
}

void member_acks::on_timer(instant now) {
    for (const auto& [member, each] : members_) each->on_timer(now);
}

instant member_acks::deadline() const noexcept {
    instant due = never;
    for (const auto& [member, each] : members_) due = std::min(due, each->deadline());
    return due;
}

}  // namespace holdfast::api
