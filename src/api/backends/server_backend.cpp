#include "api/backends/server_backend.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::api {

server_backend::server_backend(const surroundings& where, redis::server_settings settings)
    : recorder_(where.recorder),
      runs_(where.runs),
      mistrusted_for_(where.mistrusted_for),
      connection_(where.context, where.section, std::move(settings), *this, where.jitter_seed),
      acks_(where.context, where.section, *this, where.jitter_seed + 2),
      context_(where.context),
      section_(where.section),
      jitter_seed_(where.jitter_seed) {
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

// The server was a replica for a while and lacks its earlier writes. Answers that tell of them may still be in flight
// on our own link.
void server_backend::look_for_lost_history(instant now) {
    const unsigned lost = acks_.lost_histories();
    if (std::exchange(lost_histories_, lost) == lost || !session().up()) return;
    session().distrust({errc::unreachable, settings().display() + ": it was a replica meanwhile"}, now);
}

void server_backend::pump(instant now) {
    if (sentinels_) sentinels_->pump(now);
    connection_.pump(now);
    acks_.pump(now);
    if (wakes_) wakes_->pump(now);
    std::erase_if(left_wakes_, [](const auto& each) { return each->is_quiet(); });
}

void server_backend::close(instant now) {
    acks_.close(now);
    if (wakes_) wakes_->close(now);
    card_->withdraw(*this, now);
    connection_.pump(now);
    connection_.close(now);
    if (sentinels_) sentinels_->close(now);
}

void server_backend::on_timer(instant now) {
    // Sentinels first: a caller whose deadline is now is told that they do not answer.
    if (sentinels_) {
        sentinels_->on_timer(now);
        sentinels_->look(session(), now);
    }
    session().on_timer(now);
    card_->refresh(*this, now);
    acks_.on_timer(now);
    if (wakes_) wakes_->on_timer(now);
}

// The server was replaced and came back, so it may lack what was granted meanwhile. The link is made anew: no answer to
// earlier requests on it is believed.
void server_backend::on_later_take_over(const redis::known_primary& found, instant now) {
    primary_since_ = std::max(primary_since_, found.since ? now - *found.since : now);
    const bool trusted_too_early = primary_since_ + mistrusted_for_ > std::max(now, trusted_from_);
    if (mistrusted_for_ > milliseconds(0) && session().up() && trusted_too_early) {
        session().distrust({errc::unreachable, settings().display() + ": its sentinels say that it took over just now"},
                           now);
    }
}

// Lower bound for how long the server has kept its data. One that took over may lack some of its predecessor's.
std::chrono::nanoseconds server_backend::known_for(const redis::server_facts& facts, instant now) const {
    const std::chrono::nanoseconds this_run = redis::known_for(facts, run_id_);
    return sentinels_ ? std::min(this_run, now - primary_since_) : this_run;
}

std::optional<failure> server_backend::objection(const redis::server_facts& facts) {
    const std::string name = settings().display();
    const std::string twin = runs_.claim(this, name, facts.run_id);
    if (twin.empty()) return std::nullopt;
    return failure{errc::named_twice, name + " is the same server as " + twin};
}

void server_backend::on_link_up(const redis::server_facts& facts, instant now) {
    recorder_.on_link_up(settings().display(), facts.version);
    if (mistrusted_for_ > milliseconds(0)) {
        trusted_from_ = std::max(trusted_from_, now + mistrusted_for_ - known_for(facts, now));
    }
    run_id_ = facts.run_id;
    acks_.follow(settings(), run_id_, now);
    if (facts.resp == 2 && !std::exchange(has_told_of_resp2_, true)) recorder_.on_resp2(settings());
    if (facts.resp == 3) stop_listening_apart(now);
    if (wakes_) wakes_->follow(settings(), run_id_, now);
    listen(now);
    input_->on_link_up({.clock = facts.clock}, engine::all_locks(), now);
    card_->on_link_up();
    card_->refresh(*this, now);
}

void server_backend::on_link_down(const failure& why, instant now) {
    recorder_.on_link_down(why);
    refuses_to_wake_ = false;  // the next link may lead to another server
    card_->on_link_down();
    input_->on_link_down(engine::all_locks(), now);
}

engine::woken_by server_backend::wakes(const std::string& channel) const {
    const bool is_apart = connection_.session().facts().resp == 2;
    const bool must_push = settings().wake == redis::wake_choice::push;
    const bool is_heard = !is_apart || must_push || (wakes_ && wakes_->hears(channel));
    if (settings().wake == redis::wake_choice::poll || refuses_to_wake_ || !is_heard) return engine::woken_by::poll;
    return is_apart ? engine::woken_by::hint : engine::woken_by::push;
}

void server_backend::listen(instant now) {
    if (channel_.empty() || settings().wake == redis::wake_choice::poll || refuses_to_wake_) return;
    session().subscribe(channel_);
    if (!session().up() || session().facts().resp == 3) return;
    if (!wakes_) {
        wake_listener& told = *this;
        wakes_ = std::make_unique<wake_link>(context_, section_, settings(), told, jitter_seed_ + 3);
    }
    wakes_->subscribe(channel_);
    wakes_->on_timer(now);  // connects
}

// The server speaks RESP3 by now, or does not let us listen.
void server_backend::stop_listening_apart(instant now) {
    if (!wakes_) return;
    left_wakes_.push_back(std::move(wakes_));
    left_wakes_.back()->close(now);
}

void server_backend::on_wake_link_up(const redis::server_facts& facts, instant now) {
    compare_servers(facts, now);
    input_->on_wakes_changed(engine::all_locks(), now);
}

void server_backend::on_wake_link_down(const failure& why, instant now) {
    if (why.code == errc::client_closed) return;
    recorder_.on_trouble("the connection for wake-ups is down: " + why.detail);
    input_->on_wakes_changed(engine::all_locks(), now);
}

void server_backend::on_wakes_refused(const failure& why, instant now) {
    if (settings().wake == redis::wake_choice::push) {
        return input_->on_subscription_refused(why, engine::all_locks(), now);
    }
    refuses_to_wake_ = true;
    if (!std::exchange(has_told_of_refusal_, true)) recorder_.on_wakes_refused(why);
    input_->on_wakes_changed(engine::all_locks(), now);
}

// If another server answers than on our own link, that link is older, and its server was replaced.
void server_backend::compare_servers(const redis::server_facts& facts, instant now) {
    const bool knows_both = !facts.run_id.empty() && !run_id_.empty();
    if (!session().up() || !knows_both || facts.run_id == run_id_) return;
    session().distrust({errc::unreachable, settings().display() + ": another server answers there by now"}, now);
}

}  // namespace holdfast::api
