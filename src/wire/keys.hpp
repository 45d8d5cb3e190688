// The names of everything in Redis: the keys of a lock, the channels of a client, the card of a client.
//
// All keys of a lock hash to one Cluster slot, because every script touches several of them: see
// redis/slots/hash_slot.hpp.
#pragma once

#include <boost/container/static_vector.hpp>

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/session/command_writer.hpp"
#include "redis/slots/hash_slot.hpp"

namespace holdfast::wire {

// A name as the user gave it. Its own type, so that it is never swapped with a hold id or a key.
class lock_name {
public:
    explicit lock_name(std::string text) : text_(std::move(text)) {}
    const std::string& text() const noexcept { return text_; }
    friend auto operator<=>(const lock_name&, const lock_name&) = default;

private:
    std::string text_;
};

enum class key_naming {
    tagged,  // <prefix>{name}, <prefix>{name}:queue, ...
    raw,     // name itself, {name}:queue, ...: the key that other programs use
};

inline constexpr std::string_view default_prefix = "hf:";

// The keys of one lock. The object stores the lock's own key only, because a program may have a hundred thousand of
// them; each side key is that key with an ending.
class lock_keys {
public:
    // Only a read-write lock has leases and grants. Only a lock whose key other programs use has a gap. Only a lock
    // some of whose holders or waiters have notes has notes.
    enum class side : std::uint8_t { queue, waiters, fence, leases, grants, gap, notes };

    lock_keys() = default;
    lock_keys(const lock_name& name, key_naming naming, std::string_view prefix);

    // The name that the user gave.
    std::string_view name() const noexcept { return std::string_view(lock_).substr(name_at_, name_size_); }
    const std::string& lock() const noexcept { return lock_; }
    // The key is the name itself, so other programs may use it.
    bool is_raw() const noexcept { return name_at_ == 0; }
    std::string queue() const { return whole(side::queue); }
    std::string waiters() const { return whole(side::waiters); }
    std::string fence() const { return whole(side::fence); }
    std::string leases() const { return whole(side::leases); }
    std::string grants() const { return whole(side::grants); }
    std::string gap() const { return whole(side::gap); }
    std::string notes() const { return whole(side::notes); }
    // A side key as an argument of a command; no string is made.
    redis::argument argument_for(side which) const noexcept;

private:
    std::string whole(side which) const;

    std::string lock_;
    std::uint16_t name_at_ = 0;  // position of the name in lock_
    std::uint16_t name_size_ = 0;
    bool in_braces_ = false;  // {lock}:queue, because without braces the side keys would hash to other slots
};

// Throws holdfast::error: errc::bad_option if the prefix is too long, errc::bad_name if the name is empty, too long, or
// has braces that would put its keys into different slots.
lock_keys make_keys(const lock_name& name, key_naming naming, std::string_view prefix);

// The locks that a key of the server may belong to. A search for locks reads them from the keys that it finds.
struct key_owner {
    std::string_view name;
    key_naming naming = key_naming::tagged;
};
boost::container::static_vector<key_owner, 2> owners_of(std::string_view key, std::string_view prefix);
// The side key that ends like this key; nothing for any other key.
std::optional<lock_keys::side> side_of(std::string_view key) noexcept;

// The wake-up channel of a client on one server: hf:wake:<client>.
std::string channel_of(std::string_view client);
// The wake-up channel of a client on a Cluster: hf:wake:{tag}:<client>, a sharded channel in the lock's own slot, one
// for each tag. The scripts tell it from the other one by the brace.
std::string channel_of(const lock_keys& lock, std::string_view client);
// Where a client publishes before WAIT. Nobody subscribes to it.
std::string ack_channel_of(std::string_view client);

// The card of a client: a hash in which it says who it is, for tools. No lock depends on it. Every client writes its
// card when a link comes up and again before it expires.
std::string card_key_of(std::string_view client);
struct client_facts {
    std::string host;
    std::string pid;
    std::string program;
    std::string user;
};
// The fields of the hash, in the order of client_facts.
inline constexpr std::array<std::string_view, 4> card_fields{"host", "pid", "program", "user"};
inline constexpr std::chrono::seconds card_lives_for{90};

using redis::hash_tag;

}  // namespace holdfast::wire
