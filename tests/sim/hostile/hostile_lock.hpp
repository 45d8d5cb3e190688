// A lock whose keys hold whatever somebody has written there: strings, hashes, sorted sets and sets with members and
// values that are nearly right, or not at all.
//
// A case is drawn from bytes: contents, script calls as clients make them, and pauses. It runs on anything that answers
// commands and whose clock can be moved: the model of a server, or a real one.
//
// What must hold:
//  (1) A script ends, with a reply of its kind or with a clear error: the server's WRONGTYPE, or one that names
//      holdfast. It never fails in the middle for a reason of Lua's.
//  (2) Scripts never block a lock that the contents alone would not block: if after the end of all leases a fresh
//      client could acquire it, it can also do so when scripts have run on the contents; and it can release and acquire
//      again. Not where somebody has written a lease that ends in thousands of years: it counts, although the key that
//      it is in would have expired before, if no script had used the lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server_model/value.hpp"
#include "support/choices.hpp"
#include "wire/keys.hpp"
#include "wire/kind.hpp"

namespace holdfast::sim {

using call_words = std::vector<std::string>;

class hostile_server {
public:
    virtual value run(const call_words& command) = 0;
    virtual void pass(std::chrono::milliseconds time) = 0;

protected:
    ~hostile_server() = default;
};

class hostile_lock {
public:
    /// The server's time when a case begins.
    static constexpr std::int64_t begin_us = 1'800'000'000'000'000;

    explicit hostile_lock(fuzz::choices choose);

    /// Empties the server, and plays the case on it. Returns what is broken; empty: nothing.
    std::string play(hostile_server& on) const;
    /// For messages: everything that is done.
    std::string describe() const;

private:
    struct step {
        std::chrono::milliseconds pause{0};  // before it
        call_words call;
    };
    // Whether a fresh client acquires the lock when all leases are over.
    enum class ending : std::uint8_t { free, blocked, refused_by_an_error };

    void draw_key(fuzz::choices& choose, const std::string& key);
    std::string value_of(fuzz::choices& choose) const;
    std::string field_of(fuzz::choices& choose) const;
    std::string score_of(fuzz::choices& choose) const;
    std::string id_of(fuzz::choices& choose) const;
    call_words call_of(fuzz::choices& choose) const;
    template <class Request>
    call_words call_with(const Request& request, fuzz::choices& choose) const;
    wire::lock_terms terms() const { return {.keys = keys_, .kind = kind_, .fence_retention = retention, .limit = 2}; }
    call_words fresh_acquire(std::string_view id, std::string_view ticket) const;

    void fill(hostile_server& on) const;
    ending end_of(hostile_server& on, std::string& what) const;

    static constexpr std::chrono::milliseconds retention{3'600'000};

    wire::lock_kind kind_ = wire::lock_kind::mutex;
    wire::lock_keys keys_;
    wire::lock_keys other_;  // that is taken together with it
    std::vector<std::string> ids_;
    std::string noted_id_;
    std::vector<call_words> contents_;
    bool has_endless_lease_ = false;
    std::vector<step> steps_;
};

}  // namespace holdfast::sim
