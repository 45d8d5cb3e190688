// One direction of a link: bytes arrive in the order of sending, after a delay, or not at all.
//
// Faults act on a pipe. Data in flight can be delayed (a partition or a slow router: TCP retransmits until it arrives),
// or lost together with all that follows (then not even the end of the link arrives).
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "world/random_stream.hpp"
#include "world/timeline.hpp"

namespace holdfast::sim {

struct packet {
    enum class kind { bytes, end } what = kind::bytes;
    std::string bytes;
    instant sent{};
};

class pipe {
public:
    using sink = std::function<void(const packet&)>;

    pipe(timeline& time, random_stream& random, sink to) : time_(time), random_(random), to_(std::move(to)) {}
    pipe(const pipe&) = delete;
    pipe& operator=(const pipe&) = delete;

    void send(std::string bytes) { put({packet::kind::bytes, std::move(bytes), {}}); }
    void end() { put({packet::kind::end, {}, {}}); }

    /// Nothing arrives before then.
    void hold_until(instant then) {
        not_before_ = std::max(not_before_, then);
        for (auto& [due, what] : under_way_) due = std::max(due, then);
        wake_at(then);
    }
    /// Loses the data in flight and all that follows.
    void lose() {
        lost_ = true;
        under_way_.clear();
    }
    bool is_lost() const { return lost_; }
    /// Overtakes the data in flight: no network does that, only a mutant.
    void put_in_front(std::string bytes) {
        under_way_.emplace_front(time_.now(), packet{packet::kind::bytes, std::move(bytes), time_.now()});
        wake_at(time_.now());
    }

    random_stream::span delay{microseconds(50), milliseconds(2)};

    // --- where every order of arrival is explored
    /// From now on nothing arrives by itself, but only by deliver_first().
    void deliver_by_hand() { by_hand_ = true; }
    void deliver_first() {
        const packet what = std::move(under_way_.front().second);
        under_way_.pop_front();
        to_(what);
    }
    /// What has been sent and has not arrived, with the time at which it is due.
    const std::deque<std::pair<instant, packet>>& under_way() const { return under_way_; }

private:
    void put(packet what) {
        if (lost_) return;
        what.sent = time_.now();
        if (by_hand_) return under_way_.emplace_back(time_.now(), std::move(what)), void();
        instant due = std::max(time_.now() + random_.within(delay), not_before_);
        if (!under_way_.empty()) due = std::max(due, under_way_.back().first);
        under_way_.emplace_back(due, std::move(what));
        wake_at(due);
    }
    void wake_at(instant due) {
        time_.at(due, [this] { arrive(); });
    }
    void arrive() {
        while (!under_way_.empty() && under_way_.front().first <= time_.now()) {
            const packet what = std::move(under_way_.front().second);
            under_way_.pop_front();
            to_(what);
        }
    }

    timeline& time_;
    random_stream& random_;
    sink to_;
    std::deque<std::pair<instant, packet>> under_way_;
    instant not_before_{};
    bool lost_ = false;
    bool by_hand_ = false;
};

}  // namespace holdfast::sim
