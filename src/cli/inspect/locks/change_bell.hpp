// Rings as soon as the server says that a mutex has changed, by the library's watch: so who looks at a lock need not
// wait for the next look.
//
// It serves a mutex with tagged keys on one server, with sentinels or on a Cluster. Of anything else, and where the
// server cannot tell (no right, a lock of another kind), it stays silent: looks go on as without it.
#pragma once

#include "cli/inspect/locks/lock_state.hpp"
#include "cli/terminal/system.hpp"

#include <holdfast/watch.hpp>

#include <mutex>
#include <optional>
#include <string>

namespace holdfast::cli {

class change_bell {
public:
    // The client must outlive this.
    change_bell(const client& link, const lock_ref& where, const std::string& prefix);

    // To poll(): readable once it rang, until answer().
    int fd() const noexcept { return rung_.fd(); }
    // What rings later makes it readable again.
    void answer() noexcept;

    // The lock was free at some moment since this was made.
    bool was_free() const;
    // The holder will be told to be gone: it announces what it does, and the server can tell.
    bool will_tell() const;

private:
    void on_sight(const sight& seen);
    void on_trouble(errc why);

    event rung_;
    mutable std::mutex mutex_;
    bool was_free_ = false;
    bool will_tell_ = false;
    bool may_not_ = false;
    watching eye_;  // ends first
};

}  // namespace holdfast::cli
