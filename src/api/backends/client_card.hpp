// Tells tools who a client is: host, pid, program and user, in a hash of its own that expires when the client is gone.
//
// Written when a link comes up and again before it expires; the locks themselves never read it. A server that
// refuses it (an ACL without that key) only makes `holdfast show` less talkative.
#pragma once

#include "api/backends/backend.hpp"
#include "base/clock.hpp"
#include "redis/session/command.hpp"

#include <array>
#include <string>

namespace holdfast::api {

class client_card {
public:
    explicit client_card(const std::string& client_id);

    // Sends it if it is due. Inside the section.
    void refresh(backend& where, instant now);
    // A new link, perhaps to a server that does not know it yet.
    void on_link_up() noexcept { due_ = instant{}; }
    // Nothing is due while there is nobody to tell.
    void on_link_down() noexcept { due_ = never; }
    instant due() const noexcept { return due_; }
    // Sends its removal, without waiting for an answer.
    void withdraw(backend& where, instant now);

    const std::string& key() const noexcept { return key_; }

private:
    // Nobody waits for the answers.
    class quiet_command final : public redis::command {
        void on_reply(const redis::reply_view&, instant) override {}
        void on_failure(const failure&, instant) override {}
    };

    void send(backend& where, quiet_command& request, instant now);

    std::string key_;
    std::array<quiet_command, 3> commands_;
    instant due_ = never;
};

}  // namespace holdfast::api
