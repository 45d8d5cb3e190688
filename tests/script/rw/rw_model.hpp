// What a read-write lock should do, in C++, written from the requirements (R20-R33) and the design (§4-§6).
//
// The model checks everything at every step and keeps plain lists: it is as slow and as simple as possible. The scripts
// keep counts and check only what may have changed. The tests compare the two: answers, messages, every byte and every
// expiry of the keys.
//
// It knows three things: the hash, which other programs write, too; our holds, each with its own deadline; and the
// queue. Every step of ours first corrects what disagrees between the hash and our holds (R33).
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
struct rw_step {
    enum class kind {
        acquire,
        release,
        renew,
        cancel,
        // Another program's, by the flow charts of 000 and 002.
        foreign_read,
        foreign_write,
        foreign_stop_reading,
        foreign_stop_writing,
        foreign_renew_reading,
        foreign_renew_writing,
    };

    kind what = kind::acquire;
    std::string id{};
    char wants = 'r';  // acquire: r, w, u
    std::string prefer = "arrival";
    std::int64_t lease_ms = 60'000;
    std::uint64_t floor = 0;
    std::string channel{};     // empty: does not wait
    std::string ticket = "0";  // of an earlier answer
    std::uint64_t token = 0;   // release: the grant that is meant; u: the one that is to be upgraded
    std::string left_over{};   // release: empty, r or w
    std::int64_t interval_ms = 10'000;
    std::int64_t keep_ms = 61'000;
    std::int64_t retention_ms = 3'600'000;
};

struct rw_keys {
    std::string lock, queue, waiters, fence, leases, grants;
};

class rw_model {
public:
    using message = std::pair<std::string, std::string>;  // channel, text

    explicit rw_model(std::int64_t now_us) : now_us_(now_us) {}

    void set_time(std::int64_t now_us);
    /// As real_server::move_to_clock(), to a clock that is ahead: every life goes on for as long as it would have.
    void move_to_clock(std::int64_t now_us);
    void listen(const std::string& channel) { listened_.insert(channel); }

    sim::value run(const rw_step& step);
    /// Evicted, or expired by another program's hand.
    void lose_hash() { hash_ = {}; }

    /// As real_server::dump() prints it.
    std::string dump(const rw_keys& keys) const;
    /// What listeners got since the last call, in order.
    std::vector<message> take_messages() { return std::exchange(messages_, {}); }

    // For tests to make plausible steps.
    std::uint64_t token_of(const std::string& id) const;
    std::string ticket_of(const std::string& id) const;
    std::size_t in_queue() const { return queue_.size(); }
    std::size_t holders() const;
    bool is_written() const { return !hash_.writer.empty(); }

private:
    struct hash {
        std::vector<std::pair<std::string, int>> readers;  // in the order in which they came
        std::string writer;
        int writer_count = 0;
        std::optional<std::int64_t> until_ms;  // none: no expiry
        bool theirs = false;                   // its expiry was set by another program

        bool exists() const { return !readers.empty() || !writer.empty(); }
        bool is_read_by(const std::string& id) const;
        void remove_reader(const std::string& id);
        void remove(const std::string& id);
    };
    struct hold {
        char shape;  // r, w or b
        std::uint64_t token;
        std::int64_t until_ms;  // the first millisecond in which it is over
        bool lost = false;      // it was missing in the hash: nobody knows who else was there
    };
    struct waiter {
        std::int64_t ticket;
        rw_step wants;
        std::int64_t seen_us;
        bool in_front() const { return wants.wants == 'u'; }
        std::int64_t score() const;
    };
    struct foreign_holder {
        std::string name;
        std::optional<std::int64_t> until_ms;
    };
    struct candidate {
        std::string id;
        waiter as;
        char shape;
    };
    struct served {
        char blocked_for = 0;  // w or u: the first who may not come in wants that
        std::string blocked_by{};
    };

    std::int64_t now_ms() const { return now_us_ / 1000; }
    void forget_what_expired();

    // --- the holders
    void put_right();
    void look_at_foreign_fields();
    void restore_ours();
    void put_in(const std::string& id, char shape);
    void take_out(const std::string& id);
    void admit(const std::string& id, char shape, std::int64_t lease_ms, std::uint64_t floor);
    void refresh(const std::string& id, char shape, std::int64_t lease_ms);
    void write_down();
    bool is_held_by(const std::string& id) const { return holds_.contains(id) && !holds_.at(id).lost; }
    bool is_lost_by(const std::string& id) const { return holds_.contains(id) && holds_.at(id).lost; }
    std::string foreign_counts() const;
    void note_cut();
    bool is_sole_reader(const std::string& id) const;
    std::set<std::pair<std::int64_t, std::string>> deadlines() const;

    // --- the queue
    std::vector<std::string> in_order() const;
    bool is_alive(const waiter& one) const;
    std::string enqueue(const rw_step& step);
    void step_out(const std::string& id);
    served serve(const rw_step& step);
    std::vector<candidate> whose_turn_it_is(const rw_step& step, served& out);
    void let_in(const rw_step& step, const std::vector<candidate>& coming);
    void hurry_first(std::int64_t within_ms);
    void publish(const std::string& channel, std::string text);
    void remember_mark(std::int64_t retention_ms);

    // --- the steps
    sim::value acquire(const rw_step& step);
    sim::value release(const rw_step& step);
    sim::value renew(const rw_step& step);
    sim::value cancel(const rw_step& step);
    sim::value foreign(const rw_step& step);
    sim::value granted(const rw_step& step, char shape);
    sim::value has_it(std::uint64_t token) const;
    sim::value with_cut(sim::value answer) const;
    sim::value refused(const rw_step& step, std::string_view why);
    sim::value others_hold(const rw_step& step);
    std::vector<sim::value> standing(
        const std::string& caller) const;  // ms left, holder, ms until the first may be gone

    std::int64_t now_us_;
    std::set<std::string> listened_;
    std::vector<message> messages_;

    hash hash_;
    std::map<std::string, hold> holds_;
    std::optional<std::int64_t> foreign_until_;  // as it is written down among the leases
    std::string foreign_counts_;                 // as they are written down among the grants, with foreign_until_
    std::optional<foreign_holder> foreign_;      // as found by this step
    bool others_changed_ = false;                // this step found somebody dead, lost or missing
    bool wrote_ = false;                         // this step changes holders
    bool somebody_left_ = false;                 // this step took a holder of ours out
    std::optional<std::int64_t> cut_ms_;         // left of an expiry that another program made shorter than our leases

    std::map<std::string, waiter> queue_;
    std::int64_t queue_until_ms_ = 0;
    bool first_has_left_ = false;
    bool answer_tells_ = true;  // what the caller was given from its place in the queue

    std::uint64_t mark_ = 0;  // the last token
    std::int64_t mark_until_ms_ = 0;
};

}  // namespace holdfast::testing
