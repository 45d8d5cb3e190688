// Included before everything else in a file that is explored: the product's own sources, compiled again for the tests.
// Their std::mutex, std::atomic, std::condition_variable and std::thread are those of this file, whose operations are
// steps of the scheduler. The product's code knows nothing of it.
//
// The standard headers, and others that must see the real ones, are included first.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <bitset>
#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>
#include <boost/functional/hash.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <ostream>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "threads/scheduler.hpp"

namespace explored_std {

using namespace ::std;

/// Notices that it is used when it is gone.
class alive {
public:
    alive() = default;
    alive(const alive&) = delete;
    alive& operator=(const alive&) = delete;
    ~alive() { mark_ = 0; }
    void check() const { interleaving::require(mark_ == living, "something is used when it is gone"); }

private:
    static constexpr std::uint64_t living = 0x616c697665616c69;
    volatile std::uint64_t mark_ = living;
};

class mutex {
public:
    void lock() {
        alive_.check();
        interleaving::step_when([this] { return !is_held_; });
        alive_.check();
        is_held_ = true;
    }
    void unlock() {
        alive_.check();
        interleaving::require(is_held_, "a mutex is unlocked that nobody has");
        is_held_ = false;
    }
    bool is_held() const { return is_held_; }

private:
    alive alive_;
    bool is_held_ = false;
};

/// Wakes in the order of sleeping, and never without a reason.
class condition_variable {
public:
    void wait(unique_lock<mutex>& held) { sleep(held, false); }
    template <class Duration>
    void wait_for(unique_lock<mutex>& held, const Duration&) {
        sleep(held, true);
    }
    void notify_one() noexcept {
        interleaving::step();
        if (!asleep_.empty()) asleep_.erase(asleep_.begin());
    }
    void notify_all() noexcept {
        interleaving::step();
        asleep_.clear();
    }

private:
    void sleep(unique_lock<mutex>& held, bool wakes_by_time) {
        const std::uint64_t mine = ++last_;
        asleep_.push_back(mine);
        held.mutex()->unlock();
        const auto is_awake = [this, mine] { return find(asleep_.begin(), asleep_.end(), mine) == asleep_.end(); };
        if (wakes_by_time) {
            if (!interleaving::step_when_or_late(is_awake)) erase(asleep_, mine);
        } else {
            interleaving::step_when(is_awake);
        }
        held.mutex()->lock();
    }

    std::uint64_t last_ = 0;
    vector<std::uint64_t> asleep_;
};

template <class T>
class atomic {
public:
    using value_type = T;

    constexpr atomic() noexcept = default;
    constexpr atomic(T value) noexcept : value_(value) {}
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    T load(memory_order = memory_order_seq_cst) const noexcept {
        touch();
        return value_;
    }
    void store(T value, memory_order = memory_order_seq_cst) noexcept {
        touch();
        value_ = value;
    }
    T exchange(T value, memory_order = memory_order_seq_cst) noexcept {
        touch();
        return ::std::exchange(value_, value);
    }
    bool compare_exchange_strong(T& expected, T wanted, memory_order = memory_order_seq_cst,
                                 memory_order = memory_order_seq_cst) noexcept {
        touch();
        if (value_ != expected) return expected = value_, false;
        value_ = wanted;
        return true;
    }
    bool compare_exchange_weak(T& expected, T wanted, memory_order one = memory_order_seq_cst,
                               memory_order other = memory_order_seq_cst) noexcept {
        return compare_exchange_strong(expected, wanted, one, other);
    }
    T fetch_add(T by, memory_order = memory_order_seq_cst) noexcept {
        touch();
        return ::std::exchange(value_, static_cast<T>(value_ + by));
    }
    T fetch_sub(T by, memory_order = memory_order_seq_cst) noexcept {
        touch();
        return ::std::exchange(value_, static_cast<T>(value_ - by));
    }
    operator T() const noexcept { return load(); }
    T operator=(T value) noexcept { return store(value), value; }
    T operator++() noexcept { return static_cast<T>(fetch_add(1) + 1); }
    T operator--() noexcept { return static_cast<T>(fetch_sub(1) - 1); }
    T operator++(int) noexcept { return fetch_add(1); }
    T operator--(int) noexcept { return fetch_sub(1); }
    T operator+=(T by) noexcept { return static_cast<T>(fetch_add(by) + by); }
    T operator-=(T by) noexcept { return static_cast<T>(fetch_sub(by) - by); }

    /// The value without a step, for what is one operation of the system.
    const T& peek() const noexcept { return value_; }
    const alive& life() const noexcept { return alive_; }

private:
    void touch() const noexcept {
        alive_.check();
        interleaving::step();
        alive_.check();
    }

    alive alive_;
    T value_{};
};

class thread {
public:
    using id = int;

    thread() = default;
    template <class Body>
    explicit thread(Body body) : number_(interleaving::start(::std::move(body))) {}
    thread(thread&& other) noexcept : number_(::std::exchange(other.number_, -1)) {}
    thread& operator=(thread&& other) noexcept {
        number_ = ::std::exchange(other.number_, -1);
        return *this;
    }
    bool joinable() const noexcept { return number_ >= 0; }
    void join() { interleaving::join(::std::exchange(number_, -1)); }
    static unsigned hardware_concurrency() noexcept { return 2; }

private:
    int number_ = -1;
};

namespace this_thread {

inline int get_id() noexcept {
    return interleaving::this_thread();
}

}  // namespace this_thread

}  // namespace explored_std

#define std explored_std
// The scheduler's threads are one thread of the system. No world asks for what such variables tell.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif
#define thread_local
