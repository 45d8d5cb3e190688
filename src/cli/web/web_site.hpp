// The site of `holdfast web`: its page, the stream of changes, the page of a lock, metrics, and releases.
//
//   GET /                    the page; it has no data in it
//   GET /events              a stream (text/event-stream): state, then change, trouble, health, notice
//   GET /lock?key=KEY        a lock with its queue and its history; KEY is `key` of a row
//   GET /metrics             for Prometheus
//   POST /release            {"key": KEY, "holder": ID}: asks a holder to stop; the outcome comes as a notice
//
// It asks no server: looks are given to it, and all browsers share them. Runs on the thread of the context.
#pragma once

#include "cli/web/http_server.hpp"
#include "cli/web/lock_feed.hpp"
#include "cli/web/web_guard.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

class web_site {
public:
    // Begins to end that hold. False: another release is under way.
    using releaser = std::function<bool(const lock_ref& lock, const std::string& holder)>;

    web_site(json about, web_guard guard, releaser release)
        : feed_(std::move(about)), guard_(std::move(guard)), release_(std::move(release)) {}

    http_answer answer(const http_request& asked);

    void show(web_look look) { send(feed_.add(std::move(look))); }
    void show_health(const json& found);
    void show_notice(const json& notice) { send(stream_event("notice", notice)); }
    // So that a connection that nobody reads any more is noticed, and proxies keep the others.
    void send_sign_of_life();
    std::size_t listeners() const;

private:
    http_answer page() const;
    http_answer events();
    http_answer details(const http_request& asked) const;
    http_answer metrics() const;
    http_answer release(const http_request& asked);
    void send(const shared_text& text);

    lock_feed feed_;
    const web_guard guard_;
    const releaser release_;
    shared_text health_;
    std::vector<std::weak_ptr<http_stream>> listeners_;
};

}  // namespace holdfast::cli
