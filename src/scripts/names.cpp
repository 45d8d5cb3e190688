#include "scripts/names.hpp"

#include <holdfast/errors.hpp>

namespace holdfast::scripts {
namespace {

// Redis takes 512 MB; a name that long is a mistake, and it is sent with every request.
constexpr std::size_t longest_name = 1024;

lock_keys side_keys(std::string lock, const std::string& stem) {
    return {std::move(lock), stem + ":queue", stem + ":waiters", stem + ":fence", stem + ":leases", stem + ":grants"};
}

}  // namespace

std::string_view hash_tag(std::string_view key) noexcept {
    const auto open = key.find('{');
    if (open == std::string_view::npos) return key;
    const auto close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1) return key;
    return key.substr(open + 1, close - open - 1);
}

lock_keys make_keys(const lock_name& name, key_naming naming, std::string_view prefix) {
    const std::string& text = name.text();
    if (text.empty()) throw error(errc::bad_name, "a lock needs a name");
    if (text.size() > longest_name) {
        throw error(errc::bad_name, "a lock name has at most " + std::to_string(longest_name) + " bytes");
    }
    lock_keys keys;
    if (naming == key_naming::tagged) {
        const std::string stem = std::string(prefix) + "{" + text + "}";
        keys = side_keys(stem, stem);
    } else {
        const bool has_tag = hash_tag(text).size() != text.size();
        keys = side_keys(text, has_tag ? text : "{" + text + "}");
    }
    const std::string_view slot = hash_tag(keys.lock);
    for (const std::string* key : {&keys.queue, &keys.waiters, &keys.fence, &keys.leases, &keys.grants}) {
        if (hash_tag(*key) != slot) {
            throw error(errc::bad_name, "'" + text + "': its braces would put the lock's keys into different slots");
        }
    }
    return keys;
}

}  // namespace holdfast::scripts
