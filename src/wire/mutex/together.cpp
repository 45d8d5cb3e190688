#include "wire/together.hpp"

#include "redis/session/command_writer.hpp"
#include "wire/scripts.hpp"

#include <boost/container/static_vector.hpp>

namespace holdfast::wire {
namespace {

using side = lock_keys::side;

constexpr std::size_t keys_each = 4;
constexpr std::size_t most_arguments = 1 + 2 + most_together * (keys_each + 3);
using arguments = boost::container::static_vector<redis::argument, most_arguments>;

redis::argument number(std::uint64_t value) {
    return redis::argument::number(static_cast<std::int64_t>(value));
}

template <class Part>
arguments keys_of(std::span<const Part> parts) {
    arguments out{number(parts.size() * keys_each)};
    for (const Part& one : parts) {
        out.emplace_back(one.keys.lock());
        for (const side which : {side::queue, side::waiters, side::fence}) out.push_back(one.keys.argument_for(which));
    }
    out.push_back(number(parts.size()));
    return out;
}

void write(redis::command& out, const script& source, const arguments& all) {
    redis::append_arguments(out.script_payload(source, static_cast<std::uint32_t>(all.size())), all);
}

}  // namespace

void write_acquire_all(redis::command& out, milliseconds fence_retention, std::span<const acquire_part> parts) {
    static const script& source = find("mutex/acquire_all");
    arguments all = keys_of(parts);
    all.push_back(redis::argument::number(fence_retention.count()));
    for (const acquire_part& one : parts) {
        all.emplace_back(one.id);
        all.push_back(redis::argument::number(one.lease.count()));
        all.push_back(number(one.token_floor));
    }
    write(out, source, all);
}

void write_release_all(redis::command& out, std::span<const release_part> parts) {
    static const script& source = find("mutex/release_all");
    arguments all = keys_of(parts);
    for (const release_part& one : parts) {
        all.emplace_back(one.id);
        all.push_back(number(one.token));
    }
    write(out, source, all);
}

}  // namespace holdfast::wire
