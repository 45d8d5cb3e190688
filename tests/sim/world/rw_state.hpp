// All that the server has of one read-write lock, as it stands at one moment.
//
// Two descriptions of the same thing, kept apart on purpose: the hash, which other programs read and write too, and our
// own leases and grants. Whether they agree is for the checker to say.
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
        char shape = 0;  // r, w or b; 0: nonsense
        std::uint64_t token = 0;
        bool lost = false;  // the scripts have found that it was missing in the hash
    };
    struct waiter {
        std::string id;
        char wants = 0;  // r, w or u; 0: nonsense
    };

    // the hash
    bool exists = false;
    std::string mode;
    std::string rcount;
    std::string writer;
    std::string wcount;
    std::map<std::string, std::int64_t, std::less<>> readers;  // by id, with their counts
    std::int64_t expires_ms = no_expiry;

    // ours
    std::map<std::string, std::int64_t, std::less<>> leases;  // by id, the deadline in server ms
    std::map<std::string, grant, std::less<>> grants;
    std::int64_t leases_expire_ms = no_expiry;
    std::int64_t grants_expire_ms = no_expiry;

    std::vector<waiter> queue;
    std::string fence;
    std::int64_t now_ms = 0;
    std::int64_t gap_until_ms = 0;  // until then the lock is left to other programs

    /// What this id holds by its lease and grant: r, w, b, or 0 for nothing.
    char held(const std::string& id) const;
    std::uint64_t token_of(const std::string& id) const;
    /// It has a living lease and a grant, and what the grant says is not in the hash, or was not for a while.
    bool is_lost(const std::string& id) const;
    /// What it is in the hash: r, w, b or 0.
    char in_hash(const std::string& id) const;
    const waiter* find_waiter(const std::string& id) const;
};

rw_state read_rw_state(server& from, const wire::lock_keys& keys);

/// When the gap of a lock ends, by the server's clock; 0: there is none. See common/gap.lua.
std::int64_t gap_end_us(server& at, const std::string& gap_key);

inline bool has_read(char shape) {
    return shape == 'r' || shape == 'b';
}
inline bool has_write(char shape) {
    return shape == 'w' || shape == 'b';
}

}  // namespace holdfast::sim
