#include "api/backends/ack_links.hpp"

#include "base/boot_clock.hpp"
#include "wire/keys.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::api {
namespace {

constexpr std::size_t most_links = 4;

// Only the backend asks the sentinels. These links follow its own link.
redis::server_settings alone(redis::server_settings server) {
    server.sentinels.reset();
    return server;
}

redis::ack_queue queue_on(redis::session& link, const std::string& client_id) {
    if (link.settings().use == redis::link_use::server) {
        return redis::ack_queue(link, wire::ack_channel_of(client_id));
    }
    return redis::ack_queue(link);
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
          queue(queue_on(link.session(), client_id)) {}

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

}  // namespace holdfast::api
