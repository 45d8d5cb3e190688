#include "world/client.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

// What was delayed by a trouble is made up for within this.
constexpr milliseconds aftermath{150};

}  // namespace

client::client(timeline& time, chance luck, engine::random_source& ids, client_setup setup, network& net)
    : time_(time),
      luck_(luck),
      setup_(std::move(setup)),
      net_(net),
      session_(setup_.server, *this, luck_.next()),
      engine_(setup_.engine, {{this, "sim"}}, ids, *this) {
    trouble_until_ = time_.now();
}

void client::start() {
    session_.on_timer(now());
    settle();
}

void client::when_awake(timeline::action what) {
    if (dead_) return;
    if (paused_) return postponed_.push_back(std::move(what));
    what();
    settle();
}

void client::pause_until(instant then) {
    if (dead_ || paused_) return;
    paused_ = true;
    paused_at_ = time_.now();
    time_.at(then, [this] {
        if (dead_) return;
        paused_ = false;
        resumed_at_ = time_.now();
        trouble_until(time_.now() + aftermath);
        if (setup_.clock_stops_in_pauses) slept_ += time_.now() - paused_at_;
        std::vector<timeline::action> late = std::exchange(postponed_, {});
        if (luck_.percent(50)) on_alarm();
        for (auto& what : late) {
            if (!dead_) what();
            settle();
        }
        if (!dead_) on_alarm();
        settle();
    });
}

void client::die() {
    dead_ = true;
    postponed_.clear();
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_ = nullptr;
}

void client::close() {
    session_.close(now());
    settle();
    dead_ = true;
}

bool client::calm_since(instant since) const {
    return !dead_ && !paused_ && session_.up() && trouble_until_ < since;
}

void client::settle() {
    if (dead_) return;
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
    const instant due = std::min(engine_.deadline(), session_.deadline());
    if (due == never || due == armed_) return;
    armed_ = due;
    time_.at(due + slept_, [this, due] {
        if (armed_ != due) return;
        armed_ = never;
        when_awake([this] { on_alarm(); });
    });
}

void client::on_alarm() {
    session_.on_timer(now());
    engine_.on_timer(now());
}

void client::hang_up() {
    if (link_ == nullptr) return;
    link_->client_open = false;
    link_->up.end();
    link_ = nullptr;
}

void client::connected(link& fresh, unsigned attempt) {
    when_awake([this, &fresh, attempt] {
        if (attempt != attempt_ || session_.wishes_hang_up() || link_ != nullptr) {
            fresh.up.end();
            return;
        }
        link_ = &fresh;
        fresh.client_open = true;
        session_.connected(now());
    });
}

void client::not_connected(unsigned attempt) {
    when_awake([this, attempt] {
        if (attempt == attempt_ && link_ == nullptr && !session_.wishes_hang_up())
            session_.failed({errc::unreachable, "nobody there"}, now());
    });
}

void client::received(link& from, const packet& what) {
    when_awake([this, &from, what] {
        if (link_ != &from || session_.wishes_hang_up()) return;
        if (what.what == packet::kind::end) return session_.failed({errc::unreachable, "hung up"}, now());
        const std::span<char> room = session_.prepare(what.bytes.size());
        std::copy(what.bytes.begin(), what.bytes.end(), room.begin());
        session_.received(what.bytes.size(), now());
    });
}

void client::on_link_up(const redis::server_facts& facts, instant now) {
    trouble_until(time_.now() + aftermath);
    instant trusted_from{};
    if (setup_.max_lease > milliseconds(0)) {
        trusted_from = now + setup_.max_lease - facts.uptime.value_or(std::chrono::seconds(0));
        trouble_until(trusted_from + slept_ + aftermath);
    }
    engine_.node(0).on_link_up(trusted_from, now);
}

void client::on_link_down(const failure&, instant now) {
    trouble_until(time_.now() + aftermath);
    engine_.node(0).on_link_down(now);
}

void client::on_subscription_refused(const failure& why, instant now) {
    engine_.node(0).on_subscription_refused(why, now);
}

void client::on_push(const redis::reply_view& message, instant now) {
    engine_.node(0).on_push(message, now);
}

}  // namespace holdfast::sim
