// What the parts of a cluster_router want to happen after a change.
//
// An event changes the state of the parts and appends effects here. The router carries them out, first in first out,
// when the change is complete. Only what calls an upper layer, or ends a session, is an effect. A command that is given
// to a session is not: the session only queues it.
#pragma once

#include "redis/cluster/cluster_link.hpp"
#include "redis/cluster/slot_set.hpp"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace holdfast::redis {

struct open_link {
    cluster_link* which;
};
// Owns the link: no part knows it any more.
struct close_link {
    std::unique_ptr<cluster_link> which;
};
// The session gives the link up. It connects again after a rest, or soon, or never.
struct drop_link {
    enum class next { rest, hurry, close };
    cluster_link* which;
    failure why;
    next then;
};
struct fail_command {
    command* which;
    failure why;
};
struct tell_map {};
struct tell_slots_down {
    std::unique_ptr<const slot_set> which;  // large
    failure why;
};
struct tell_slots_up {
    std::unique_ptr<const slot_set> which;
    const cluster_link* at;
};
struct tell_channel_refused {
    std::string channel;
    failure why;
};
using cluster_effect = std::variant<open_link, close_link, drop_link, fail_command, tell_map, tell_slots_down,
                                    tell_slots_up, tell_channel_refused>;

class cluster_effects {
public:
    void add(cluster_effect next) { queue_.push_back(std::move(next)); }
    // The link counts as down from now on.
    void drop(cluster_link& which, failure why, drop_link::next then) {
        which.is_dropped = true;
        add(drop_link{&which, std::move(why), then});
    }
    // The command is idle until its owner is told.
    void fail(command& which, failure why) {
        routing::set_idle(which);
        add(fail_command{&which, std::move(why)});
    }
    void fail_all(const std::deque<command*>& ended, const failure& why) {
        for (command* each : ended) fail(*each, why);
    }

    bool empty() const noexcept { return queue_.empty(); }
    cluster_effect take() {
        cluster_effect next = std::move(queue_.front());
        queue_.pop_front();
        return next;
    }

private:
    std::deque<cluster_effect> queue_;
};

}  // namespace holdfast::redis
