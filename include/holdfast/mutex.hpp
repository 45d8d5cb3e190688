// The exclusive lock.
#pragma once

#include <holdfast/lockable.hpp>

#include <string>

namespace holdfast {

/// The exclusive lock: what it can do is in `lockable`. On the wire it is one string key with an expiry, the form that
/// many other programs use; with keys::raw they and holdfast exclude each other.
class HOLDFAST_EXPORT mutex : public lockable {
public:
    /// Throws `error` with errc::bad_name or errc::bad_option. Sends nothing.
    mutex(const client& client, const std::string& name, const mutex_options& options = {});
    /// Releases what threads still hold by lock() through this object, with a warning; see `lockable`.
    ~mutex();
};

}  // namespace holdfast
