#include "world/port.hpp"

#include <algorithm>
#include <utility>

#include "world/client.hpp"

namespace holdfast::sim {

port::port(client& owner, std::size_t node, const redis::server_settings& server, std::uint64_t jitter_seed,
           network& net)
    : plug(owner, node, *this, server, jitter_seed, net), net_(net) {}

void port::submit(redis::command& request) {
    // Its payload set anew, a command forgets that it waits for the first link.
    if (!owner().waits_for_first_links()) request.copy_script(request);
    session().submit(request, now());
}

bool port::withdraw(redis::command& request) {
    if (acks_ && acks_->line.withdraw(request)) return true;
    return session().withdraw(request);
}

// As in src/api/backends/server_backend.cpp.
void port::confirm(redis::command& request, const engine::lock_keys&, redis::acknowledgement wanted) {
    if (!acks_) acks_ = std::make_unique<ack_plug>(owner(), node(), session().settings(), net_);
    acks_->line.submit(request, {wanted, run_id_});
}

// As there, too: what was done before a history was lost may still be told.
void port::catch_up() {
    if (!acks_) return;
    const unsigned lost = acks_->line.lost_histories();
    if (std::exchange(lost_histories_, lost) != lost && session().up())
        session().distrust({errc::unreachable, "it was a replica meanwhile"}, now());
    acks_->line.flush(now());
}

void port::settle() {
    plug::settle();
    if (acks_) acks_->settle();
}

void port::on_timer() {
    session().on_timer(now());
    if (acks_) acks_->session().on_timer(now());
}

instant port::deadline() {
    return acks_ ? std::min(session().deadline(), acks_->session().deadline()) : session().deadline();
}

void port::forget_links() {
    forget_link();
    if (acks_) acks_->forget_link();
}

std::vector<plug*> port::plugs() {
    if (acks_) return {this, acks_.get()};
    return {this};
}

void port::close() {
    session().close(now());
    if (acks_) acks_->session().close(now());
}

void port::on_link_up(const redis::server_facts& facts, instant now) {
    owner().trouble_passes();
    if (const milliseconds longest = owner().mistrusts_for(); longest > milliseconds(0)) {
        trusted_from_ = std::max(trusted_from_, now + longest - redis::known_for(facts, run_id_));
        owner().trouble_passes(trusted_from_ + owner().slept());
    }
    run_id_ = facts.run_id;
    input_->on_link_up({.clock = facts.clock}, engine::all_locks(), now);
}

void port::on_link_down(const failure&, instant now) {
    owner().trouble_passes();
    input_->on_link_down(engine::all_locks(), now);
}

void port::on_subscription_refused(const failure& why, instant now) {
    input_->on_subscription_refused(why, engine::all_locks(), now);
}

void port::on_push(const redis::reply_view& message, instant now) {
    input_->on_push(message, now);
}

}  // namespace holdfast::sim
