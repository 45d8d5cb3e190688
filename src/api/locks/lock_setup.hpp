// What makes a lock the lock it is: the choices of its options, whatever its kind.
#pragma once

#include "engine/hold.hpp"

#include <holdfast/options.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::api {

struct lock_setup {
    milliseconds lease{0};
    unsigned max_repeats = 0;
    std::uint16_t stripes = 0;  // see engine::acquire_terms
    std::uint16_t yield_after_ms = 0;
    engine::packed_acknowledgement acknowledged_by;
    engine::lock_kind kind = engine::lock_kind::mutex;
    engine::preference prefer = engine::preference::arrival;
    engine::upgrades upgrades = engine::upgrades::allowed;
    engine::renewal renewing = engine::renewal::automatic;
};

// And what matters only until it is made: what its keys are called, and choices that are not looked at yet.
struct named_setup : lock_setup {
    redis::acknowledgement wanted_replicas;
    milliseconds yield_after{0};
    wire::key_naming naming = wire::key_naming::tagged;
    std::string prefix;
    std::shared_ptr<const wire::lock_keys> keys;  // made already, if there are any
};

// Which stripe an owner reads.
inline std::size_t stripe_of(engine::owner_id owner, std::size_t stripes) noexcept {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(owner) % stripes);
}

// Of mutex_options and shared_mutex_options alike: what they have in common.
template <typename Options>
named_setup common_setup(const Options& options) {
    named_setup out;
    out.lease = options.lease;
    out.renewing = options.renew ? engine::renewal::automatic : engine::renewal::none;
    out.max_repeats = options.max_repeats;
    out.wanted_replicas = {options.replicas, options.replica_timeout};
    out.naming = options.keys == keys::raw ? wire::key_naming::raw : wire::key_naming::tagged;
    out.prefix = options.prefix;
    out.yield_after = options.yield_after;
    return out;
}

inline wire::lock_keys keys_of(const std::string& name, const named_setup& setup) {
    return wire::make_keys(wire::lock_name(name), setup.naming, setup.prefix);
}

named_setup read_write_setup(const shared_mutex_options& options);

inline engine::access to_access(mode kind) noexcept {
    return kind == mode::shared ? engine::access::shared : engine::access::exclusive;
}

}  // namespace holdfast::api
