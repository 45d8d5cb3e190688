// The bench for the mutex scripts: a server of the test's own and the lock's four keys.
//
// No row waits for time to pass. Leases are long; a lease "ends" when its key is removed, a waiter "has not
// polled" when its entry is written with an older time.
#pragma once

#include "script/script_fixture.hpp"

namespace holdfast::testing {

// {0, left, holder} of acquire; {-1, left, holder} of release and renew.
MATCHER_P3(IsRefused, verdict, left, holder, "names the holder and what its lease has left") {
    return arg.elements.size() == 3 && arg.elements[0].integer == verdict &&
           ::testing::ExplainMatchResult(left, arg.elements[1].integer, result_listener) &&
           arg.elements[2].text == holder;
}
MATCHER_P2(IsQueued, holder, position, "is {2, left, holder, ticket, position, fence}") {
    return arg.elements.size() == 6 && arg.elements[0].integer == 2 && arg.elements[2].text == holder &&
           arg.elements[4].integer == position;
}

class script_rows : private own_server, public script_fixture {
protected:
    // What a waiter asks for; the defaults are those of a lock with a lease of one minute.
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

    explicit script_rows(server_options options = {}, const std::vector<std::string>& more_keys = {})
        : own_server{std::move(options)}, script_fixture{running.unix_path(), more_keys} {}

    bool is_raw = false;  // other programs use the lock, too
    std::vector<std::string> keys() const {
        std::vector<std::string> all{lock, queue, waiters, fence};
        if (is_raw) all.push_back(lock + ":gap");
        return all;
    }

    // --- the scripts ---------------------------------------------------------------------------------
    redis_reply acquire(const std::string& id) { return acquire(id, asking{}); }
    redis_reply acquire(const std::string& id, const asking& terms) {
        return run("mutex/acquire", keys(),
                   {id, text(terms.lease), terms.floor, text(terms.retention), terms.channel, terms.ticket,
                    text(terms.interval), text(terms.queue_retention), terms.proposal});
    }
    // waits, listened for on wake:<id> if the test made such a listener.
    redis_reply wait(const std::string& id) { return wait(id, asking{}); }
    redis_reply wait(const std::string& id, asking terms) {
        terms.channel = "wake:" + id;
        return acquire(id, terms);
    }
    redis_reply release(const std::string& id, const std::string& token) {
        return run("mutex/release", keys(), {id, token, text(hour)});
    }
    redis_reply renew(const std::string& id, std::int64_t lease) {
        return run("mutex/renew", {lock}, {id, text(lease)});
    }

    // Acquires a lock that nobody else wants; its token.
    std::string hold(const std::string& id) {
        const redis_reply reply = acquire(id);
        if (reply.elements.size() != 2 || reply.elements[0].integer != 1) {
            throw std::runtime_error{id + " did not get the lock"};
        }
        return reply.elements[1].text;
    }

    void lease_ends() { must({"PEXPIRE", lock, "0"}); }

    // The caller has the lock, with the token that the mark remembers.
    void expect_granted(const redis_reply& reply) { EXPECT_THAT(reply, IsGranted(value(fence))); }

    redis_server& server() { return running; }
};

}  // namespace holdfast::testing
