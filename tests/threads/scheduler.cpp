#include "threads/scheduler.hpp"

#include <ucontext.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace interleaving {
namespace {

constexpr std::size_t stack_bytes = 128 * 1024;

class scheduler;
scheduler* present = nullptr;

struct worker {
    int number = 0;
    ucontext_t context{};
    std::unique_ptr<std::array<char, stack_bytes>> stack = std::make_unique<std::array<char, stack_bytes>>();
    std::function<void()> body;
    std::function<bool()> ready;  // empty: it can go on
    bool may_be_late = false;
    bool was_late = false;
    bool is_over = true;

    bool can_go_on() const { return !is_over && (!ready || ready()); }
};

worker* me = nullptr;

class scheduler {
public:
    explicit scheduler(limits within) : within_(within) {}

    result explore(const std::function<void()>& world) {
        present = this;
        do {
            run(world);
        } while (result_.broken.empty() && result_.runs < within_.most_runs && next_path());
        result_.is_complete = result_.broken.empty() && path_.empty();
        present = nullptr;
        return result_;
    }

    int start(std::function<void()> body) {
        std::size_t free = 0;
        while (free < workers_.size() && !workers_[free]->is_over) ++free;
        if (free == workers_.size()) {
            workers_.push_back(std::make_unique<worker>());
            workers_[free]->number = static_cast<int>(free);
        }
        worker& chosen = *workers_[free];
        chosen.body = std::move(body);
        chosen.ready = nullptr;
        chosen.is_over = false;
        ::getcontext(&chosen.context);
        chosen.context.uc_stack.ss_sp = chosen.stack->data();
        chosen.context.uc_stack.ss_size = stack_bytes;
        chosen.context.uc_link = nullptr;
        ::makecontext(&chosen.context, work, 0);
        return chosen.number;
    }

    void step(std::function<bool()> ready, bool may_be_late) {
        me->ready = std::move(ready);
        me->may_be_late = may_be_late;
        hand_over();
    }

    bool is_over(int thread) const { return workers_[static_cast<std::size_t>(thread)]->is_over; }

    void fail(const std::string& what) {
        result_.broken = what + " (run " + std::to_string(result_.runs + 1) + ", step " + std::to_string(steps_) + ")";
        ::setcontext(&caller_);
    }

private:
    struct decision {
        std::size_t chosen;
        std::size_t options;
    };
    struct option {
        worker* who;
        bool is_late;
        unsigned cost;
    };

    void run(const std::function<void()>& world) {
        at_ = 0;
        steps_ = 0;
        preemptions_ = 0;
        start(world);
        me = workers_[0].get();
        ::swapcontext(&caller_, &me->context);
        me = nullptr;
        ++result_.runs;
        result_.steps += steps_;
    }

    // The last decision that can be made differently is; those behind it are forgotten.
    bool next_path() {
        while (!path_.empty() && path_.back().chosen + 1 == path_.back().options) path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().chosen;
        return true;
    }

    static void work() {
        me->body();
        me->is_over = true;
        present->hand_over();
    }

    std::vector<option>& options() {
        std::vector<option>& all = options_;
        all.clear();
        const bool can_stay = me->can_go_on();
        if (can_stay) all.push_back({me, false, 0});
        const unsigned cost = can_stay ? 1 : 0;
        for (const auto& each : workers_) {
            if (each.get() != me && each->can_go_on()) all.push_back({each.get(), false, cost});
        }
        const unsigned cost_of_lateness = all.empty() ? 0 : 1;
        for (const auto& each : workers_) {
            const bool waits = !each->is_over && each->ready && each->may_be_late && !each->ready();
            if (waits) all.push_back({each.get(), true, cost_of_lateness});
        }
        std::erase_if(all, [this](const option& one) { return preemptions_ + one.cost > within_.preemptions; });
        return all;
    }

    std::size_t decide(std::size_t options) {
        if (options == 1) return 0;
        if (at_ == path_.size()) path_.push_back({0, options});
        if (path_[at_].options != options) fail("the world is not the same in every run");
        return path_[at_++].chosen;
    }

    bool all_are_over() const {
        for (const auto& each : workers_) {
            if (!each->is_over) return false;
        }
        return true;
    }

    // Gives the turn to the thread that is to go on; returns when this one has it again, and never if it is over.
    void hand_over() {
        if (++steps_ > within_.most_steps) fail("no progress");
        if (all_are_over()) ::setcontext(&caller_);
        const std::vector<option>& possible = options();
        if (possible.empty()) fail("all threads wait for ever");
        const option chosen = possible[decide(possible.size())];
        preemptions_ += chosen.cost;
        chosen.who->was_late = chosen.is_late;
        chosen.who->ready = nullptr;
        if (chosen.who == me) return;
        worker& self = *me;
        me = chosen.who;
        if (self.is_over) ::setcontext(&me->context);
        ::swapcontext(&self.context, &me->context);
    }

    const limits within_;
    result result_;
    std::vector<decision> path_;
    std::vector<option> options_;
    std::size_t at_ = 0;  // of path_
    std::size_t steps_ = 0;
    unsigned preemptions_ = 0;
    ucontext_t caller_{};
    std::vector<std::unique_ptr<worker>> workers_;
};

}  // namespace

result explore(const limits& within, const std::function<void()>& world) {
    // What a broken run has left on the stacks of its threads is never destroyed, and may point to anything.
    auto all = std::make_unique<scheduler>(within);
    const result found = all->explore(world);
    if (!found.broken.empty()) static_cast<void>(all.release());
    return found;
}

bool is_exploring() noexcept {
    return me != nullptr;
}

void step() {
    if (me != nullptr) present->step(nullptr, false);
}

void step_when(std::function<bool()> ready) {
    if (me != nullptr) present->step(std::move(ready), false);
}

bool step_when_or_late(std::function<bool()> ready) {
    if (me == nullptr) return ready();
    present->step(std::move(ready), true);
    return !me->was_late;
}

int start(std::function<void()> body) {
    return present->start(std::move(body));
}

void join(int thread) {
    present->step([thread] { return present->is_over(thread); }, false);
}

int this_thread() noexcept {
    return me == nullptr ? -1 : me->number;
}

void fail(const std::string& what) {
    if (me != nullptr) present->fail(what);
    std::fprintf(stderr, "broken: %s\n", what.c_str());
    std::abort();
}

}  // namespace interleaving
