// Keys, their values and their expiry.
//
// Time is an argument: the keyspace has no clock. A key whose expiry has passed is gone for every reader, and
// is really removed when somebody looks (a real server's background sweep changes only DBSIZE, and that not
// predictably). On a replica nothing is removed; the key is only hidden, because deletions come from the primary.
//
// Invariant: no hash, sorted set or set in here is empty after a command has run.
//
// A keyspace is a value; a copy of it is what a restart finds on disk, or what a replica has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "server_model/data_types.hpp"

namespace holdfast::sim {

constexpr std::int64_t no_expiry = -1;

struct entry {
    std::variant<std::string, field_map, sorted_set, member_set> data;
    std::int64_t expires_ms = no_expiry;
};

enum class role : std::uint8_t { primary, replica };

class keyspace {
public:
    struct instant {
        std::int64_t now_ms;
        role as = role::primary;
    };

    using item = std::pair<const std::string, entry>;

    /// Null if there is no such key, or it has expired.
    entry* find(std::string_view key, instant at);
    /// The caller makes sure there is none.
    entry& insert(std::string_view key, entry fresh);
    bool erase(std::string_view key);
    void remove_expired(instant at);
    void clear() { entries_.clear(); }

    /// Keys physically here, expired ones not yet removed included: what DBSIZE says.
    std::size_t size() const { return entries_.size(); }
    /// The living keys, sorted.
    std::vector<const item*> living_entries(instant at) const;
    /// One line per living key: name, type, expiry in absolute ms, contents in an order of their own.
    std::string dump(instant at) const;

private:
    std::unordered_map<std::string, entry, string_hash, std::equal_to<>> entries_;
};

std::string_view type_name(const entry& e);

}  // namespace holdfast::sim
