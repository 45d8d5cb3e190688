#include "world/cluster_backend.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "world/client.hpp"

namespace holdfast::sim {
namespace {

constexpr std::uint16_t first_port = 7000;

}  // namespace

redis::server_address address_of_member(std::size_t number) {
    return {"member" + std::to_string(number), static_cast<std::uint16_t>(first_port + number)};
}

std::size_t member_at(const redis::server_address& address) {
    if (address.port < first_port) throw std::logic_error("no member at " + to_text(address));
    return address.port - std::size_t{first_port};
}

cluster_backend::cluster_backend(client& owner, const redis::server_settings& cluster, std::uint64_t jitter_seed,
                                 network& net)
    : owner_(owner),
      net_(net),
      next_seed_(jitter_seed),
      node_(cluster, *this, owner.mistrusts_for(), jitter_seed),
      acks_(owner, cluster, net) {}

engine::node_link cluster_backend::link() {
    return {&node_, "sim", engine::channels::one_per_tag};
}

instant cluster_backend::now() const {
    return owner_.now();
}

void cluster_backend::catch_up() {
    if (started_) node_.router().on_timer(now());
    if (std::exchange(has_new_map_, false)) acks_.keep_primaries(*node_.router().map());
    acks_.flush();
    if (owner_.mistrusts_for() > milliseconds(0)) note_mistrust();
}

void cluster_backend::confirm(redis::command& request, const redis::server_address* at, redis::acknowledgement wanted) {
    acks_.submit(request, at, wanted);
}

// The client asks for nothing before it trusts the owner of a lock. A waiter is not to blame for that delay.
void cluster_backend::note_mistrust() {
    for (const auto& lock : owner_.locks()) {
        const instant trusted_from = node_.trusted_from(*lock);
        if (trusted_from > now()) owner_.trouble_passes(trusted_from + owner_.slept());
    }
}

void cluster_backend::settle() {
    for (std::size_t i = 0; i < links_.size(); ++i) links_[i]->settle();
    acks_.settle();
}

void cluster_backend::on_timer() {
    if (!std::exchange(started_, true)) node_.router().start(now());
    for (std::size_t i = 0; i < links_.size(); ++i) links_[i]->session().on_timer(now());
    node_.router().on_timer(now());
    acks_.on_timer();
}

instant cluster_backend::deadline() {
    instant due = std::min(node_.router().deadline(), acks_.deadline());
    for (const auto& each : links_) due = std::min(due, each->session().deadline());
    return due;
}

void cluster_backend::forget_links() {
    for (const auto& each : links_) each->forget_link();
    acks_.forget_links();
}

void cluster_backend::close() {
    acks_.close();
    settle();
    node_.router().close(now());
}

bool cluster_backend::all_up() const {
    return std::all_of(links_.begin(), links_.end(), [](const auto& each) { return each->up(); });
}

std::vector<plug*> cluster_backend::plugs() {
    std::vector<plug*> all;
    for (const auto& each : links_) all.push_back(each.get());
    acks_.add_to(all);
    return all;
}

redis::session& cluster_backend::open(const redis::server_settings& member, redis::session_listener& told) {
    const auto& made = links_.emplace_back(
        std::make_unique<member_plug>(owner_, member_at({member.host, member.port}), told, member, ++next_seed_, net_));
    made->session().on_timer(now());  // starts to connect
    return made->session();
}

void cluster_backend::close(redis::session& link) {
    const auto found =
        std::find_if(links_.begin(), links_.end(), [&](const auto& each) { return &each->session() == &link; });
    if (found == links_.end()) throw std::logic_error("closing an unknown link");
    (*found)->drop();
    closed_.push_back(std::move(*found));
    links_.erase(found);
}

void cluster_backend::on_member_up(const redis::server_address&, const redis::server_facts&) {
    owner_.trouble_passes();
}

void cluster_backend::on_member_down(const failure&) {
    owner_.trouble_passes();
}

}  // namespace holdfast::sim
