// What a semaphore should do, in C++, written from the requirement (R53) and the design (§6).
//
// The model adds up everything at every step and keeps plain lists. The scripts keep a sum and check only what may have
// changed. The tests compare the two: answers, messages, every byte and every expiry of the keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server_model/value.hpp"

namespace holdfast::testing {

// One step, as it is given to the model and to the server.
struct semaphore_step {
    enum class kind { acquire, release, renew, resize };

    kind what = kind::acquire;
    std::string id{};  // resize: the name of the new version
    std::int64_t declared = 4;
    std::int64_t permits = 1;    // acquire
    std::int64_t new_limit = 4;  // resize
    std::string replaces{};      // resize
    std::int64_t lease_ms = 60'000;
    std::uint64_t floor = 0;
    std::string channel{};     // empty: does not wait
    std::string ticket = "0";  // of an earlier answer
    std::uint64_t token = 0;   // release: the grant that is meant
    std::int64_t interval_ms = 10'000;
    std::int64_t keep_ms = 61'000;
    std::int64_t retention_ms = 3'600'000;
};

struct semaphore_keys {
    std::string lock, queue, waiters, fence, leases, grants;
};

class semaphore_model {
public:
    using message = std::pair<std::string, std::string>;  // channel, text

    explicit semaphore_model(std::int64_t now_us) : now_us_(now_us) {}

    void set_time(std::int64_t now_us);
    /// As real_server::move_to_clock(), to a clock that is ahead: every life goes on for as long as it would have.
    void move_to_clock(std::int64_t now_us);
    void listen(const std::string& channel) { listened_.insert(channel); }

    sim::value run(const semaphore_step& step);

    /// As real_server::dump() prints it.
    std::string dump(const semaphore_keys& keys) const;
    /// What listeners got since the last call, in order.
    std::vector<message> take_messages() { return std::exchange(messages_, {}); }

    // For tests to make plausible steps, and to check the model itself.
    std::uint64_t token_of(const std::string& id) const;
    std::string ticket_of(const std::string& id) const;
    std::string version() const { return limit_ ? limit_->version : ""; }
    std::int64_t present_limit() const { return limit_ ? limit_->present : 0; }
    std::int64_t out() const;
    std::size_t in_queue() const { return queue_.size(); }

private:
    struct limit_facts {
        std::int64_t declared;
        std::int64_t present;
        std::string version{};
        std::int64_t until_ms = 0;
        std::int64_t out = 0;  // as it is written down
    };
    struct hold {
        std::int64_t permits;
        std::uint64_t token;
        std::int64_t until_ms;  // the first millisecond in which it is over
    };
    struct waiter {
        std::int64_t ticket;
        semaphore_step wants;
        std::int64_t seen_us;
    };

    std::int64_t now_ms() const { return now_us_ / 1000; }
    std::int64_t first_deadline() const;
    std::int64_t last_deadline() const;
    void forget_what_expired();
    void remove_what_is_over();
    void settle(const semaphore_step& step);

    std::vector<std::string> in_order() const;
    bool is_alive(const waiter& one) const;
    std::string enqueue(const semaphore_step& step);
    void step_out(const std::string& id);
    void serve(const semaphore_step& step);
    void hurry_first(std::int64_t within_ms);
    void publish(const std::string& channel, std::string text);
    std::uint64_t take_token(std::uint64_t floor);
    void remember_mark(std::int64_t retention_ms);
    void admit(const semaphore_step& wants);

    sim::value acquire(const semaphore_step& step);
    sim::value release(const semaphore_step& step);
    sim::value renew(const semaphore_step& step);
    sim::value resize(const semaphore_step& step);
    sim::value granted(const semaphore_step& step);
    sim::value refused(const semaphore_step& step, std::string_view why, std::optional<std::int64_t> number);
    std::vector<sim::value> standing() const;  // ms left, holder, ms until the first may be gone

    std::int64_t now_us_;
    std::set<std::string> listened_;
    std::vector<message> messages_;

    std::optional<limit_facts> limit_;
    std::map<std::string, hold> holds_;
    std::map<std::string, waiter> queue_;
    std::int64_t queue_until_ms_ = 0;
    bool first_has_left_ = false;

    std::uint64_t mark_ = 0;  // the last token
    std::int64_t mark_until_ms_ = 0;
};

}  // namespace holdfast::testing
