// Builds the keys and arguments of a script call: the number of keys, the keys, the arguments, in this order.
#pragma once

#include "redis/session/command.hpp"
#include "redis/session/command_writer.hpp"
#include "wire/keys.hpp"
#include "wire/scripts.hpp"

#include <boost/container/static_vector.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>

namespace holdfast::wire {

class payload {
public:
    // The lock's own key, then these side keys. A raw lock's gap is added to them where `gap` says so.
    enum class gap : std::uint8_t { never, of_raw_locks };
    payload(const lock_keys& keys, std::initializer_list<lock_keys::side> sides, gap with_gap = gap::never) {
        const bool has_gap = with_gap == gap::of_raw_locks && keys.is_raw();
        number(static_cast<std::int64_t>(1 + sides.size() + (has_gap ? 1U : 0U))).text(keys.lock());
        for (const lock_keys::side which : sides) all_.push_back(keys.argument_for(which));
        if (has_gap) all_.push_back(keys.argument_for(lock_keys::side::gap));
    }

    payload& text(std::string_view word) {
        all_.emplace_back(word);
        return *this;
    }
    payload& number(std::int64_t value) {
        all_.push_back(redis::argument::number(value));
        return *this;
    }
    payload& time(std::chrono::milliseconds span) { return number(std::int64_t{span.count()}); }
    payload& token(std::uint64_t value) { return number(static_cast<std::int64_t>(value)); }

    void write(redis::command& out, const script& source) const {
        redis::append_arguments(out.script_payload(source, static_cast<std::uint32_t>(all_.size())), all_);
    }

private:
    static constexpr std::size_t most = 22;  // rw/acquire of a raw lock
    boost::container::static_vector<redis::argument, most> all_;
};

// About one of several holders, with the keys that a held lock always has.
inline payload holders_payload(const lock_keys& keys, std::string_view id) {
    payload call(keys, {lock_keys::side::leases, lock_keys::side::grants});
    call.text(id);
    return call;
}

}  // namespace holdfast::wire
