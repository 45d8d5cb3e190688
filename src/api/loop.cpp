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
constexpr std::size_t some = 4;  // threads
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
        wake_background_.notify_one();
        interrupt_leader();
    }
    thread_.join();
}

loop::~loop() {
    stop();
}

void loop::until(wait& event) {
    if (event.is_over()) return;
    lock held(mutex_);
    callers_were_here_ = true;
    while (!event.is_over()) {
        if (leader_ == nullptr) return lead(event, held);
        ask_background_to_step_aside();
        follow(event, held);
    }
}

// Afterwards the wait is over, and `held` need not be held; or it was told to lead.
void loop::follow(wait& event, lock& held) {
    followers_.push_back(event);
    following_.store(followers_.size(), std::memory_order_relaxed);
    held.unlock();
    event.sleep();
    if (event.is_over()) return;
    held.lock();
    if (heir_ == &event) heir_ = nullptr;
    if (!event.is_over()) event.state_ = wait::open;
}

void loop::lead(wait& event, lock& held) {
    leader_ = &event;
    ++leads_;
    const bool alone = followers_.empty() && expected_ == 0;
    drive(held, [&] {
        if (alone && several_cores) look_closely(event);
        while (!event.is_over()) context_.run_one();
    });
    pass_the_lead(held);
}

// The leader is the only one who looks at not_again_for_.
void loop::look_closely(const wait& event) {
    if (not_again_for_ > 0) {
        --not_again_for_;
        return;
    }
    const auto enough = std::chrono::steady_clock::now() + close_look;
    while (!event.is_over()) {
        if (context_.poll_one() > 0 || std::chrono::steady_clock::now() < enough) continue;
        not_again_for_ = in_vain;
        return;
    }
}

// Between the two moments at which it is decided under mutex_ who leads.
template <typename Work>
void loop::drive(lock& held, Work work) {
    leading_thread_ = std::this_thread::get_id();
    held.unlock();
    driving_ = true;
    work();
    driving_ = false;
    held.lock();
    leader_ = nullptr;
}

bool loop::has_company() const noexcept {
    return following_.load(std::memory_order_relaxed) >= some;
}

void loop::end(wait& event) {
    lock held(mutex_);
    if (event.is_over()) return;
    const bool sleeps = event.is_linked();
    if (sleeps) stop_following(event);
    // The last touch, unless this is the leader's, which cannot go on without mutex_: afterwards the wait may be gone.
    event.state_.store(wait::over, std::memory_order_release);
    if (sleeps) {
        held.unlock();
        futex_wake_one(&event.state_);
    } else if (heir_ == &event) {
        heir_ = nullptr;
        if (leader_ == nullptr) pass_the_lead(held);
    } else if (leader_ == &event && leading_thread_ != std::this_thread::get_id()) {
        interrupt_leader();
    }
}

void loop::stop_following(wait& event) {
    followers_.erase(followers_.iterator_to(event));
    following_.store(followers_.size(), std::memory_order_relaxed);
}

// Lets go of the mutex before it wakes anyone, who would need it at once.
void loop::pass_the_lead(lock& held) {
    if (!followers_.empty() && heir_ == nullptr) {
        heir_ = &followers_.front();
        stop_following(*heir_);
        futex_word* const sleeps_on = &heir_->state_;
        sleeps_on->store(wait::told_to_lead, std::memory_order_release);
        held.unlock();
        futex_wake_one(sleeps_on);
    } else if (expected_ > 0 || deep_sleep_) {
        held.unlock();
        wake_background_.notify_one();
    }
}

void loop::ask_background_to_step_aside() {
    if (leader_ != &background_ || step_aside_.exchange(true)) return;
    interrupt_leader();
}

void loop::interrupt_leader() {
    if (leader_ != nullptr) boost::asio::post(context_, [] {});
}

bool loop::expect_in_background() {
    const instant now = boot_now();
    const lock held(mutex_);
    if (expected_++ == 0 && leader_ == nullptr) wake_background_.notify_one();
    return expected_ >= many || now - std::exchange(last_expected_, now) < close_behind;
}

void loop::expected_has_come() {
    const lock held(mutex_);
    --expected_;
}

void loop::run_background() {
    lock held(mutex_);
    while (!stopping_) {
        const bool free = leader_ == nullptr && heir_ == nullptr && followers_.empty();
        if (!free || (expected_ == 0 && callers_were_here_ && until_next_timer() > 0ns)) {
            linger(held);
            continue;
        }
        leader_ = &background_;
        drive(held, [&] {
            while (!stopping_ && !step_aside_) context_.run_one();
        });
        step_aside_ = false;
        callers_were_here_ = true;
        pass_the_lead(held);
        if (!held) held.lock();
    }
}

std::chrono::nanoseconds loop::until_next_timer() const {
    return next_timer_.load(std::memory_order_relaxed) - boot_now();
}

void loop::linger(lock& held) {
    callers_were_here_ = false;
    // Whoever leads sees to the timers; only an abandoned loop must not sleep past one.
    if (leader_ == nullptr) {
        wake_background_.wait_for(held, std::clamp<std::chrono::nanoseconds>(until_next_timer(), 0ns, linger_time));
    } else if (std::exchange(leads_seen_, leads_) != leads_) {
        wake_background_.wait_for(held, linger_time);
    } else {
        // One caller has led for all that time, so it may be a long wait: no looking again and again.
        deep_sleep_ = true;
        wake_background_.wait(held);
        deep_sleep_ = false;
    }
}

}  // namespace holdfast::api
