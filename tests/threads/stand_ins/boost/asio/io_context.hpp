// In the place of Asio's io_context: a queue of handlers, for the scheduler. Only one thread may drive it, as
// src/api/runtime/loop promises.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "threads/scheduler.hpp"

namespace boost::asio {

class io_context {
public:
    using executor_type = io_context*;

    std::size_t run_one() {
        const driving now(*this);
        interleaving::step_when([this] { return !ready_.empty(); });
        return run_first();
    }
    std::size_t poll_one() {
        const driving now(*this);
        interleaving::step();
        return ready_.empty() ? 0 : run_first();
    }
    std::size_t poll() {
        std::size_t ran = 0;
        while (poll_one() > 0) ++ran;
        return ran;
    }
    void add(std::function<void()> handler) {
        interleaving::step();
        ready_.push_back(std::move(handler));
    }

private:
    class driving {
    public:
        explicit driving(io_context& what) : what_(what) {
            interleaving::require(!what_.is_driven_, "two threads drive the loop");
            what_.is_driven_ = true;
        }
        ~driving() { what_.is_driven_ = false; }
        driving(const driving&) = delete;
        driving& operator=(const driving&) = delete;

    private:
        io_context& what_;
    };

    std::size_t run_first() {
        const std::function<void()> first = std::move(ready_.front());
        ready_.pop_front();
        first();
        return 1;
    }

    std::deque<std::function<void()>> ready_;
    bool is_driven_ = false;
};

}  // namespace boost::asio
