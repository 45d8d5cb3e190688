// The complete state of one read-write lock on a server, at one moment.
//
// It has two descriptions of the holders, kept apart on purpose: the hash, which foreign clients read and write too,
// and our own leases and grants. The checker decides whether they agree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/keys.hpp"
#include "wire/requests.hpp"
#include "world/server.hpp"

namespace holdfast::sim {

struct rw_state {
    struct grant {
        char shape = 0;  // r, w or b; 0: malformed
        std::uint64_t token = 0;
        bool lost = false;  // the scripts have noticed that it was missing in the hash
    };
    struct waiter {
        std::string id;
        char wants = 0;  // r, w or u; 0: malformed
    };

    // The hash.
    bool exists = false;
    std::string mode;
    std::string rcount;
    std::string writer;
    std::string wcount;
    std::map<std::string, std::int64_t, std::less<>> readers;  // by id, with their counts
    std::int64_t expires_ms = no_expiry;

    // Our own keys.
    std::map<std::string, std::int64_t, std::less<>> leases;  // by id, the deadline in server ms
    std::map<std::string, grant, std::less<>> grants;
    std::int64_t leases_expire_ms = no_expiry;
    std::int64_t grants_expire_ms = no_expiry;

    std::vector<waiter> queue;
    std::string fence;
    std::int64_t now_ms = 0;
    std::int64_t gap_until_ms = 0;  // until then the lock is left to foreign clients

    /// What this id holds by lease and grant: r, w, b, or 0 for nothing.
    char held(const std::string& id) const;
    std::uint64_t token_of(const std::string& id) const;
    /// True if the id has a living lease and grant, and the hash lacks what the grant says, or did so for a while.
    bool is_lost(const std::string& id) const;
    /// What this id holds according to the hash: r, w, b or 0.
    char in_hash(const std::string& id) const;
    const waiter* find_waiter(const std::string& id) const;
};

rw_state read_rw_state(server& from, const wire::lock_keys& keys);

/// The end of the lock's gap for foreign clients, by the server's clock; 0: no gap. See common/gap.lua.
std::int64_t gap_end_us(server& at, const std::string& gap_key);

inline bool has_read(char shape) {
    return shape == 'r' || shape == 'b';
}
inline bool has_write(char shape) {
    return shape == 'w' || shape == 'b';
}

}  // namespace holdfast::sim
