#include "wire/keys.hpp"

#include <holdfast/errors.hpp>

#include <array>

namespace holdfast::wire {
namespace {

// Redis takes 512 MB; a name that long is a mistake, and it is sent with every request.
constexpr std::size_t longest_name = 1024;

// Behind the lock's own key, which may have to be put into braces first.
constexpr std::array<std::string_view, 6> endings{":queue", ":waiters", ":fence", ":leases", ":grants", ":gap"};
constexpr std::array<std::string_view, 6> braced_endings{"}:queue",  "}:waiters", "}:fence",
                                                         "}:leases", "}:grants",  "}:gap"};
static_assert(static_cast<std::size_t>(lock_keys::side::gap) == endings.size() - 1);

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

std::string_view lock_keys::name() const noexcept {
    return std::string_view(lock_).substr(name_at_, name_size_);
}

redis::argument lock_keys::argument_for(side which) const noexcept {
    const auto at = static_cast<std::size_t>(which);
    return in_braces_ ? redis::argument('{', lock_, braced_endings[at]) : redis::argument(lock_, endings[at]);
}

std::string lock_keys::whole(side which) const {
    const auto at = static_cast<std::size_t>(which);
    return in_braces_ ? "{" + lock_ + std::string(braced_endings[at]) : lock_ + std::string(endings[at]);
}

std::string channel_of(const lock_keys& lock, std::string_view client) {
    std::string channel("hf:wake:{");
    channel.append(hash_tag(lock.lock())).append("}:").append(client);
    return channel;
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
         {keys.queue(), keys.waiters(), keys.fence(), keys.leases(), keys.grants(), keys.gap()}) {
        if (hash_tag(key) != slot) {
            throw error(errc::bad_name, "'" + text + "': its braces would put the lock's keys into different slots");
        }
    }
    return keys;
}

}  // namespace holdfast::wire
