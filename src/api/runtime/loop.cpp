#include "api/runtime/loop.hpp"

#include "base/boot_clock.hpp"
#include "base/signals_blocked.hpp"

#include <sys/resource.h>
#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace holdfast::api {

using namespace std::chrono_literals;

namespace {

// How long after the last caller the background thread steps in. Long enough that a thread which works between two
// calls finds the lead free, short enough that a push without a waiting caller is not late.
constexpr std::chrono::milliseconds linger_time{10};
// The same after the callback thread left the lead to run callbacks: most callbacks take much less.
constexpr std::chrono::milliseconds callbacks_time{4};

// When a request should be sent together with others. A single caller never comes again so soon: a round trip lies in
// between. When many callers get their answers at once, nothing is in flight for a moment although all are about to ask
// again.
constexpr unsigned many = 8;
constexpr std::size_t some = 4;  // threads
constexpr std::chrono::microseconds close_behind{25};

// On a single core the server cannot answer while a caller looks for the answer.
const bool several_cores = std::thread::hardware_concurrency() > 1;

// Whether another thread ran on this thread's core, though this one could have run, since this thread asked last.
spin_policy::core core_since_last_asked() noexcept {
    static thread_local long seen = 0;
    rusage used{};
    if (::getrusage(RUSAGE_THREAD, &used) != 0) return spin_policy::core::kept;
    return std::exchange(seen, used.ru_nivcsw) == used.ru_nivcsw ? spin_policy::core::kept : spin_policy::core::shared;
}

}  // namespace

loop::loop(std::optional<std::chrono::microseconds> spin) : work_(boost::asio::make_work_guard(context_)), spin_(spin) {
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

// Returns when the wait is over (`held` may be unlocked then) or told to lead (`held` is locked).
void loop::follow(wait& event, lock& held) {
    followers_.push_back(event);
    following_.store(followers_.size(), std::memory_order_relaxed);
    held.unlock();
    event.sleep();
    if (event.is_over()) return;
    held.lock();
    take_up_told(event);
}

// Returns whether the wait was the heir: then its thread must lead or pass the lead on.
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
        if (alone && several_cores) look_before_sleep(event);
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
        // It was told to lead but must not any more: callers came, or nothing is expected. Nobody else looks for a
        // leader.
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

// Leads until `as` is over, or until step_aside_, and then passes the lead on.
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

void loop::look_before_sleep(const wait& event) {
    const instant began = boot_now();
    const spin_policy::time enough = spin_.look_for(began);
    if (enough <= 0ns) return;
    while (!event.is_over()) {
        if (context_.poll_one() > 0) continue;
        const spin_policy::time looked = boot_now() - began;
        if (looked >= enough) return spin_.looked(looked, spin_policy::outcome::in_vain, core_since_last_asked());
    }
    spin_.looked(boot_now() - began, spin_policy::outcome::answered, spin_policy::core::kept);
}

// Runs `work` without mutex_ as the leader. The caller has set leader_ before; it is null afterwards.
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
    // The wait may be gone afterwards, unless it is the leader's, whose thread needs mutex_ to go on.
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

// Callers first. Unlocks the mutex before it wakes a thread, which would need it at once.
void loop::pass_the_lead(lock& held) {
    if (heir_ != nullptr) return;
    if (!followers_.empty()) return tell_to_lead(followers_.front(), held);
    if (expected_ > 0 && stand_in_ != nullptr) return tell_to_lead(*stand_in_, held);
    if (expected_ == 0 && !listens_ && !deep_sleep_) return;
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
    // With many operations in flight some thread leads, or comes back to lead, until none is left: no thread needs
    // waking.
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
    // A callback thread that is away comes back by itself; the background thread waits for it.
    if (expected == 1 && leader_ == nullptr && !away_) pass_the_lead(held);
    return company;
}

void loop::run_background() {
    lock held(mutex_);
    while (!background_.is_over()) {
        const bool wanted = expected_ > 0 || listens_ || !callers_were_here_ || until_next_timer() <= 0ns;
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
    // A leader handles the timers. Without one, the background thread must not sleep past a timer.
    if (leader_ == nullptr) {
        wake_background_.wait_for(held, std::clamp<std::chrono::nanoseconds>(until_next_timer(), 0ns, at_most));
    } else if (std::exchange(leads_seen_, leads_) != leads_) {
        wake_background_.wait_for(held, at_most);
    } else {
        // One thread has led all the time, so it may be a long wait: no timeout.
        deep_sleep_ = true;
        wake_background_.wait(held);
        deep_sleep_ = false;
    }
}

}  // namespace holdfast::api
