// A lock as its object knows it: its keys and its options, made once by the constructor from the user's options.
#pragma once

#include "engine/terms.hpp"

#include <holdfast/options.hpp>

#include <memory>
#include <string>

namespace holdfast::api {

class core;

struct lock_definition {
    std::shared_ptr<const wire::lock_keys> keys;
    engine::lock_options options;
    // Of a lock whose client deals out local grants; see kept_lock.hpp.
    milliseconds keep{0};
    unsigned passes = 0;

    bool is_kept() const noexcept { return keep > milliseconds(0) || passes > 0; }
};

// Throw errc::bad_name or errc::bad_option.
lock_definition define(const core& where, const std::string& name, const mutex_options& chosen);
lock_definition define(const core& where, const std::string& name, const shared_mutex_options& chosen);
// Refuses several independent servers, too.
lock_definition define_semaphore(const core& where, const std::string& name, std::size_t limit,
                                 const semaphore_options& chosen);
// A number of permits, or a limit.
std::uint32_t to_permits(std::size_t number);
wire::lock_keys keys_of(const std::string& name, const shared_mutex_options& chosen);
void check_lease(const core& where, const engine::lock_options& options);
// The note of one acquisition; null: none. Throws errc::bad_option if it is too long, or the lock can have none.
std::shared_ptr<const std::string> note_for(const lock_definition& lock, std::string_view text);

// The stripe that an owner reads.
inline std::size_t stripe_of(engine::owner_id owner, std::size_t stripes) noexcept {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(owner) % stripes);
}

inline engine::access to_access(mode kind) noexcept {
    return kind == mode::shared ? engine::access::shared : engine::access::exclusive;
}

}  // namespace holdfast::api
