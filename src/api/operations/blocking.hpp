// Operations that block their thread: it drives the loop, or follows, until the answer arrives.
//
// A thread inside the serial section, or one that drives the loop already, must not block: it would wait for itself.
// check_may_block() reports that as errc::would_deadlock. User code runs in such a place only if its executor runs
// posted functions at once.
#pragma once

#include "api/operations/operation.hpp"

#include <atomic>
#include <stop_token>

namespace holdfast::api {

void check_may_block();
bool may_block() noexcept;

class blocking_acquire final : public acquire_operation {
public:
    blocking_acquire(std::shared_ptr<core> where, engine::acquire_terms terms, face wish)
        : acquire_operation(std::move(where), std::move(terms), wish) {}
    blocking_acquire(std::shared_ptr<hold_face> target, engine::patience limit)
        : acquire_operation(std::move(target), limit) {}

    // Starts the operation and returns when it has finished. A stop request ends it early.
    void wait(std::stop_token stop);

private:
    // Ends the acquisition from another thread. It may enter the section after the answer: wait() waits for that, too.
    class canceller final : public holdfast::serial_task {
    public:
        explicit canceller(blocking_acquire& owner) : owner_(owner) {}
        void run() override;
        loop::wait done;
        std::atomic<bool> entered = false;

    private:
        blocking_acquire& owner_;
    };

    void finished() override { where().loop().end(answered_); }

    loop::wait answered_;
};

class blocking_hold_operation final : public hold_operation {
public:
    blocking_hold_operation(std::shared_ptr<hold_face> target, what kind) : hold_operation(std::move(target), kind) {}
    blocking_hold_operation(core& where, owned_hold target, what kind)
        : hold_operation(where, std::move(target), kind) {}

    boost::system::error_code wait();

private:
    void finished() override { where().loop().end(answered_); }

    loop::wait answered_;
};

}  // namespace holdfast::api
