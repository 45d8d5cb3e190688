// The second connection to a server that speaks RESP2: a link that listens there can send nothing else.
//
// It carries wake-ups only, and proves nothing: it may lead to another server than the backend's own link, and messages
// overtake answers. So whoever is woken polls. Waiters poll while it is down.
#pragma once

#include "redis/session/connection.hpp"

#include <string>

namespace holdfast::api {

// Called in the serial section.
class wake_listener {
public:
    virtual void on_wake_link_up(const redis::server_facts& facts, instant now) = 0;
    // It broke, or could not be made.
    virtual void on_wake_link_down(const failure& why, instant now) = 0;
    virtual void on_wakes_refused(const failure& why, instant now) = 0;
    virtual void on_wake_up(const redis::reply_view& message, instant now) = 0;

protected:
    ~wake_listener() = default;
};

class wake_link final : private redis::session_listener {
public:
    // `server`: where the backend's own link leads. `jitter_seed` spreads the reconnects of many clients.
    wake_link(boost::asio::io_context& context, serial_section& section, const redis::server_settings& server,
              wake_listener& told, std::uint64_t jitter_seed)
        : told_(told), link_(context, section, server.for_wakes(), *this, jitter_seed) {}

    void subscribe(const std::string& channel) { link_.session().subscribe(channel); }
    bool hears(const std::string& channel) const { return link_.session().hears(channel); }
    // The backend's own link is up and leads to `server`, to the run `run_id` of it.
    void follow(const redis::server_settings& server, const std::string& run_id, instant now);

    void pump(instant now) { link_.pump(now); }
    void close(instant now) { link_.close(now); }
    bool is_quiet() const noexcept { return link_.is_quiet(); }
    void on_timer(instant now);
    instant deadline() const noexcept { return link_.session().deadline(); }

private:
    void on_link_up(const redis::server_facts& facts, instant now) override {
        has_told_trouble_ = false;
        told_.on_wake_link_up(facts, now);
    }
    void on_link_down(const failure& why, instant now) override {
        has_told_trouble_ = true;
        told_.on_wake_link_down(why, now);
    }
    void on_subscription_refused(const failure& why, instant now) override { told_.on_wakes_refused(why, now); }
    void on_push(const redis::reply_view& message, instant now) override { told_.on_wake_up(message, now); }

    wake_listener& told_;
    redis::connection link_;
    bool has_told_trouble_ = false;
};

}  // namespace holdfast::api
