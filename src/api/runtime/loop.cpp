#include "api/runtime/loop.hpp"

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
// The same when it is the callback thread that has left the lead to run callbacks: most are done with in much less.
constexpr std::chrono::milliseconds callbacks_time{4};

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
        background_.state_ = wait::over;
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
        if (leader_gives_way_) ask_leader_to_step_aside();
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
    take_up_told(event);
}

// Whether it was the heir, and so has to see to it that somebody leads.
bool loop::take_up_told(wait& event) {
    const bool was_heir = heir_ == &event;
    if (was_heir) heir_ = nullptr;
    if (!event.is_over()) event.state_ = wait::open;
    return was_heir;
}

void loop::lead(wait& event, lock& held) {
    leader_ = &event;
    leader_gives_way_ = false;
    ++leads_;
    const bool alone = followers_.empty() && expected_ == 0;
    drive(held, [&] {
        if (alone && several_cores) look_closely(event);
        while (!event.is_over()) context_.run_one();
    });
    pass_the_lead(held);
}

void loop::stand_in(wait& event) {
    lock held(mutex_);
    away_ = false;
    bool was_heir = false;
    while (!event.is_over()) {
        if (expected_ > 0 && is_free()) {
            ++leads_;
            lead_until_asked(event, held);
            was_heir = false;
            continue;
        }
        // Callers have come, or what was expected has: not for it to lead, but they have relied on it.
        if (std::exchange(was_heir, false) && leader_ == nullptr) {
            pass_the_lead(held);
            if (!held) held.lock();
            continue;
        }
        if (expected_ > 0 && leader_ == &background_) ask_leader_to_step_aside();
        if (expected_ == 0) crowded_ = false;
        stand_in_ = &event;
        held.unlock();
        event.sleep();
        held.lock();
        was_heir = take_up_told(event);
    }
    away_ = true;
    ++absences_;
    if (deep_sleep_) wake_background_.notify_one();
}

// Leads until `as` is over or somebody wants the lead, who then has it.
void loop::lead_until_asked(wait& as, lock& held) {
    leader_ = &as;
    leader_gives_way_ = true;
    drive(held, [&] {
        while (!as.is_over() && !step_aside_) context_.run_one();
    });
    if (!step_aside_.exchange(false)) return;
    pass_the_lead(held);
    if (!held) held.lock();
}

void loop::glance() {
    lock held(mutex_);
    if (!is_free()) return;
    wait as;
    leader_ = &as;
    leader_gives_way_ = true;
    drive(held, [&] { context_.poll(); });
    step_aside_ = false;
    pass_the_lead(held);
}

bool loop::is_free() const {
    return leader_ == nullptr && heir_ == nullptr && followers_.empty();
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
    const bool sleeps = event.is_linked() || stand_in_ == &event;
    const futex_word* const sleeps_on = &event.state_;
    if (sleeps) no_longer_asleep(event);
    // The last touch, unless this is the leader's, which cannot go on without mutex_: afterwards the wait may be gone.
    event.state_.store(wait::over, std::memory_order_release);
    if (sleeps) {
        held.unlock();
        futex_wake_one(sleeps_on);
    } else if (heir_ == &event) {
        heir_ = nullptr;
        if (leader_ == nullptr) pass_the_lead(held);
    } else if (leader_ == &event && leading_thread_ != std::this_thread::get_id()) {
        interrupt_leader();
    }
}

void loop::no_longer_asleep(wait& event) {
    if (stand_in_ == &event) {
        stand_in_ = nullptr;
    } else {
        followers_.erase(followers_.iterator_to(event));
        following_.store(followers_.size(), std::memory_order_relaxed);
    }
}

// Callers first. Lets go of the mutex before it wakes anyone, who would need it at once.
void loop::pass_the_lead(lock& held) {
    if (heir_ != nullptr) return;
    if (!followers_.empty()) return tell_to_lead(followers_.front(), held);
    if (expected_ > 0 && stand_in_ != nullptr) return tell_to_lead(*stand_in_, held);
    if (expected_ == 0 && !deep_sleep_) return;
    held.unlock();
    wake_background_.notify_one();
}

void loop::tell_to_lead(wait& event, lock& held) {
    heir_ = &event;
    no_longer_asleep(event);
    futex_word* const sleeps_on = &event.state_;
    sleeps_on->store(wait::told_to_lead, std::memory_order_release);
    held.unlock();
    futex_wake_one(sleeps_on);
}

void loop::ask_leader_to_step_aside() {
    if (!step_aside_.exchange(true)) interrupt_leader();
}

void loop::interrupt_leader() {
    if (leader_ != nullptr) boost::asio::post(context_, [] {});
}

bool loop::expect_in_background() {
    // Where much is expected already somebody leads, or comes back to lead, until none of it is: nobody is to be woken.
    unsigned before = expected_.load(std::memory_order_relaxed);
    while (before >= many) {
        if (!expected_.compare_exchange_weak(before, before + 1, std::memory_order_relaxed)) continue;
        crowded_.store(true, std::memory_order_relaxed);
        return true;
    }
    const instant now = boot_now();
    lock held(mutex_);
    const unsigned expected = ++expected_;
    const bool just_now = now - std::exchange(last_expected_, now) < close_behind;
    const bool company = crowded_.exchange(false, std::memory_order_relaxed) || expected >= many || just_now;
    // One that is away comes back by itself, and is waited for by the background thread.
    if (expected == 1 && leader_ == nullptr && !away_) pass_the_lead(held);
    return company;
}

void loop::run_background() {
    lock held(mutex_);
    while (!background_.is_over()) {
        const bool wanted = expected_ > 0 || !callers_were_here_ || until_next_timer() <= 0ns;
        const bool just_left = away_ && absences_seen_ != absences_;
        if (!is_free() || !wanted || just_left) {
            linger(held);
            continue;
        }
        lead_until_asked(background_, held);
        callers_were_here_ = true;
    }
}

std::chrono::nanoseconds loop::until_next_timer() const {
    return next_timer_.load(std::memory_order_relaxed) - boot_now();
}

void loop::linger(lock& held) {
    callers_were_here_ = false;
    absences_seen_ = absences_;
    const bool stand_in_works = away_ || (leader_gives_way_ && leader_ != &background_);
    const std::chrono::nanoseconds at_most = stand_in_works ? callbacks_time : linger_time;
    // Whoever leads sees to the timers; only an abandoned loop must not sleep past one.
    if (leader_ == nullptr) {
        wake_background_.wait_for(held, std::clamp<std::chrono::nanoseconds>(until_next_timer(), 0ns, at_most));
    } else if (std::exchange(leads_seen_, leads_) != leads_) {
        wake_background_.wait_for(held, at_most);
    } else {
        // One thread has led for all that time, so it may be a long wait: no looking again and again.
        deep_sleep_ = true;
        wake_background_.wait(held);
        deep_sleep_ = false;
    }
}

}  // namespace holdfast::api
