// The fixture for the read-write scripts: a server whose clock the test sets, and the lock's six keys.
//
// The clock stands still until a row moves it. So every expiry is known to the millisecond, a lease ends exactly when
// the row says so, and no row waits.
#pragma once

#include <map>
#include <optional>

#include "script/script_fixture.hpp"
#include "server_model/differential/real_server.hpp"

namespace holdfast::testing {

// A hold id of our form that a reader of the test can tell from others.
inline std::string hold_id(const std::string& name) {
    return "hf_" + name + std::string(16 - name.size(), '0') + ".1.0123456789abcdefghijkl";
}

MATCHER_P3(IsRefusedFor, why, left, holder, "is {0, left, holder, why}") {
    return arg.elements.size() == 4 && arg.elements[0].integer == 0 && arg.elements[1].integer == left &&
           arg.elements[2].text == holder && arg.elements[3].text == why;
}
MATCHER_P2(IsHeldByOthers, left, holder, "is {-1, left, holder}") {
    return arg.elements.size() == 3 && arg.elements[0].integer == -1 && arg.elements[1].integer == left &&
           arg.elements[2].text == holder;
}
MATCHER_P3(IsQueued, holder, position, soonest, "is {2, left, holder, ticket, position, fence, soonest}") {
    return arg.elements.size() == 7 && arg.elements[0].integer == 2 && arg.elements[2].text == holder &&
           arg.elements[4].integer == position && arg.elements[6].integer == soonest;
}
MATCHER_P2(Holds, shape, token, "is {1, shape, token}") {
    return arg.elements.size() == 3 && arg.elements[0].integer == 1 && arg.elements[1].text == shape &&
           arg.elements[2].text == token;
}
// As above, where another program has cut the hash's expiry and so much of it was left.
MATCHER_P2(IsGrantedBesideACut, token, left, "is {1, token, '', left}") {
    return arg.elements.size() == 4 && arg.elements[0].integer == 1 && arg.elements[1].text == token &&
           arg.elements[2].text.empty() && arg.elements[3].integer == left;
}
MATCHER_P4(IsQueuedBesideACut, holder, position, soonest, left,
           "is {2, left, holder, ticket, place, fence, soonest, '', left}") {
    return arg.elements.size() == 9 && arg.elements[0].integer == 2 && arg.elements[2].text == holder &&
           arg.elements[4].integer == position && arg.elements[6].integer == soonest && arg.elements[7].text.empty() &&
           arg.elements[8].integer == left;
}
MATCHER_P3(HoldsBesideACut, shape, token, left, "is {1, shape, token, left}") {
    return arg.elements.size() == 4 && arg.elements[0].integer == 1 && arg.elements[1].text == shape &&
           arg.elements[2].text == token && arg.elements[3].integer == left;
}
MATCHER_P2(IsReleased, waiting, holding, "is {1, waiters left, holders left}") {
    return arg.elements.size() == 3 && arg.elements[0].integer == 1 && arg.elements[1].integer == waiting &&
           arg.elements[2].integer == holding;
}
MATCHER_P(IsVerdict, verdict, "is a list of the verdict alone") {
    return arg.elements.size() == 1 && arg.elements[0].integer == verdict;
}

// Made before the bench that works on it.
struct clocked_server {
    static constexpr std::int64_t start_us = 1'800'000'000'123'456;
    std::int64_t now_us = start_us;
    sim::real_server clocked{HOLDFAST_SIM_CLOCK_MODULE, start_us};
};

class rw_rows : private clocked_server, public script_fixture {
protected:
    using fields = std::map<std::string, std::string>;

    const std::string leases = "hf:{stock}:leases";
    const std::string grants = "hf:{stock}:grants";
    const std::string ann = hold_id("ann"), bob = hold_id("bob"), cid = hold_id("cid"), dan = hold_id("dan");

    std::string prefer = "arrival";

    struct asking {
        std::int64_t lease = minute;
        std::string floor = "0";
        std::string channel = {};
        std::string ticket = "0";
        std::int64_t interval = 10'000;
        std::int64_t queue_retention = 61'000;
        std::int64_t retention = hour;
        std::string proposal = "0";
    };

    explicit rw_rows(std::vector<std::string> more_keys = {})
        : script_fixture{clocked.unix_path(), with(std::move(more_keys))} {}

    // --- the scripts ---------------------------------------------------------------------------------
    enum class wish : char { read = 'r', write = 'w', upgrade = 'u' };

