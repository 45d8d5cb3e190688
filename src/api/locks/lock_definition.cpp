#include "api/locks/lock_definition.hpp"

#include "api/runtime/core.hpp"

#include "wire/entry.hpp"

#include <algorithm>
#include <type_traits>

namespace holdfast::api {
namespace {

constexpr unsigned most_replicas = 15;
constexpr milliseconds longest_replica_timeout{4000};
constexpr milliseconds shortest_yield{10};
constexpr milliseconds longest_yield{1000};
constexpr milliseconds longest_keep{std::chrono::hours(24)};
constexpr unsigned most_passes = 1'000'000;
constexpr std::size_t longest_note = 1024;

std::string in_ms(milliseconds time) {
    return std::to_string(time.count()) + " ms";
}

// A WAIT must not look like a server that does not answer.
void check_replicas(const core& where, redis::acknowledgement wanted) {
    if (wanted.replicas > most_replicas) {
        throw error(errc::bad_option, "replicas must be at most " + std::to_string(most_replicas));
    }
    const milliseconds longest = std::min(where.shortest_request_timeout() / 2, longest_replica_timeout);
    if (wanted.within < milliseconds(1) || wanted.within > longest) {
        throw error(errc::bad_option,
                    "replica_timeout must be from 1 ms to half the request timeout, here " + in_ms(longest));
    }
}

// The client must be able to renew a hold that nobody uses, and whoever wants the lock must be able to say so.
template <typename Preference, typename Delay>
void check_kept(const basic_lock_options<Preference, Delay>& chosen) {
    if (chosen.keep < milliseconds(0) || chosen.keep > longest_keep) {
        throw error(errc::bad_option, "keep must be from 0 to 24 h");
    }
    if (chosen.passes > most_passes) throw error(errc::bad_option, "passes must be at most 1000000");
    if (chosen.keep == milliseconds(0) && chosen.passes == 0) return;
    if (!chosen.renew) {
        throw error(errc::bad_option, "keep and passes need renew = true: a kept hold must not end while it is unused");
    }
    if (chosen.keys == keys::raw) {
        throw error(errc::bad_option,
                    "keep and passes cannot be used with keys::raw: other programs cannot ask for the lock");
    }
}

constexpr engine::preference to_preference(prefer chosen) {
    return static_cast<engine::preference>(chosen);
}
static_assert(to_preference(prefer::arrival) == engine::preference::arrival &&
              to_preference(prefer::readers) == engine::preference::readers &&
              to_preference(prefer::writers) == engine::preference::writers);

template <typename Preference, typename Delay>
wire::lock_keys make_keys(const std::string& name, const basic_lock_options<Preference, Delay>& chosen) {
    const auto naming = chosen.keys == keys::raw ? wire::key_naming::raw : wire::key_naming::tagged;
    return wire::make_keys(wire::lock_name(name), naming, chosen.prefix);
}

// The one place where the options of a user become those of the engine.
template <typename Preference, typename Delay>
lock_definition define_any(const core& where, const std::string& name,
                           const basic_lock_options<Preference, Delay>& chosen) {
    lock_definition lock{.keys = std::make_shared<const wire::lock_keys>(make_keys(name, chosen)), .options = {}};
    engine::lock_options& options = lock.options;
    options.lease = chosen.lease;
    if constexpr (std::is_same_v<Delay, milliseconds>) {
        if (chosen.delay < milliseconds(0) || chosen.delay > where.max_lease()) {
            throw error(errc::bad_option,
                        "delay must be from 0 to the client's max_lease, which is " + in_ms(where.max_lease()));
        }
        options.delay_ms = static_cast<std::uint32_t>(chosen.delay.count());
    }
    check_lease(where, options);
    options.renewing = chosen.renew ? engine::renewal::automatic : engine::renewal::none;
    options.max_repeats = chosen.max_repeats;
    if (chosen.replicas > 0) {
        check_replicas(where, {chosen.replicas, chosen.replica_timeout});
        options.replicas = static_cast<std::uint8_t>(chosen.replicas);
        options.replica_timeout_ms = static_cast<std::uint16_t>(chosen.replica_timeout.count());
    }
    const milliseconds yield = chosen.yield_after;
    if (yield != milliseconds(0) && (yield < shortest_yield || yield > longest_yield)) {
        throw error(errc::bad_option, "yield_after must be 0 or from 10 ms to 1 s");
    }
    options.yield_after_ms = static_cast<std::uint16_t>(yield.count());
    check_kept(chosen);
    lock.keep = chosen.keep;
    lock.passes = chosen.passes;
    lock.options.kept = lock.is_kept();
    if constexpr (std::is_same_v<Preference, prefer>) {
        options.kind = engine::lock_kind::read_write;
        options.prefer = to_preference(chosen.prefer);
    }
    return lock;
}

}  // namespace

lock_definition define(const core& where, const std::string& name, const mutex_options& chosen) {
    return define_any(where, name, chosen);
}

lock_definition define(const core& where, const std::string& name, const shared_mutex_options& chosen) {
    return define_any(where, name, chosen);
}

lock_definition define_semaphore(const core& where, const std::string& name, std::size_t limit,
                                 const semaphore_options& chosen) {
    if (where.servers() > 1) {
        throw error(errc::bad_option,
                    "a semaphore needs one server, a primary with replicas, or a Cluster: with several independent "
                    "servers a majority of votes for each holder does not bound the sum of the permits");
    }
    if (chosen.keys == keys::raw) {
        throw error(errc::bad_option, "a semaphore cannot be used with keys::raw: no other program knows its keys");
    }
    if (chosen.keep != milliseconds(0) || chosen.passes != 0) {
        throw error(errc::bad_option, "keep and passes are for a mutex and a shared_mutex, not for a semaphore");
    }
    lock_definition lock = define_any(where, name, chosen);
    lock.options.kind = engine::lock_kind::semaphore;
    lock.options.limit = to_permits(limit);
    return lock;
}

std::uint32_t to_permits(std::size_t number) {
    if (number >= 1 && number <= static_cast<std::size_t>(wire::most_permits)) {
        return static_cast<std::uint32_t>(number);
    }
    throw error(errc::bad_option, "a limit and a number of permits must be from 1 to 1000000000");
}

wire::lock_keys keys_of(const std::string& name, const shared_mutex_options& chosen) {
    return make_keys(name, chosen);
}

std::shared_ptr<const std::string> note_for(const lock_definition& lock, std::string_view text) {
    if (text.empty()) return nullptr;
    if (text.size() > longest_note) throw error(errc::bad_option, "a note has at most 1024 bytes");
    if (lock.keys->is_raw()) {
        throw error(errc::bad_option,
                    "a note cannot be used with keys::raw: what other programs know of the lock has no place for it");
    }
    if (lock.options.kind == engine::lock_kind::semaphore) {
        throw error(errc::bad_option, "a note is for a mutex and a shared_mutex, not for a semaphore");
    }
    if (lock.is_kept()) {
        throw error(errc::bad_option,
                    "a note cannot be used with keep and passes: many local holds share what the server knows as one");
    }
    return std::make_shared<const std::string>(text);
}

void check_lease(const core& where, const engine::lock_options& options) {
    if (options.lease >= where.shortest_lease() && options.lease_at_server() <= where.max_lease()) return;
    if (options.delay_ms != 0 && options.lease <= where.max_lease()) {
        throw error(errc::bad_option, "lease and delay together must be at most the client's max_lease, which is " +
                                          in_ms(where.max_lease()));
    }
    throw error(errc::bad_option, "a lease must be from " + in_ms(where.shortest_lease()) +
                                      " to the client's max_lease, which is " + in_ms(where.max_lease()));
}

}  // namespace holdfast::api
