#include "api/node.hpp"

#include "base/boot_clock.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {

node::node(const surroundings& where, redis::server_settings settings)
    : watcher_(where.watcher),
      mistrusted_for_(where.mistrusted_for),
      connection_(where.context, where.section, std::move(settings), *this, where.jitter_seed) {}

void node::attach(engine::voter& mine, const std::string& client_id) {
    voter_ = &mine;
    card_ = std::make_unique<client_card>(client_id);
}

void node::close(instant now) {
    card_->withdraw(session(), now);
    connection_.pump(now);
    connection_.close(now);
}

void node::on_timer(instant now) {
    session().on_timer(now);
    card_->refresh(session(), now);
}

instant node::deadline() const noexcept {
    return std::min(connection_.session().deadline(), card_->due());
}

void node::on_link_up(const redis::server_facts& facts, instant now) {
    watcher_.on_link_up(settings().display(), facts.version);
    engine::node_facts told{.clock = facts.clock};
    if (mistrusted_for_ > milliseconds(0)) {
        // A server whose uptime we may not ask for counts as just started, and so does another one at the same address,
        // however long it runs: a replica that took over may lack what the last one had.
        const bool another = !run_id_.empty() && run_id_ != facts.run_id;
        const auto known_for = another ? std::chrono::seconds(0) : facts.uptime.value_or(std::chrono::seconds(0));
        trusted_from_ = std::max(trusted_from_, now + mistrusted_for_ - known_for);
        told.trusted_from = trusted_from_;
    }
    run_id_ = facts.run_id;
    voter_->on_link_up(told, now);
    card_->on_link_up();
    card_->refresh(session(), now);
}

void node::on_link_down(const failure& why, instant now) {
    watcher_.on_link_down(why);
    card_->on_link_down();
    voter_->on_link_down(now);
}

void node::on_subscription_refused(const failure& why, instant now) {
    voter_->on_subscription_refused(why, now);
}

void node::on_push(const redis::reply_view& message, instant now) {
    voter_->on_push(message, now);
}

void node::submit(redis::command& request) {
    session().submit(request, boot_now());
}

bool node::withdraw(redis::command& request) {
    return session().withdraw(request);
}

void node::distrust(const failure& why) {
    session().distrust(why, boot_now());
}

void node::subscribe(const std::string& channel) {
    session().subscribe(channel);
}

bool node::link_is_up() const {
    return connection_.session().up();
}

}  // namespace holdfast::api
