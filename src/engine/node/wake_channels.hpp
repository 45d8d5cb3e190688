// The channels on which a node wakes this client's waiters.
//
// On a single server one channel of a client serves all its locks; once subscribed it stays so. On a Cluster a channel
// is heard at the owner of its slot only, so there is one for each tag, in the slot of the locks that have this tag; it
// is subscribed while a push may come there.
#pragma once

#include "engine/effects.hpp"
#include "engine/node/outbox.hpp"

#include <unordered_map>

namespace holdfast::engine {

enum class channels : std::uint8_t { one, one_per_tag };

class wake_channels {
public:
    wake_channels(channels kind, std::string client, outbox& out, agenda& todo);

    // The channel of that lock; valid until the next call.
    const std::string& of(const lock_keys& lock);
    // The first word of what is pushed there.
    std::string_view push_kind() const noexcept { return is_common() ? "message" : "smessage"; }

    // One more node hold may get a push there, and one less.
    void enter(const lock_keys& lock);
    void leave(const lock_keys& lock);
    // Of a lock with a listener, if it is not subscribed yet.
    void subscribe(const lock_keys& lock);
    // The server does not let the client listen. The next subscription tries again: rights may have been given
    // meanwhile.
    void refused(const lock_set& which);

private:
    struct channel {
        lock_keys lock;  // one of those whose channel it is
        std::size_t listeners = 0;
        bool subscribed = false;
    };

    bool is_common() const noexcept { return kind_ == channels::one; }

    const channels kind_;
    const std::string client_;
    outbox& out_;
    agenda& todo_;
    std::string name_;  // the common one's, or that of the lock that was last asked about
    bool common_subscribed_ = false;
    std::unordered_map<std::string, channel> by_name_;  // those of tags that anybody listens to
};

}  // namespace holdfast::engine
