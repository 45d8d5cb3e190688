#include "world/plug.hpp"

#include <algorithm>

#include "world/client.hpp"

namespace holdfast::sim {

plug::plug(client& owner, std::size_t server_number, redis::session_listener& told,
           const redis::server_settings& server, std::uint64_t jitter_seed, network& net)
    : owner_(owner), server_number_(server_number), net_(net), session_(server, told, jitter_seed) {}

instant plug::now() const {
    return owner_.now();
}

void plug::settle() {
    if (session_.take_hang_up_wish()) {
        disconnect();
        ++attempt_;  // an attempt that is still in flight no longer counts
    }
    if (session_.take_connect_wish()) {
        disconnect();
        ++attempt_;
        net_.connect(*this);
    }
    while (link_ != nullptr && session_.has_output()) {
        link_->up.send(std::string(session_.begin_write(now())));
        session_.end_write();
    }
}

void plug::disconnect() {
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_->up.end();
    link_ = nullptr;
}

// The process has died; the fault decides whether the server learns of it.
void plug::forget_link() {
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_ = nullptr;
}

void plug::drop() {
    disconnect();
    ++attempt_;
}

void plug::connected(link& fresh, unsigned attempt) {
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

void plug::not_connected(unsigned attempt) {
    owner_.when_awake([this, attempt] {
        if (attempt == attempt_ && link_ == nullptr && !session_.wishes_hang_up())
            session_.failed({errc::unreachable, "connection refused"}, now());
    });
}

void plug::received(link& from, const packet& what) {
    // Only a paused client needs a copy.
    if (owner_.paused()) return owner_.when_awake([this, &from, what] { read(from, what); });
    owner_.when_awake([&] { read(from, what); });
}

void plug::read(link& from, const packet& what) {
    if (link_ != &from || session_.wishes_hang_up()) return;
    if (what.what == packet::kind::end) return session_.failed({errc::unreachable, "connection closed"}, now());
    const std::span<char> room = session_.prepare(what.bytes.size());
    std::copy(what.bytes.begin(), what.bytes.end(), room.begin());
    session_.received(what.bytes.size(), now());
}

}  // namespace holdfast::sim
