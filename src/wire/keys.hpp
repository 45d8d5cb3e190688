// What is locked, and the keys that stand for it in Redis.
//
// All keys of a name hash to one Cluster slot, because every script touches several of them: see
// redis/hash_slot.hpp.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis/cluster/hash_slot.hpp"
#include "redis/session/command_writer.hpp"

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

// The keys of one lock. Kept as one text, for there may be a hundred thousand of them: the others are that with
// something behind it.
class lock_keys {
public:
    // leases and grants: of a read-write lock; gap: of a lock whose key other programs use, too
    enum class side : std::uint8_t { queue, waiters, fence, leases, grants, gap };

    lock_keys() = default;
    lock_keys(const lock_name& name, key_naming naming, std::string_view prefix);

    // As the user gave it.
    std::string_view name() const noexcept;
    const std::string& lock() const noexcept { return lock_; }
    // The key is the name itself, so other programs may use it.
    bool is_raw() const noexcept { return name_at_ == 0; }
    std::string queue() const { return whole(side::queue); }
    std::string waiters() const { return whole(side::waiters); }
    std::string fence() const { return whole(side::fence); }
    std::string leases() const { return whole(side::leases); }
    std::string grants() const { return whole(side::grants); }
    std::string gap() const { return whole(side::gap); }
    // Another key, for those who write it without making it.
    redis::argument argument_for(side which) const noexcept;

private:
    std::string whole(side which) const;

    std::string lock_;
    std::uint16_t name_at_ = 0;  // where in it
    std::uint16_t name_size_ = 0;
    bool in_braces_ = false;  // {lock}:queue, because without braces the side keys would hash to other slots
};

// Throws holdfast::error: errc::bad_option if the prefix is too long, errc::bad_name if the name is empty, too long, or
// has braces that would put its keys into different slots.
lock_keys make_keys(const lock_name& name, key_naming naming, std::string_view prefix);

// Where that client is told that its turn has come, on a Cluster: a sharded channel in the lock's own slot, one for
// each tag. The scripts know it by the brace, which a plain channel's name (hf:wake:<client>) never has.
std::string channel_of(const lock_keys& lock, std::string_view client);

using redis::hash_tag;

}  // namespace holdfast::wire
