// Tells tools who a client is: host, pid, program and user, in a hash that expires when the client is gone.
//
// Written when a link comes up, and refreshed before it expires. Locks never read it. If a server refuses it (an ACL
// without that key), `holdfast show` shows less.
#pragma once

#include "api/backends/backend.hpp"
#include "base/clock.hpp"
#include "redis/session/command.hpp"

#include <string>

namespace holdfast::api {

class client_card {
public:
    explicit client_card(const std::string& client_id);

    // Sends the card if it is due. Inside the section.
    void refresh(backend& where, instant now);
    // The new link may lead to a server without the card.
    void on_link_up() noexcept { due_ = instant{}; }
    // Without a link nothing is due.
    void on_link_down() noexcept { due_ = never; }
    instant due() const noexcept { return due_; }
    // Sends the removal of the card and does not wait for the answer.
    void withdraw(backend& where, instant now) {
        due_ = never;
        if (where.up()) send(where, remove_, now);
    }

    const std::string& key() const noexcept { return key_; }

private:
    // Ignores its answer.
    class quiet_command final : public redis::command {
        void on_reply(const redis::reply_view&, instant) override {}
        void on_failure(const failure&, instant) override {}
    };

    void send(backend& where, quiet_command& request, instant now);

    std::string key_;
    quiet_command write_;
    quiet_command expire_;
    quiet_command remove_;
    instant due_ = never;
};

}  // namespace holdfast::api
