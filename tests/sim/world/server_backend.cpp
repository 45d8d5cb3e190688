#include "world/server_backend.hpp"

#include <algorithm>
#include <utility>

#include "world/client.hpp"

namespace holdfast::sim {

server_backend::server_backend(client& owner, std::size_t server_number, const redis::server_settings& server,
                               std::uint64_t jitter_seed, network& net)
    : plug(owner, server_number, *this, server, jitter_seed, net), net_(net) {}

void server_backend::submit(redis::command& request) {
    // Mutant: setting the payload again makes the command forget that it waits for the first link.
    if (!owner().waits_for_first_links()) request.copy_script(request);
    session().submit(request, now());
}

void server_backend::subscribe(const std::string& channel) {
    if (owner().wakes() == engine::woken_by::poll) return;
    if (!owner().subscribes_late()) return session().subscribe(channel);
    owner().later(milliseconds(700), [this, channel] { session().subscribe(channel); });
}

bool server_backend::withdraw(redis::command& request) {
    if (acks_ && acks_->queue.withdraw(request)) return true;
    return session().withdraw(request);
}

// As in src/api/backends/server_backend.cpp.
void server_backend::confirm(redis::command& request, const engine::lock_keys&, redis::acknowledgement wanted) {
    if (!acks_) acks_ = std::make_unique<ack_plug>(owner(), server_number(), session().settings(), net_);
    acks_->queue.submit(request, {wanted, run_id_});
}

// A server that lost its history may still deliver answers from before the loss: drop that link, too.
void server_backend::catch_up() {
    if (!acks_) return;
    const unsigned lost = acks_->queue.lost_histories();
    if (std::exchange(lost_histories_, lost) != lost && session().up())
        session().distrust({errc::unreachable, "the server was a replica in between"}, now());
    acks_->queue.flush(now());
}

void server_backend::settle() {
    plug::settle();
    if (acks_) acks_->settle();
}

void server_backend::on_timer() {
    session().on_timer(now());
    if (acks_) acks_->session().on_timer(now());
}

instant server_backend::deadline() {
    return acks_ ? std::min(session().deadline(), acks_->session().deadline()) : session().deadline();
}

void server_backend::forget_links() {
    forget_link();
    if (acks_) acks_->forget_link();
}

std::vector<plug*> server_backend::plugs() {
    if (acks_) return {this, acks_.get()};
    return {this};
}

void server_backend::close() {
    session().close(now());
    if (acks_) acks_->session().close(now());
}

void server_backend::on_link_up(const redis::server_facts& facts, instant now) {
    owner().trouble_passes();
    if (const milliseconds longest = owner().mistrusts_for(); longest > milliseconds(0)) {
        trusted_from_ = std::max(trusted_from_, now + longest - redis::known_for(facts, run_id_));
        owner().trouble_passes(trusted_from_ + owner().slept());
    }
    run_id_ = facts.run_id;
    input_->on_link_up({.clock = facts.clock}, engine::all_locks(), now);
}

void server_backend::on_link_down(const failure&, instant now) {
    owner().trouble_passes();
    input_->on_link_down(engine::all_locks(), now);
}

void server_backend::on_subscription_refused(const failure& why, instant now) {
    input_->on_subscription_refused(why, engine::all_locks(), now);
}

void server_backend::on_push(const redis::reply_view& message, instant now) {
    const bool tells_of_change = message.size() == 3 && message[2].text().starts_with("changed");
    if (tells_of_change && owner().is_deaf_to_changes()) return;
    input_->on_push(message, now);
}

}  // namespace holdfast::sim
