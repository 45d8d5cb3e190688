#include "wire/keys.hpp"

#include <holdfast/errors.hpp>

#include <algorithm>
#include <array>

namespace holdfast::wire {
namespace {

// Redis allows 512 MB. Every request carries the name, so a long one is a mistake.
constexpr std::size_t longest_name = 1024;

// Endings of the side keys, by lock_keys::side; the second list closes the braces around the lock's own key.
constexpr std::array<std::string_view, 7> endings{":queue",  ":waiters", ":fence", ":leases",
                                                  ":grants", ":gap",     ":notes"};
constexpr std::array<std::string_view, 7> braced_endings{"}:queue",  "}:waiters", "}:fence", "}:leases",
                                                         "}:grants", "}:gap",     "}:notes"};
static_assert(static_cast<std::size_t>(lock_keys::side::notes) == endings.size() - 1);

std::string joined(std::string_view head, std::string_view rest) {
    return std::string(head).append(rest);
}

}  // namespace

lock_keys::lock_keys(const lock_name& name, key_naming naming, std::string_view prefix)
    : name_size_(static_cast<std::uint16_t>(name.text().size())) {
    if (naming == key_naming::tagged) {
        lock_.append(prefix).append("{");
        name_at_ = static_cast<std::uint16_t>(lock_.size());
        lock_.append(name.text()).append("}");
    } else {
        lock_ = name.text();
        in_braces_ = hash_tag(lock_).size() == lock_.size();
    }
}

redis::argument lock_keys::argument_for(side which) const noexcept {
    const auto at = static_cast<std::size_t>(which);
    return in_braces_ ? redis::argument('{', lock_, braced_endings[at]) : redis::argument(lock_, endings[at]);
}

std::string lock_keys::whole(side which) const {
    const auto at = static_cast<std::size_t>(which);
    return in_braces_ ? "{" + lock_ + std::string(braced_endings[at]) : lock_ + std::string(endings[at]);
}

std::optional<lock_keys::side> side_of(std::string_view key) noexcept {
    const auto found = std::ranges::find_if(endings, [key](std::string_view ending) { return key.ends_with(ending); });
    if (found == endings.end()) return std::nullopt;
    return static_cast<lock_keys::side>(found - endings.begin());
}

boost::container::static_vector<key_owner, 2> owners_of(std::string_view key, std::string_view prefix) {
    const auto tagged_name = [prefix](std::string_view lock) -> std::string_view {
        if (!lock.starts_with(prefix) || !lock.ends_with('}') || lock.size() < prefix.size() + 2) return {};
        return lock[prefix.size()] == '{' ? lock.substr(prefix.size() + 1, lock.size() - prefix.size() - 2) : "";
    };
    if (const auto name = tagged_name(key); !name.empty()) return {{name, key_naming::tagged}};
    const auto side = side_of(key);
    if (!side || *side == lock_keys::side::gap || *side == lock_keys::side::notes) return {};
    const std::string_view lock = key.substr(0, key.size() - endings[static_cast<std::size_t>(*side)].size());
    if (const auto name = tagged_name(lock); !name.empty()) return {{name, key_naming::tagged}};
    if (hash_tag(lock).size() == lock.size()) return {};  // Our side keys always have a tag.
    // "{x}:queue" belongs to the name x, or to the name {x}.
    if (lock.starts_with('{') && lock.find('}') == lock.size() - 1) {
        return {{lock, key_naming::raw}, {lock.substr(1, lock.size() - 2), key_naming::raw}};
    }
    return {{lock, key_naming::raw}};
}

std::string channel_of(std::string_view client) {
    return joined("hf:wake:", client);
}

std::string channel_of(const lock_keys& lock, std::string_view client) {
    return joined("hf:wake:{", hash_tag(lock.lock())).append("}:").append(client);
}

std::string ack_channel_of(std::string_view client) {
    return joined("hf:ack:", client);
}

std::string card_key_of(std::string_view client) {
    return joined("hf:client:", client);
}

lock_keys make_keys(const lock_name& name, key_naming naming, std::string_view prefix) {
    const std::string& text = name.text();
    if (text.empty()) throw error(errc::bad_name, "a lock needs a name");
    if (text.size() > longest_name) {
        throw error(errc::bad_name, "a lock name has at most " + std::to_string(longest_name) + " bytes");
    }
    if (naming == key_naming::tagged && prefix.size() > longest_name) {
        throw error(errc::bad_option, "a prefix has at most " + std::to_string(longest_name) + " bytes");
    }
    lock_keys keys(name, naming, prefix);
    const std::string_view slot = hash_tag(keys.lock());
    for (const std::string& key :
         {keys.queue(), keys.waiters(), keys.fence(), keys.leases(), keys.grants(), keys.gap(), keys.notes()}) {
        if (hash_tag(key) != slot) {
            throw error(errc::bad_name, "'" + text + "': its braces would put the lock's keys into different slots");
        }
    }
    return keys;
}

}  // namespace holdfast::wire
