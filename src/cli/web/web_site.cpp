#include "cli/web/web_site.hpp"

#include "cli/inspect/output/prometheus_text.hpp"
#include "cli/web/page.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::string_view nonce_mark = "{{nonce}}";

std::string with_nonce(std::string_view page, const std::string& nonce) {
    std::string result;
    for (std::size_t at = 0; at < page.size();) {
        const std::size_t mark = page.find(nonce_mark, at);
        result += page.substr(at, mark - at);
        if (mark == page.npos) break;
        result += nonce;
        at = mark + nonce_mark.size();
    }
    return result;
}

// The value of key=VALUE in a query, as it is written there.
std::string value_of(std::string_view query, std::string_view name) {
    while (!query.empty()) {
        const std::string_view pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(query.size(), pair.size() + 1));
        if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) {
            return std::string(pair.substr(name.size() + 1));
        }
    }
    return {};
}

http_answer text_answer(int status, std::string text) {
    return {.status = status, .body = std::move(text)};
}

}  // namespace

http_answer web_site::answer(const http_request& asked) {
    http_answer told = [&]() -> http_answer {
        if (auto no = guard_.refuse(asked)) return *no;
        const bool is_post = asked.method == "POST";
        if (is_post != (asked.path == "/release")) return text_answer(is_post ? 405 : 404, "not here\n");
        if (asked.path == "/") return page();
        if (guard_.is_token_for_all || is_post) {
            if (auto no = guard_.refuse_without_token(asked)) return *no;
        }
        if (asked.path == "/events") return events();
        if (asked.path == "/lock") return details(asked);
        if (asked.path == "/metrics") return metrics();
        if (is_post) return release(asked);
        return text_answer(404, "not here; see /\n");
    }();
    told.fields.insert({{"X-Content-Type-Options", "nosniff"},
                        {"X-Frame-Options", "DENY"},
                        {"Referrer-Policy", "no-referrer"},
                        {"Cross-Origin-Resource-Policy", "same-origin"},
                        {"Cross-Origin-Opener-Policy", "same-origin"},
                        {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"}});
    return told;
}

// Names and notes come from anybody who can write to the server. Nothing of them is in this text; the script sets them
// as text, and the browser refuses everything else: trusted types, and a nonce for the one script.
http_answer web_site::page() const {
    const std::string nonce = random_token();
    return {.type = "text/html; charset=utf-8",
            .body = with_nonce(embedded_page(), nonce),
            .fields = {{"Content-Security-Policy",
                        "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
                            "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                            "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"}}};
}

http_answer web_site::events() {
    return {.type = "text/event-stream",
            .fields = {{"X-Accel-Buffering", "no"}},
            .listener = [this](const std::shared_ptr<http_stream>& stream) {
                stream->send(feed_.everything());
                if (health_) stream->send(health_);
                listeners_.push_back(stream);
            }};
}

http_answer web_site::details(const http_request& asked) const {
    json all = feed_.details_of(value_of(asked.query, "key"));
    if (all.is_null()) return text_answer(404, "there is no such lock now\n");
    return {.type = "application/json", .body = one_line(all)};
}

http_answer web_site::metrics() const {
    const web_look& look = feed_.latest();
    if (!feed_.has_looked() || !look.trouble.empty()) return {.type = prometheus_type, .body = prometheus_of_silence()};
    scrape seen{look.locks, look.took, look.servers_up, look.members_silent};
    keep_majorities(seen.locks);
    return {.type = prometheus_type, .body = prometheus_text(seen)};
}

http_answer web_site::release(const http_request& asked) {
    if (!release_) return text_answer(403, "This page only shows; start it with --allow-release.\n");
    const json wish = json::parse(asked.body, nullptr, false);
    const auto text = [&wish](const char* name) {
        return wish.is_object() && wish.contains(name) && wish[name].is_string() ? wish[name].get<std::string>() : "";
    };
    const lock_state* const lock = feed_.find(text("key"));
    if (lock == nullptr) return text_answer(404, "There is no such lock now.\n");
    const std::string id = text("holder");
    if (std::ranges::none_of(lock->holders, [&id](const lock_holder& one) { return one.id == id; })) {
        return text_answer(409, "That holder does not hold it any more.\n");
    }
    if (!release_(lock->where, id)) return text_answer(409, "Another release is under way; wait until it is over.\n");
    return text_answer(202, "The holder is asked to stop.\n");
}

void web_site::show_health(const json& found) {
    health_ = stream_event("health", found);
    send(health_);
}

void web_site::send_sign_of_life() {
    static const auto comment = std::make_shared<const std::string>(": alive\n\n");
    send(comment);
}

std::size_t web_site::listeners() const {
    return static_cast<std::size_t>(std::ranges::count_if(listeners_, [](const std::weak_ptr<http_stream>& one) {
        const auto stream = one.lock();
        return stream && stream->is_open();
    }));
}

void web_site::send(const shared_text& text) {
    if (!text) return;
    for (const auto& one : listeners_) {
        if (const auto stream = one.lock()) stream->send(text);
    }
    std::erase_if(listeners_, [](const std::weak_ptr<http_stream>& one) {
        const auto stream = one.lock();
        return !stream || !stream->is_open();
    });
}

}  // namespace holdfast::cli
