#include "api/backends/server_backend.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {

server_backend::server_backend(const surroundings& where, redis::server_settings settings)
    : watcher_(where.watcher),
      mistrusted_for_(where.mistrusted_for),
      connection_(where.context, where.section, std::move(settings), *this, where.jitter_seed),
      acks_(where.context, where.section, *this, where.jitter_seed + 2) {
    if (this->settings().sentinels) {
        redis::primary_listener& told = *this;
        sentinels_ = std::make_unique<redis::sentinel_links>(where.context, where.section, this->settings(), told,
                                                             where.jitter_seed + 1);
    }
}

void server_backend::attach(engine::node_input& mine, const std::string& client_id) {
    input_ = &mine;
    client_id_ = client_id;
    card_ = std::make_unique<client_card>(client_id);
}

void server_backend::look_around(instant now) {
    if (sentinels_) sentinels_->look(session(), now);
    look_for_lost_history(now);
    acks_.flush(now);
}

// It was a replica for a while, and lacks what it did before. Somebody's request for replicas has shown it; answers
// that tell others of such deeds may still be under way on our own link, and their requests would find the new history
// only.
void server_backend::look_for_lost_history(instant now) {
    const unsigned lost = acks_.lost_histories();
    if (std::exchange(lost_histories_, lost) == lost || !session().up()) return;
    session().distrust({errc::unreachable, settings().display() + ": it was a replica meanwhile"}, now);
}

void server_backend::pump(instant now) {
    if (sentinels_) sentinels_->pump(now);
    connection_.pump(now);
    acks_.pump(now);
}

void server_backend::close(instant now) {
    acks_.close(now);
    card_->withdraw(*this, now);
    connection_.pump(now);
    connection_.close(now);
    if (sentinels_) sentinels_->close(now);
}

void server_backend::on_timer(instant now) {
    // They first: that they do not answer is the reason to tell where a caller's time ends at the same instant.
    if (sentinels_) {
        sentinels_->on_timer(now);
        sentinels_->look(session(), now);
    }
    session().on_timer(now);
    card_->refresh(*this, now);
    acks_.on_timer(now);
}

instant server_backend::deadline() const noexcept {
    const instant due = std::min({connection_.session().deadline(), card_->due(), acks_.deadline()});
    return sentinels_ ? std::min(due, sentinels_->deadline()) : due;
}

void server_backend::on_primary(const redis::known_primary& found, instant now) {
    primary_since_ = found.since ? now - *found.since : now;
    session().found(found.address, now);
}

// It was replaced and came back, and whoever was asked first has not heard of that: it may lack what was granted
// meanwhile. The link is made anew, so that nothing that was asked on it is believed.
void server_backend::on_later_take_over(const redis::known_primary& found, instant now) {
    primary_since_ = std::max(primary_since_, found.since ? now - *found.since : now);
    const bool trusted_too_early = primary_since_ + mistrusted_for_ > std::max(now, trusted_from_);
    if (mistrusted_for_ > milliseconds(0) && session().up() && trusted_too_early) {
        session().distrust({errc::unreachable, settings().display() + ": its sentinels say that it took over just now"},
                           now);
    }
}

// Lower bound for how long the server has kept all that it was told. One that took over may lack what the last one had.
std::chrono::nanoseconds server_backend::known_for(const redis::server_facts& facts, instant now) const {
    const std::chrono::nanoseconds this_run = redis::known_for(facts, run_id_);
    return sentinels_ ? std::min(this_run, now - primary_since_) : this_run;
}

void server_backend::on_link_up(const redis::server_facts& facts, instant now) {
    watcher_.on_link_up(settings().display(), facts.version);
    if (mistrusted_for_ > milliseconds(0)) {
        trusted_from_ = std::max(trusted_from_, now + mistrusted_for_ - known_for(facts, now));
    }
    run_id_ = facts.run_id;
    acks_.follow(settings(), run_id_, now);
    input_->on_link_up({.clock = facts.clock}, engine::all_locks(), now);
    card_->on_link_up();
    card_->refresh(*this, now);
}

void server_backend::on_link_down(const failure& why, instant now) {
    watcher_.on_link_down(why);
    card_->on_link_down();
    input_->on_link_down(engine::all_locks(), now);
}

// Where another server answers than the one that our own link goes to, that link is the older one, and the server was
// replaced.
void server_backend::on_ack_link_up(const redis::server_facts& facts, instant now) {
    const bool knows_both = !facts.run_id.empty() && !run_id_.empty();
    if (!session().up() || !knows_both || facts.run_id == run_id_) return;
    session().distrust({errc::unreachable, settings().display() + ": another server answers there by now"}, now);
}

}  // namespace holdfast::api
