// The mutex scripts in C++ terms: what is asked and what is answered. The wire form is known here and in the
// .lua files, nowhere else.
#pragma once

#include "redis/command.hpp"
#include "scripts/names.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::scripts::mutex {

using std::chrono::milliseconds;

struct acquire_question {
    std::string_view id;
    milliseconds lease;
    std::uint64_t token_floor = 0;
    milliseconds fence_retention;
    std::string_view channel;  // empty: do not wait
    std::string_view ticket;   // of the last answer; empty: none yet
    milliseconds poll_interval{0};
    milliseconds queue_retention{0};
};

struct acquire_answer {
    enum class verdict { held, refused, queued } what = verdict::refused;
    std::uint64_t token = 0;                  // held
    std::optional<milliseconds> holder_left;  // refused, queued; none: the holder has no expiry
    std::string_view holder;                  // refused, queued
    std::string_view ticket;                  // queued
    std::size_t place = 0;                    // queued: 0 is next
    std::uint64_t fence = 0;                  // queued: the last token given out
};

struct release_question {
    std::string_view id;
    std::uint64_t token = 0;  // 0: any grant of this id, and its place in line
    milliseconds fence_retention;
};

// The answer of release and renew.
struct hold_answer {
    enum class verdict { done, not_held, held_by_other } what = verdict::not_held;
    std::optional<milliseconds> holder_left;
    std::string_view holder;
    std::size_t waiters = 0;  // release: still in line
};

struct renew_question {
    std::string_view id;
    milliseconds lease;
};

void write(redis::command& out, const lock_keys& keys, const acquire_question& question);
void write(redis::command& out, const lock_keys& keys, const release_question& question);
void write(redis::command& out, const lock_keys& keys, const renew_question& question);

// Nothing if the reply is not of the agreed form: a server that answers nonsense.
std::optional<acquire_answer> read_acquire(const redis::reply_view& reply);
std::optional<hold_answer> read_hold(const redis::reply_view& reply);

}  // namespace holdfast::scripts::mutex
