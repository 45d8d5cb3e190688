// The exclusive lock.
#pragma once

#include <holdfast/lockable.hpp>

#include <string>

namespace holdfast {

/// The exclusive lock. `lockable` has its operations. On the wire it is one string key with an expiry, the form that
/// many other programs use: with keys::raw, they and holdfast exclude each other.
///
/// Thread safety: one object may be used by many threads.
class HOLDFAST_EXPORT mutex : public lockable {
public:
    /// Makes a lock object. Sends nothing.
    ///
    /// Errors: throws `error` with errc::bad_name or errc::bad_option.
    mutex(const client& client, const std::string& name, const mutex_options& options = {});
    /// Releases, with a warning in the log, what threads still hold by lock() through this object; see `lockable`.
    ~mutex();
};

}  // namespace holdfast
