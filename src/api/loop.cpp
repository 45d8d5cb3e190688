#include "api/loop.hpp"

#include "base/boot_clock.hpp"
#include "base/signals_blocked.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace holdfast::api {

using namespace std::chrono_literals;

namespace {

// How long after the last caller the background thread steps in. Long enough that a thread working between
// two calls keeps the lead free for itself, short enough that a push nobody waits for is not late.
constexpr std::chrono::milliseconds linger_time{10};

// What makes company. One caller alone never comes again so soon: a round trip lies in between. And when many have
// their answers at once, there is a moment in which nothing is under way although all are about to ask again.
constexpr unsigned many = 8;
constexpr std::chrono::microseconds close_behind{25};

// A server on the same machine answers before a sleeping core has been woken. So long a caller that has the loop for
// itself looks again and again before it sleeps. Where that was in vain, which is the rule for servers far away and for
// those who wait in line, it is not tried again for so many times.
constexpr std::chrono::microseconds close_look{100};
constexpr int in_vain = 32;
const bool several_cores = std::thread::hardware_concurrency() > 1;

}  // namespace

loop::loop() : work_(boost::asio::make_work_guard(context_)) {
    const signals_blocked for_the_new_thread;
    thread_ = std::thread([this] { run_background(); });
}

void loop::stop() {
    if (!thread_.joinable()) return;
    {
        const lock held(mutex_);
        stopping_ = true;
        background_.wake_.notify_one();
        interrupt_leader();
    }
    thread_.join();
}

loop::~loop() {
    stop();
}

void loop::until(wait& event) {
    lock held(mutex_);
    callers_were_here_ = true;
    while (!event.over_) {
        if (leader_ == nullptr) {
            lead(event, held);
            continue;
        }
        if (leader_ == &background_ && !step_aside_) {
            step_aside_ = true;
            interrupt_leader();
        }
        const auto place = followers_.insert(followers_.end(), &event);
        event.wake_.wait(held, [&] { return event.over_ || event.told_to_lead_; });
        followers_.erase(place);
        event.told_to_lead_ = false;
    }
    if (leader_ == nullptr) pass_the_lead();
}

void loop::lead(wait& event, lock& held) {
    leader_ = &event;
    ++leads_;
    leading_thread_ = std::this_thread::get_id();
    if (followers_.empty() && expected_ == 0 && several_cores) look_closely(event, held);
    while (!event.over_) {
        drive_once(held);
    }
    leader_ = nullptr;
}

void loop::look_closely(wait& event, lock& held) {
    if (not_again_for_ > 0) {
        --not_again_for_;
        return;
    }
    const auto enough = std::chrono::steady_clock::now() + close_look;
    while (!event.over_) {
        held.unlock();
        driving_ = true;
        bool in_time = true;
        while (context_.poll_one() == 0 && in_time) in_time = std::chrono::steady_clock::now() < enough;
        driving_ = false;
        held.lock();
        if (!in_time) break;
    }
    if (!event.over_) not_again_for_ = in_vain;
}

void loop::drive_once(lock& held) {
    held.unlock();
    driving_ = true;
    context_.run_one();
    driving_ = false;
    held.lock();
}

void loop::end(wait& event) {
    const lock held(mutex_);
    event.over_ = true;
    if (leader_ != &event) {
        event.wake_.notify_one();  // under the mutex: afterwards the wait may be gone
    } else if (leading_thread_ != std::this_thread::get_id()) {
        interrupt_leader();
    }
}

void loop::pass_the_lead() {
    if (!followers_.empty()) {
        followers_.front()->told_to_lead_ = true;
        followers_.front()->wake_.notify_one();
    } else if (expected_ > 0 || deep_sleep_) {
        background_.wake_.notify_one();
    }
}

void loop::interrupt_leader() {
    if (leader_ != nullptr) boost::asio::post(context_, [] {});
}

bool loop::expect_in_background() {
    const instant now = boot_now();
    const lock held(mutex_);
    if (expected_++ == 0 && leader_ == nullptr) background_.wake_.notify_one();
    return expected_ >= many || now - std::exchange(last_expected_, now) < close_behind;
}

void loop::expected_has_come() {
    const lock held(mutex_);
    --expected_;
}

void loop::run_background() {
    lock held(mutex_);
    while (!stopping_) {
        const bool free = leader_ == nullptr && followers_.empty();
        if (!free || (expected_ == 0 && callers_were_here_ && until_next_timer() > 0ns)) {
            linger(held);
            continue;
        }
        leader_ = &background_;
        leading_thread_ = std::this_thread::get_id();
        while (!stopping_ && !step_aside_) {
            drive_once(held);
        }
        leader_ = nullptr;
        step_aside_ = false;
        callers_were_here_ = true;
        pass_the_lead();
    }
}

std::chrono::nanoseconds loop::until_next_timer() const {
    return next_timer_.load(std::memory_order_relaxed) - boot_now();
}

void loop::linger(lock& held) {
    callers_were_here_ = false;
    // Whoever leads sees to the timers; only an abandoned loop must not sleep past one.
    if (leader_ == nullptr) {
        background_.wake_.wait_for(held, std::clamp<std::chrono::nanoseconds>(until_next_timer(), 0ns, linger_time));
    } else if (std::exchange(leads_seen_, leads_) != leads_) {
        background_.wake_.wait_for(held, linger_time);
    } else {
        // One caller has led for all that time, so it may be a long wait: no looking again and again.
        deep_sleep_ = true;
        background_.wake_.wait(held);
        deep_sleep_ = false;
    }
}

}  // namespace holdfast::api
