// What is locked, and the keys that stand for it in Redis.
//
// All keys of a name hash to one Cluster slot, because every script touches several of them. Redis hashes
// what is between the first '{' and the next '}' of a key if that is not empty, else the whole key.
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace holdfast::scripts {

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

struct lock_keys {
    std::string lock;
    std::string queue;
    std::string waiters;
    std::string fence;
    std::string leases;  // of a read-write lock
    std::string grants;  // of a read-write lock
};

// Throws holdfast::error with errc::bad_name if the name is empty, too long, or has braces that would put its
// keys into different slots.
lock_keys make_keys(const lock_name& name, key_naming naming, std::string_view prefix);

// The part of a key that Redis hashes.
std::string_view hash_tag(std::string_view key) noexcept;

}  // namespace holdfast::scripts