    redis_reply acquire(const std::string& id, wish wants, const asking& terms, const std::string& upgraded = "0") {
        return run("rw/acquire", keys(),
                   {id, text(terms.retention), prefer, std::string(1, static_cast<char>(wants)), text(terms.lease),
                    terms.floor, terms.channel, terms.ticket, text(terms.interval), text(terms.queue_retention),
                    upgraded, terms.proposal});
    }
    redis_reply read(const std::string& id) { return acquire(id, wish::read, {}); }
    redis_reply read(const std::string& id, const asking& terms) { return acquire(id, wish::read, terms); }
    redis_reply write(const std::string& id) { return acquire(id, wish::write, {}); }
    redis_reply write(const std::string& id, const asking& terms) { return acquire(id, wish::write, terms); }
    redis_reply upgrade(const std::string& id, const std::string& token) {
        return acquire(id, wish::upgrade, {}, token);
    }

    // Each waits, listened for on wake:<id> if the test made such a listener.
    redis_reply wait_to(wish wants, const std::string& id, asking terms, const std::string& upgraded = "0") {
        if (terms.channel.empty()) terms.channel = "wake:" + id;
        return acquire(id, wants, terms, upgraded);
    }
    redis_reply wait_to_read(const std::string& id) { return wait_to(wish::read, id, {}); }
    redis_reply wait_to_write(const std::string& id) { return wait_to(wish::write, id, {}); }
    redis_reply wait_to_upgrade(const std::string& id, const std::string& token) {
        return wait_to(wish::upgrade, id, {}, token);
    }

    redis_reply release(const std::string& id, const std::string& token) { return leave(id, token, ""); }
    redis_reply downgrade(const std::string& id, const std::string& token) { return leave(id, token, "r"); }
    redis_reply stop_reading(const std::string& id, const std::string& token) { return leave(id, token, "w"); }
    redis_reply leave(const std::string& id, const std::string& token, const std::string& left_over) {
        return run("rw/release", keys(), {id, text(hour), prefer, token, left_over, text(minute)});
    }
    redis_reply renew(const std::string& id, std::int64_t lease = minute) {
        return run("rw/renew", keys(), {id, text(hour), prefer, text(lease)});
    }
    redis_reply cancel(const std::string& id) { return run("rw/cancel", keys(), {id, text(hour), prefer}); }

    // Acquires what nobody forbids; the token.
    std::string reads(const std::string& id, std::int64_t lease = minute) {
        return token(read(id, {.lease = lease}), id);
    }
    std::string writes(const std::string& id, std::int64_t lease = minute) {
        return token(write(id, {.lease = lease}), id);
    }
    std::string upgraded(const std::string& id, const std::string& read_token) {
        return token(upgrade(id, read_token), id);
    }

    // --- the world around ----------------------------------------------------------------------------
    void pass(std::int64_t ms) {
        now_us += ms * 1000;
        clocked.set_time(now_us);
    }
    // A Cluster moves the lock to a member whose clock is ahead by so much, or behind.
    void moves_to_clock_ahead_by(std::int64_t ms) {
        now_us += ms * 1000;
        clocked.move_to_clock(now_us);
    }
    std::int64_t now_ms() const { return now_us / 1000; }
    std::int64_t clock_us() const { return now_us; }

    // --- looking -------------------------------------------------------------------------------------
    fields hash(const std::string& key) {
        const auto all = texts(must({"HGETALL", key}));
        fields out;
        for (std::size_t i = 0; i + 1 < all.size(); i += 2) out[all[i]] = all[i + 1];
        return out;
    }
    fields held() { return hash(lock); }
    std::int64_t deadline(const std::string& id) {
        const redis_reply score = must({"ZSCORE", leases, id});
        return score.is_nil() ? 0 : std::stoll(score.text);
    }
    std::string grant_of(const std::string& id) { return must({"HGET", grants, id}).text; }

    // What the hash says of so many readers who are all ours.
    static fields read_by(const std::vector<std::string>& ids) {
        fields all{{"mode", "read"}, {"rcount", std::to_string(ids.size())}};
        for (const std::string& id : ids) all["r:" + id] = "1";
        return all;
    }
    static fields written_by(const std::string& id) { return {{"mode", "write"}, {"writer", id}, {"wcount", "1"}}; }
    static fields read_and_written_by(const std::string& id) {
        fields all = written_by(id);
        all["rcount"] = all["r:" + id] = "1";
        return all;
    }

    std::vector<std::string> keys() const { return {lock, queue, waiters, fence, leases, grants}; }

private:
    static std::vector<std::string> with(std::vector<std::string> keys) {
        keys.insert(keys.end(), {"hf:{stock}:leases", "hf:{stock}:grants"});
        return keys;
    }
    static std::string token(const redis_reply& reply, const std::string& id) {
        if (reply.elements.size() < 2 || reply.elements[0].integer != 1) {
            throw std::runtime_error{id + " did not get the lock"};
        }
        return reply.elements[1].text;
    }
};

}  // namespace holdfast::testing
