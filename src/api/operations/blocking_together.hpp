// Tries to acquire several locks of one client at once, and blocks its thread until all answers are there.
//
// All requests are made in one visit to the serial section, so that those of plain mutexes on one server go out as one
// call, which acquires all of them or none.
#pragma once

#include "api/operations/blocking.hpp"

#include <deque>

namespace holdfast::api {

class blocking_together final : private serial_task {
public:
    explicit blocking_together(std::shared_ptr<core> where) : core_(std::move(where)) {}

    // Each must have waiting::not_at_all.
    void add(engine::acquire_terms terms) { parts_.emplace_back(*this, std::move(terms)); }
    // After at least one add(). A stop request ends it early.
    void wait(std::stop_token stop);

    bool all_acquired() const noexcept {
        return std::ranges::all_of(parts_, [](const part& one) { return one.acquired(); });
    }
    // In the order of add(); null: not acquired.
    std::shared_ptr<hold_face> held(std::size_t number) const {
        return parts_[number].acquired() ? parts_[number].held() : nullptr;
    }

private:
    class part final : public acquire_operation {
    public:
        part(blocking_together& whole, engine::acquire_terms terms)
            : acquire_operation(whole.core_, std::move(terms), face::wanted), whole_(whole) {}
        void begin() { start_inside(); }

    private:
        void finished() override { whole_.one_finished(); }

        blocking_together& whole_;
    };
    // As of blocking_acquire.
    class canceller final : public holdfast::serial_task {
    public:
        explicit canceller(blocking_together& owner) : owner_(owner) {}
        void run() override;
        loop::wait done;
        std::atomic<bool> entered = false;

    private:
        blocking_together& owner_;
    };

    void run() override;
    void one_finished() {
        if (++finished_ == parts_.size()) core_->loop().end(answered_);
    }

    const std::shared_ptr<core> core_;
    std::deque<part> parts_;
    std::size_t finished_ = 0;
    loop::wait answered_;
};

}  // namespace holdfast::api
