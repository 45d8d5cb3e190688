// Who may re-enter a lock.
#pragma once

#include <holdfast/export.hpp>

#include <cstdint>

namespace holdfast {

/// An owner of the caller's making, for work that is neither one thread's nor one acquisition's: a job, a
/// request, a coroutine with its children. Whoever acquires with the same owner re-enters; valid in one process.
/// Acquisitions of one owner that are under way at the same time do not know of each other yet, and wait in line like
/// strangers: begin the second when the first is there.
///
/// Thread safety: a value; copies are the same owner.
class HOLDFAST_EXPORT owner {
public:
    /// A new owner, different from all others of this process.
    owner();

    /// Whether both are copies of one owner.
    friend bool operator==(const owner&, const owner&) = default;

    /// Internal.
    std::uint64_t number() const noexcept { return number_; }

private:
    std::uint64_t number_;
};

}  // namespace holdfast
