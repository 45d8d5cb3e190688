// Owners: which acquisitions may re-enter a lock.
#pragma once

#include <holdfast/export.hpp>

#include <cstdint>

namespace holdfast {

namespace api {
struct owner_access;
}

/// An owner made by the caller, for work that is neither one thread nor one acquisition: a job, a request, a coroutine
/// with its children. An acquisition with the same owner re-enters the lock. An owner is valid in one process.
///
/// Acquisitions of one owner that run at the same time do not know each other yet and wait for each other: start the
/// second one after the first one has completed.
///
/// Thread safety: a value. Copies are the same owner.
class HOLDFAST_EXPORT owner {
public:
    /// A new owner, different from all others of this process.
    owner();

    /// Whether both are copies of one owner.
    friend bool operator==(const owner&, const owner&) = default;

private:
    friend struct api::owner_access;

    std::uint64_t number_;
};

}  // namespace holdfast
