// The four types of value.
//
// Hashes keep the order of insertion, which HGETALL returns for the small hashes that locks use (a listpack on a real
// server; above 512 fields or 64 bytes its order is arbitrary, and no script may depend on it). Sorted sets keep an
// ordered tree and an index, always consistent. All are plain values: a copy is a snapshot.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace holdfast::sim {

// Hashes eight bytes at a time, inline: names are short, and every command looks up some.
struct string_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
        std::uint64_t hash = text.size();
        for (; text.size() >= sizeof hash; text.remove_prefix(sizeof hash)) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data(), sizeof word);
            hash = mix(hash, word);
        }
        std::uint64_t rest = 0;
        for (const char c : text) rest = rest << 8U | static_cast<unsigned char>(c);
        return mix(hash, rest);
    }

private:
    static std::uint64_t mix(std::uint64_t hash, std::uint64_t with) {
        hash = (hash ^ with) * 0x9e3779b97f4a7c15U;
        return hash ^ (hash >> 32U);
    }
};

class field_map {
public:
    using container = std::list<std::pair<const std::string, std::string>>;

    field_map() = default;
    field_map(const field_map& other);
    field_map& operator=(const field_map& other);
    field_map(field_map&&) = default;
    field_map& operator=(field_map&&) = default;
    ~field_map() = default;

    const std::string* find(std::string_view field) const;
    /// True if the field is new.
    bool set(std::string_view field, std::string data);
    bool erase(std::string_view field);
    std::size_t size() const { return fields_.size(); }
    bool empty() const { return fields_.empty(); }
    const container& in_order() const { return fields_; }

private:
    container fields_;
    std::unordered_map<std::string_view, container::iterator, string_hash, std::equal_to<>> index_;
};

class sorted_set {
public:
    using order = std::set<std::pair<double, std::string_view>>;

    sorted_set() = default;
    sorted_set(const sorted_set& other);
    sorted_set& operator=(const sorted_set& other);
    sorted_set(sorted_set&&) = default;
    sorted_set& operator=(sorted_set&&) = default;
    ~sorted_set() = default;

    std::optional<double> score(std::string_view member) const;
    /// True if the member is new.
    bool set(std::string_view member, double score);
    bool erase(std::string_view member);
    std::size_t size() const { return by_member_.size(); }
    bool empty() const { return by_member_.empty(); }
    const order& in_order() const { return order_; }

private:
    std::unordered_map<std::string, double, string_hash, std::equal_to<>> by_member_;
    order order_;  // views into by_member_'s keys, which never move
};

using member_set = std::set<std::string, std::less<>>;

}  // namespace holdfast::sim
