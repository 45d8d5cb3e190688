// Builds the keys and arguments of a script call: the number of keys, the keys, the arguments, in this order.
#pragma once

#include "redis/session/command.hpp"
#include "redis/session/command_writer.hpp"
#include "wire/keys.hpp"
#include "wire/requests.hpp"
#include "wire/scripts.hpp"

#include <boost/container/static_vector.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>

namespace holdfast::wire {

class payload {
public:
    // The lock's own key, then these side keys. A raw lock's gap is added to them where `gap` says so. Before the key
    // of the notes a lock without a gap names its own key again: while a Cluster moves the slot, a script runs only if
    // all its keys are there.
    enum class gap : std::uint8_t { never, of_raw_locks, and_notes };
    payload(const lock_keys& keys, std::initializer_list<lock_keys::side> sides, gap with_gap = gap::never) {
        const bool has_notes = with_gap == gap::and_notes;
        const bool has_gap = with_gap != gap::never && keys.is_raw();
        number(static_cast<std::int64_t>(1 + sides.size() + (has_notes ? 2U : has_gap ? 1U : 0U))).text(keys.lock());
        for (const lock_keys::side which : sides) all_.push_back(keys.argument_for(which));
        if (has_gap) all_.push_back(keys.argument_for(lock_keys::side::gap));
        if (has_notes && !has_gap) text(keys.lock());
        if (has_notes) all_.push_back(keys.argument_for(lock_keys::side::notes));
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
    static constexpr std::size_t most = 24;  // rw/acquire with a note
    boost::container::static_vector<redis::argument, most> all_;
};

// The key of the notes is named by who has one, and by who met a holder that has one.
inline bool names_notes(const acquire_request& request) {
    return !request.note.empty() || request.asks_for_note;
}

// The end of an acquisition's arguments.
inline void add_note(payload& call, const acquire_request& request) {
    if (!request.asks_back || !request.note.empty()) call.number(request.asks_back ? 1 : 0);
    if (!request.note.empty()) call.text(request.note);
}

// About one of several holders, with the keys that a held lock always has.
inline payload holders_payload(const lock_keys& keys, std::string_view id) {
    payload call(keys, {lock_keys::side::leases, lock_keys::side::grants});
    call.text(id);
    return call;
}

}  // namespace holdfast::wire
