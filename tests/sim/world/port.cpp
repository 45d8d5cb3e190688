#include "world/port.hpp"

#include <utility>

#include "world/client.hpp"

namespace holdfast::sim {

port::port(client& owner, std::size_t node, redis::server_settings server, std::uint64_t jitter_seed, network& net)
    : owner_(owner), node_(node), net_(net), session_(std::move(server), *this, jitter_seed) {}

instant port::now() const {
    return owner_.now();
}

void port::settle() {
    if (session_.take_hang_up_wish()) {
        hang_up();
        ++attempt_;  // one that is still under way counts no more
    }
    if (session_.take_connect_wish()) {
        hang_up();
        ++attempt_;
        net_.connect(*this);
    }
    while (link_ != nullptr && session_.has_output()) {
        link_->up.send(std::string(session_.begin_write(now())));
        session_.end_write();
    }
}

void port::hang_up() {
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_->up.end();
    link_ = nullptr;
}

// The process is gone; whether the other end hears of it is not its business any more.
void port::forget_link() {
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_ = nullptr;
}

void port::connected(link& fresh, unsigned attempt) {
    owner_.when_awake([this, &fresh, attempt] {
        if (attempt != attempt_ || session_.wishes_hang_up() || link_ != nullptr) {
            fresh.up.end();
            return;
        }
        link_ = &fresh;
        fresh.client_open = true;
        session_.connected(now());
    });
}

void port::not_connected(unsigned attempt) {
    owner_.when_awake([this, attempt] {
        if (attempt == attempt_ && link_ == nullptr && !session_.wishes_hang_up())
            session_.failed({errc::unreachable, "nobody there"}, now());
    });
}

void port::received(link& from, const packet& what) {
    owner_.when_awake([this, &from, what] {
        if (link_ != &from || session_.wishes_hang_up()) return;
        if (what.what == packet::kind::end) return session_.failed({errc::unreachable, "hung up"}, now());
        const std::span<char> room = session_.prepare(what.bytes.size());
        std::copy(what.bytes.begin(), what.bytes.end(), room.begin());
        session_.received(what.bytes.size(), now());
    });
}

void port::on_link_up(const redis::server_facts& facts, instant now) {
    owner_.trouble_passes();
    if (const milliseconds longest = owner_.mistrusts_for(); longest > milliseconds(0)) {
        const bool another = !run_id_.empty() && run_id_ != facts.run_id;
        const auto known_for = another ? std::chrono::seconds(0) : facts.uptime.value_or(std::chrono::seconds(0));
        trusted_from_ = std::max(trusted_from_, now + longest - known_for);
        owner_.trouble_passes(trusted_from_ + owner_.slept());
    }
    run_id_ = facts.run_id;
    owner_.engine().node(node_).on_link_up({.clock = facts.clock}, engine::all_locks(), now);
}

void port::on_link_down(const failure&, instant now) {
    owner_.trouble_passes();
    owner_.engine().node(node_).on_link_down(engine::all_locks(), now);
}

void port::on_subscription_refused(const failure& why, instant now) {
    owner_.engine().node(node_).on_subscription_refused(why, engine::all_locks(), now);
}

void port::on_push(const redis::reply_view& message, instant now) {
    owner_.engine().node(node_).on_push(message, now);
}

}  // namespace holdfast::sim
