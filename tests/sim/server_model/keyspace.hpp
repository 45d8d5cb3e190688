// Keys, their values and their expiry. Time is an argument: the keyspace has no clock.
//
// An expired key does not exist for readers; it is removed at the next access (a real server's background sweep changes
// only DBSIZE, unpredictably). A replica removes nothing and only hides expired keys, because deletions come from the
// primary.
//
// Invariant: after a command no hash, sorted set or set is empty.
//
// A keyspace is a value; a copy stands for the data on disk or on a replica.
#pragma once

#include <cstdint>
#include <optional>
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

    /// Null if the key does not exist or has expired.
    entry* find(std::string_view key, instant at);
    /// Precondition: the key does not exist.
    entry& insert(std::string_view key, entry fresh);
    bool erase(std::string_view key);
    void remove_expired(instant at);
    void clear() { entries_.clear(); }

    /// The number of stored keys, including expired ones that are not removed yet: DBSIZE.
    std::size_t size() const { return entries_.size(); }
    /// The living keys, sorted.
    std::vector<const item*> living_entries(instant at) const;
    /// Of the living key that expires first; nothing: none expires.
    std::optional<std::int64_t> first_expiry_ms(instant at) const;
    /// One line per living key: name, type, expiry in absolute ms, contents in a canonical order.
    std::string dump(instant at) const;

private:
    std::unordered_map<std::string, entry, string_hash, std::equal_to<>> entries_;
};

std::string_view type_name(const entry& e);

}  // namespace holdfast::sim
